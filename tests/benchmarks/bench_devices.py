"""A training step for 1,024 simulated devices: what exploring takes over the compile, and its page over one device's.

python -m tests.benchmarks.bench_devices [layers]
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.benchmarks.cold import cold_seconds
from tests.benchmarks.table import row

ROUNDS = 5
COUNTS = (1, 1024)


def measured(layers):
    """In a process with as many devices as its flags say: ratios of exploring, the page's seconds and its bytes."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec

    import explorer as ex
    from tests.corpus_sharding.programs import mesh_of
    from tests.examples.training import training_step

    model = min(4, jax.device_count())
    mesh = mesh_of(data=jax.device_count() // model, model=model)

    def split(leaf, *spec):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=NamedSharding(mesh, PartitionSpec(*spec)))

    step, (state, _) = training_step(layers)
    state = jax.tree.map(lambda leaf: split(leaf, *(("model",) if leaf.ndim == 2 else ())), state)
    tokens = split(jax.ShapeDtypeStruct((1024, 65), jnp.int32), "data")

    runs = {
        "compile": lambda: jax.jit(step).lower(state, tokens).compile(),
        "explore": lambda: ex.explore(step, state, tokens),
    }
    capture = ex.explore(step, state, tokens)  # the rules are loaded with the first
    ratios, pages = [], []
    for turn in range(ROUNDS):
        spent = {name: cold_seconds(runs[name]) for name in (runs if turn % 2 else reversed(runs))}
        ratios.append(spent["explore"][0] / spent["compile"][0])
        capture = spent["explore"][1]
        with TemporaryDirectory() as folder:
            took, page = cold_seconds(lambda capture=capture, folder=folder: capture.to_html(Path(folder, "page.html")))
            pages.append(took)
            size = page.stat().st_size
    print(json.dumps({"explore": median(ratios), "page": median(pages), "bytes": size}))


def in_process(count, layers):
    flags = f"--xla_force_host_platform_device_count={count}"
    command = [sys.executable, "-m", __spec__.name, layers, "here"]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)


def main(layers):
    one, many = (in_process(count, layers) for count in COUNTS)
    kept = row("explore for 1,024 devices, over its compile", many["explore"], 1.2, "×")
    print(
        f"the page: {many['page']:.2f} s and {many['bytes']:,} B; of one device {one['page']:.2f} s, {one['bytes']:,} B"
    )
    return row("its page, over that of one device", many["page"] / one["page"], 1.2, "×") and kept


if __name__ == "__main__":
    layers = sys.argv[1] if len(sys.argv) > 1 else "2"
    if sys.argv[2:]:
        measured(int(layers))
    else:
        sys.exit(not main(layers))
