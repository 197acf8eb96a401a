"""Functions over several processes: timed in step, refused where each would decide for itself how often to call."""

import socket
import subprocess
import sys
import textwrap

import pytest

CODE = textwrap.dedent(
    """
    import sys
    import jax
    jax.distributed.initialize(f"localhost:{sys.argv[2]}", 2, int(sys.argv[1]))
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import NamedSharding, PartitionSpec
    import explorer as ex

    mesh = jax.make_mesh((2,), ("x",))
    own = np.ones(1, np.float32)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, PartitionSpec("x")), own, (2,))
    total = jax.jit(lambda x: x.sum(), out_shardings=NamedSharding(mesh, PartitionSpec()))
    print("sum", float(total(x)))
    for measure in (lambda f, x: ex.compare({"a": f, "b": f}, x), ex.profile):
        try:
            measure(total, x)
        except ex.errors.ArgumentsError as error:
            print("refused", "several of the 2 processes" in str(error))
    together = ex.time(total, x, seconds=0.2)
    print("in step", sum(together.steady.samples), "begin each call at a barrier" in together.notes[-1])
    timing = ex.time(jax.jit(lambda x: x + 1), jnp.ones(3), seconds=0.05, eager=False)
    print("local", timing.steady.count >= 3)
    found = ex.profile(total, x, runs=4)
    print("profiled", found.runs >= 1, any("all-reduce" in op.name for op in found.ops))
    jax.distributed.shutdown()
    """
)


@pytest.mark.slow
def test_two_processes_are_refused_what_they_would_have_to_agree_on_and_given_what_they_don_t():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    run = [sys.executable, "-c", CODE]
    both = [subprocess.Popen([*run, str(i), port], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for i in range(2)]
    try:
        told = [process.communicate(timeout=240) for process in both]
    finally:
        for process in both:
            process.kill()
    in_step = set()
    for out, errors in told:
        lines = [line for line in out.decode().splitlines() if not line.startswith("[Gloo]")]
        assert lines == ["sum 2.0", *["refused True"] * 2, lines[3], "local True", "profiled True True"], (
            errors.decode()[-2000:]
        )
        in_step.add(lines[3])
    (both,) = in_step  # the same samples in both
    assert both.startswith("in step ")
    assert both.endswith(" True")
