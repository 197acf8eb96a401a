"""What stays in memory: of 200,000 calls, and of 1,000 functions that are compiled, called and dropped. JAX beside.

python -m tests.benchmarks.bench_memory [calls] [drops]

Each in a process of its own. Every function that is dropped closes over an array of its own of 256 KiB, so that a
closure that stays shows. The rest that grows is JAX's and XLA's own: jax.jit is given the same functions.
"""

import gc
import json
import os
import resource
import subprocess
import sys
import weakref
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import explorer as ex
from tests.benchmarks.table import row

CALLS, DROPS = 200_000, 1_000
WARM = 100  # functions, after which JAX's caches of a fixed size are full enough
HELD = 2**16  # numbers in each closure
X = np.ones(4, np.float32)
INFO = ex.InputInfo((4,), "float32")
RANGE = ex.InputInfo(((1, 4, 8),), "float32")


def fresh(seed):
    """A function that closes over an array of its own, and a weak reference to that."""
    held = np.full(HELD, seed, np.float32)

    def function(x):
        return x * 2 + held.shape[0]

    return function, weakref.ref(held)


def with_state(function):
    state = {"total": jnp.zeros(4)}

    @ex.jit(inputs=state, outputs=state)
    def advance(x):
        state["total"] = state["total"] + function(x)
        return x

    return advance


KINDS = {
    "jax.jit": jax.jit,
    "compile, one shape": lambda f: ex.compile(f, args=[INFO]),
    "compile, a range": lambda f: ex.compile(f, args=[RANGE]),
    "jit": ex.jit,
    "jit with state": with_state,
}


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def called(kind, count):
    """Bytes that so many calls of one function leave."""
    compiled, x = KINDS[kind](fresh(0)[0]), jnp.asarray(X)
    for _ in range(count // 20):
        compiled(x)
    gc.collect()
    before = resident()
    for _ in range(count):
        compiled(x)
    gc.collect()
    return {"bytes": resident() - before}


def dropped(kind, count):
    """Bytes that so many functions leave, and how many closures nobody but the garbage collector can free."""
    make, x = KINDS[kind], jnp.asarray(X)

    def once(seed):
        function, held = fresh(seed)
        make(function)(x)
        return held

    for seed in range(WARM):
        once(seed)
    gc.collect()
    before = resident()
    for seed in range(count):
        once(seed)
    gc.collect()
    after = resident()
    gc.disable()
    left = sum(once(seed)() is not None for seed in range(10))
    return {"bytes": after - before, "left": left}


def child(what, kind, count):
    command = [sys.executable, "-m", "tests.benchmarks.bench_memory", what, kind, str(count)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ)
    return json.loads(done.stdout.splitlines()[-1])


def main(calls=CALLS, drops=DROPS):
    held = []
    for kind in KINDS:
        grown = child("calls", kind, calls)["bytes"]
        held.append(row(f"{calls:,} calls, {kind}", grown, 1e6, "MB"))
    by_jax = None
    for kind in KINDS:
        measured = child("drops", kind, drops)
        by_jax = measured if by_jax is None else by_jax
        held.append(row(f"{drops:,} compiled and dropped, {kind}", measured["bytes"], by_jax["bytes"] + 2e6, "MB"))
        print(f"  of 10 closures {measured['left']} are left while the garbage collector is off")
        held.append(measured["left"] <= by_jax["left"])
    return all(held)


if __name__ == "__main__":
    if sys.argv[1:2] in (["calls"], ["drops"]):
        what, kind, count = sys.argv[1:]
        print(json.dumps((called if what == "calls" else dropped)(kind, int(count))))
    else:
        sys.exit(not main(*map(int, sys.argv[1:])))
