"""What compile(), its executables and jit() cost: ratios to plain JAX within one run.

python -m tests.benchmarks.bench_compile [layers]
"""

import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import jax
import jax.numpy as jnp

import explorer as ex
from tests.benchmarks.table import row
from tests.examples.training import training_step

ROUNDS = 61
LEAVES = 100
CAPTURED = 20

# A fresh process, as after a deployment: what it prints are the seconds of a load and the first call.
LOAD_AND_CALL = """
import sys
from time import perf_counter
import jax
import explorer as ex
from tests.examples.training import training_step
_, arguments = training_step(int(sys.argv[2]))
jax.block_until_ready(arguments)
ex.Executable  # imported by now
start = perf_counter()
step = ex.Executable.load(sys.argv[1], trust_native_code=sys.argv[3] == "trusted")
jax.block_until_ready(step(*arguments))
print(perf_counter() - start)
"""


def ratio(run, baseline, calls):
    """How many times as long one takes as the other: the median over rounds, each round half and half, in turns."""
    found = []
    for turn in range(ROUNDS):
        spent = {}
        for function in (run, baseline) if turn % 2 else (baseline, run):
            start = perf_counter()
            for _ in range(calls):
                function()
            spent[function] = perf_counter() - start
        found.append(spent[run] / spent[baseline])
    return median(found)


def cached_calls():
    """Of executables for one shape and for a range, on a 2×2 array and on a list of a hundred."""
    x = jnp.ones((2, 2))
    rows = ex.NamedDimension("rows", 1, 2, 8)
    for name, shape in (("one shape", (2, 2)), ("a range", (rows, 2))):
        info = ex.InputInfo(shape, x.dtype)
        for what, function, argument, described, calls in (
            ("2×2", lambda x: x + 1, x, info, 1000),
            (f"{LEAVES} leaves", sum, [x] * LEAVES, [info] * LEAVES, 200),
        ):
            executable, jitted = ex.compile(function, args=[described]), jax.jit(function)
            executable(argument), jitted(argument)
            measured = ratio(lambda e=executable, a=argument: e(a), lambda j=jitted, a=argument: j(a), calls)
            yield row(f"cached call, {name}, {what}, over jax.jit", measured, 1.10, "×")


def captured_state():
    """Of jit() with its state captured, to handing the same arrays in and out."""
    state = [jnp.ones((2, 2)) for _ in range(CAPTURED)]
    own = list(state)

    def advance(state, x):
        return [one + x for one in state]

    @ex.jit(inputs=state, outputs=state)
    def captured(x):
        state[:] = advance(state, x)

    by_hand = jax.jit(advance)
    x = jnp.ones((2, 2))

    def hand():
        own[:] = by_hand(own, x)

    captured(x), hand()
    return row(f"jit(), {CAPTURED} captured arrays, over by hand", ratio(lambda: captured(x), hand, 100), 1.3, "×")


def loading(layers):
    """Of a training step from a file, in a fresh process: its load and first call, to its compile."""
    step, arguments = training_step(layers)
    described = jax.tree.map(ex.InputInfo.like, arguments)
    start = perf_counter()
    executable = ex.compile(step, args=described)
    jax.block_until_ready(executable(*arguments))
    compiled = perf_counter() - start
    with TemporaryDirectory() as folder:
        path = Path(folder) / "step.explorer"
        executable.save(path, native=True)

        def seconds(trust):
            command = [sys.executable, "-c", LOAD_AND_CALL, str(path), str(layers), trust]
            runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(3)]
            return median(float(run.stdout) for run in runs)

        trusted, recompiled = seconds("trusted"), seconds("not")
        size = path.stat().st_size
    print(
        f"{layers} layers: compile {compiled:.2f} s; load and first call {trusted:.3f} s native, {recompiled:.2f} s not"
    )
    print(f"the file has {size / 1e6:.1f} MB")
    yield row("native load and first call, over compiling", trusted / compiled, 1 / 20, "×")
    yield row("other load and first call, over compiling", recompiled / compiled, 1.0, "×")


def main(layers=4):
    held = [*cached_calls(), captured_state(), *loading(layers)]
    return all(held)


if __name__ == "__main__":
    sys.exit(not main(*map(int, sys.argv[1:])))
