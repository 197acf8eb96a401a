"""A function from a file, in a fresh process: Explorer's native code, JAX's pickle, JAX's persistent cache, a compile.

python -m tests.benchmarks.bench_files [layers]

Each figure is from having the arguments to having the first results. Of native code also what XLA's own loader takes
of it, which nobody in Python can make shorter: `deserialize_executable`, called with the same bytes.
"""

import json
import pickle
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import jax
import jax.numpy as jnp
from jax.experimental import serialize_executable

import explorer as ex
from explorer._jax.native import native_code
from tests.benchmarks.table import row
from tests.examples.training import training_step

RUNS = 5
COMPILES = ("stablehlo", "jit")  # which are measured once: they take far longer than they vary
SMALL = "small"
ARCHIVE = 5e-3  # seconds
WAYS = {
    "native": "Explorer, native code",
    "stablehlo": "Explorer, StableHLO alone",
    "pickle": "jax.experimental.serialize_executable",
    "cache": "jax.jit, persistent cache filled",
    "jit": "jax.jit, nothing kept",
    "loader": "XLA's loader alone",
}


def subject(what):
    """A function and its arguments."""
    if what != SMALL:
        return training_step(int(what))
    return (lambda x: jnp.tanh(x @ x.T).sum(0) * 2), (jnp.ones((64, 64)),)


def prepare(what, folder):
    """Write the files of every way."""
    function, arguments = subject(what)
    executable = ex.compile(function, args=jax.tree.map(ex.InputInfo.like, arguments))
    executable.save(folder / "native", native=True)
    executable.save(folder / "stablehlo")
    compiled = jax.jit(function).lower(*arguments).compile()
    (folder / "pickle").write_bytes(pickle.dumps(serialize_executable.serialize(compiled)))
    (folder / "loader").write_bytes(native_code(compiled).code)
    child(what, folder, "cache")


def first_call(what, folder, way):
    """Seconds from the arguments to the results, in this process."""
    function, arguments = subject(what)
    jax.block_until_ready(arguments)
    ex.Executable  # noqa: B018 - imported by now, as JAX is
    start = perf_counter()
    match way:
        case "native" | "stablehlo":
            run = ex.Executable.load(folder / way, trust_native_code=way == "native")
        case "pickle":
            run = serialize_executable.deserialize_and_load(*pickle.loads((folder / way).read_bytes()))
        case "loader":
            code, device = (folder / way).read_bytes(), jax.devices()[0]
            start = perf_counter()
            device.client.deserialize_executable(code, executable_devices=jax._src.lib.xla_client.DeviceList((device,)))
            return perf_counter() - start
        case _:
            run = jax.jit(function)
    jax.block_until_ready(run(*arguments))
    return perf_counter() - start


def child(what, folder, way):
    """The same in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.bench_files", what, str(folder), way]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[-1])


def measured(what):
    """Print the seconds of every way; the file's must be no slower than any of JAX's own."""
    name = what if what == SMALL else f"{what} layers"
    with TemporaryDirectory() as path:
        folder = Path(path)
        prepare(what, folder)
        # In turns: what else the machine does meanwhile falls on all of them.
        runs = [
            {way: child(what, folder, way) for way in WAYS if not turn or way not in COMPILES} for turn in range(RUNS)
        ]
        sizes = {way: sum(f.stat().st_size for f in [folder / way] if f.is_file()) for way in WAYS}
    seconds = {way: median(run[way] for run in runs if way in run) for way in WAYS}
    for way, text in WAYS.items():
        size = f"{sizes[way] / 1e6:8.1f} MB" if sizes[way] else ""
        print(f"{name}: {text:<42}{seconds[way] * 1e3:10.1f} ms{size}")
    for way in ("pickle", "cache"):
        # A few milliseconds are for the archive and its checksums, whatever is in it.
        ratio = median((run["native"] - ARCHIVE) / run[way] for run in runs)
        yield row(f"{name}: native load and first call, over {way}", ratio, 1.1, "×")


def main(layers="24"):
    held = [*measured(SMALL), *(measured(layers) if layers != "0" else ())]
    return all(held)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        what, folder, way = sys.argv[1:]
        if way == "cache":
            jax.config.update("jax_compilation_cache_dir", f"{folder}/cached")
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
            jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        print(first_call(what, Path(folder), way))
    else:
        sys.exit(not main(*sys.argv[1:]))
