"""The profiles of many processes as one: what takes how long where, and who waits for whom."""

import socket
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import explorer as ex
from explorer.model.graph import Frame
from explorer.model.results.profile import OpTime


def op(name, seconds, line=12):
    kind = name.partition(".")[0]
    stack = (Frame("/home/a/train.py", "step", line),)
    return OpTime(name, kind, "jit_step", 1, seconds, 0.5, seconds, 1.0, 0.0, 0.0, None, stack, "")


def profile(*ops, wall=0.01, function="step"):
    spent = sum(each.seconds for each in ops)
    return ex.Profile(function, "(x)", 4, wall, spent, wall - spent, ops, (), 0.0)


def of_three():
    """Process 2 computes longest; the others wait for it in the all-reduce, which itself takes 1 ms."""
    return [
        profile(op("fusion.1", 0.004), op("all-reduce.2", 0.005)),
        profile(op("fusion.1", 0.005), op("all-reduce.2", 0.004)),
        profile(op("fusion.1", 0.008), op("all-reduce.2", 0.001)),
    ]


def test_what_a_collective_takes_longer_than_where_it_is_shortest_was_waited():
    merged = ex.merge_profiles(of_three())
    assert merged.waiting == pytest.approx([0.004, 0.003, 0.0])
    assert merged.own == pytest.approx([0.004, 0.005, 0.008])
    assert merged.slowest == 2
    assert "process 0 waits 4 ms of a call in collectives for others, as far as can be inferred" in repr(merged)
    assert "process 2 computes longest" in repr(merged)


def test_without_processes_none_is_the_slowest():
    assert ex.types.ProcessProfile("step", (), (), np.zeros((0, 0)), np.zeros(0)).slowest == -1


def test_instructions_have_the_seconds_of_each_process_and_none_where_there_is_none():
    merged = ex.merge_profiles([*of_three(), profile(op("copy.9", 0.002))], names=["a", "b", "c", "d"])
    assert [each.name for each in merged.ops] == ["fusion.1", "all-reduce.2", "copy.9"]
    assert np.isnan(merged.seconds[0]).tolist() == [False, False, False, True]
    frame = merged.to_frame()
    assert list(frame["c"])[:2] == [0.008, 0.001]
    assert list(frame["line"]) == [12, 12, 12]


def test_halves_of_a_collective_count_as_collectives():
    merged = ex.merge_profiles([profile(op("all-gather-start.1", 0.002)), profile(op("all-gather-start.1", 0.001))])
    assert merged.ops[0].is_collective
    assert merged.waiting == pytest.approx([0.001, 0.0])


def test_files_of_a_folder_are_processes_and_the_whole_can_be_saved(tmp_path):
    for at, each in enumerate(of_three()):
        each.save(tmp_path / f"{at}.json")
    merged = ex.merge_profiles(tmp_path)
    assert merged.processes == ("0", "1", "2")
    merged.save(tmp_path / "whole.json")
    again = ex.types.ProcessProfile.load(tmp_path / "whole.json")
    assert repr(again) == repr(merged)
    assert np.array_equal(again.seconds, merged.seconds)


def test_it_shows_who_waits_and_which_instruction_differs(tmp_path):
    page = ex.merge_profiles(of_three()).to_html(tmp_path / "page.html").read_text()
    for text in ("waits in collectives, inferred", "all-reduce.2", "train.py, line 12", "3 of 3"):
        assert text in page


def test_nothing_to_merge_and_too_few_names_are_refused():
    for profiles, names in (([], None), (of_three(), ["a"])):
        with pytest.raises(ex.errors.OptionError, match="profiles and"):
            ex.merge_profiles(profiles, names=names)


def test_a_thousand_processes_are_a_column_each():
    every = (profile(*(op(f"fusion.{k}", 1e-5) for k in range(5)), op("all-reduce.9", 1e-4)) for _ in range(1_000))
    merged = ex.merge_profiles(every)
    assert merged.seconds.shape == (6, 1_000)
    assert "no time lost" in repr(merged)


PROCESS = textwrap.dedent(
    """
    import sys, time
    import jax
    index, port, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"localhost:{port}", 2, index)
    import numpy as np
    from jax.sharding import NamedSharding, PartitionSpec
    import explorer as ex

    mesh = jax.make_mesh((2,), ("x",))
    own = np.ones(2, np.float32)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, PartitionSpec("x")), own, (4,))

    def step(x):
        def late(value):
            time.sleep(0.05 * index)
            return value

        value = jax.pure_callback(late, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        return jax.lax.psum(value.sum(), "x")

    total = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=PartitionSpec("x"), out_specs=PartitionSpec()))
    ex.profile(total, x, runs=6).save(f"{folder}/{index}.json")
    jax.distributed.shutdown()
    """
)


@pytest.mark.slow
def test_of_two_real_processes_the_one_that_is_there_first_waits_as_long_as_the_other_is_late(tmp_path):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    run = [sys.executable, "-c", PROCESS]
    both = [subprocess.Popen([*run, str(at), port, str(tmp_path)], stderr=subprocess.PIPE) for at in range(2)]
    try:
        errors = [process.communicate(timeout=240)[1] for process in both]
    finally:
        for process in both:
            process.kill()
    assert len([*tmp_path.iterdir()]) == 2, errors
    merged = ex.merge_profiles(tmp_path)
    first, late = merged.waiting
    assert 0.03 < first < 0.1  # the other sleeps for 50 ms
    assert late < 0.02
    assert merged.slowest == 1
