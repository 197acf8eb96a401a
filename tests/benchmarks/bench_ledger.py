"""What a watch costs those who are watched: calls that JAX knows, calls that compile, calls that always miss.

python -m tests.benchmarks.bench_ledger [storm]
"""

import sys
from statistics import median
from time import perf_counter

import jax
import jax.numpy as jnp
import numpy as np

import explorer as ex
from explorer.ledger.recorder import recorder
from tests.benchmarks.table import row

ROUNDS = 101
LEAVES = 300
STORM = 2_000


def in_turns(run, calls):
    """How many times as long a call takes while it is watched, and how many seconds more.

    The medians over rounds, each of both, which one first in turns.
    """
    spent = {True: [], False: []}
    for turn in range(ROUNDS):
        for watched in (True, False) if turn % 2 else (False, True):
            watch = ex.watch(storm=0) if watched else None
            run()
            start = perf_counter()
            for _ in range(calls):
                run()
            spent[watched].append((perf_counter() - start) / calls)
            if watch is not None:
                watch.stop()
    rounds = list(zip(spent[True], spent[False], strict=True))
    return median(on / off for on, off in rounds), median(on - off for on, off in rounds)


def cached_calls():
    """Of a function of one small array, and of one of many."""
    x = jnp.ones((2, 2))
    for what, function, argument, calls in (
        ("2×2", lambda x: x + 1, x, 2000),
        (f"{LEAVES} leaves", sum, {f"w{i}": x for i in range(LEAVES)}, 100),
    ):
        jitted = jax.jit(function if what == "2×2" else lambda tree: function(tree.values()))  # noqa: B023 - used here
        jitted(argument)
        ratio, _ = in_turns(lambda j=jitted, a=argument: j(a), calls)
        yield row(f"cached call of a watched function, {what}, over unwatched", ratio, 1.02, "×")


def per_call(run, calls):
    """Seconds that the ledger itself took for each of some calls that build, as it counts them; the median."""
    spent = []
    for i in range(calls):
        before = recorder.spent
        run(i)
        spent.append(recorder.spent - before)
    return median(spent), max(spent)


def compiles(storm):
    """What a compile waits for the ledger: for few and many arguments, and with thousands of others before it."""
    small = jax.jit(lambda x: x * 2)
    large = jax.jit(lambda tree: tree["w0"] * 2)
    lots = [{f"w{i}": np.ones((2 + size, 3), "float32") for i in range(LEAVES)} for size in range(20)]
    others = [{f"w{i}": np.ones((2 + (i + size) % 37, 3), "float32") for i in range(LEAVES)} for size in range(20)]
    for tree in (*lots, *others):
        for name in tree:
            tree[name] = jnp.asarray(tree[name])
    with ex.watch(storm=0):
        for name, run, calls in (
            ("one argument", lambda i: small(np.ones(i + 1, "float32")), 30),
            (f"{LEAVES} leaves, all of a new size", lambda i: large(lots[i]), 20),
            (f"{LEAVES} leaves, each changed in its own way", lambda i: large(others[i]), 20),
        ):
            middle, _ = per_call(run, calls)
            yield row(f"the ledger's own time in a compile, {name}", middle, 1e-3, "µs")

        # Only traced: that is all that the ledger tells from a compile, and thousands of those would take minutes.
        def storms(i):
            small.trace(jax.ShapeDtypeStruct((i + 50, 7), "float32"))

        per_call(storms, storm - 200)
        middle, _ = per_call(lambda i: storms(i + storm), 200)
        yield row(f"the ledger's own time after {storm} others", middle, 1e-3, "µs")

        def lambdas(i):
            jax.jit(lambda x: x * 2).trace(jax.ShapeDtypeStruct((7,), "float32"))

        per_call(lambdas, storm - 200)
        middle, _ = per_call(lambdas, 200)
        yield row(f"the same for {storm} lambdas", middle, 1e-3, "µs")


def misses():
    """Of calls that go through JAX's Python each time, as they do with this setting; most by far do so for effects."""
    add, x = jax.jit(lambda x: x + 1), jnp.ones((2, 2))
    with jax.debug_key_reuse(True):
        add(x)
        ratio, more = in_turns(lambda: add(x), 200)
    print(f"a watched call that always leaves the fast path takes {ratio:.3f} × as long", flush=True)
    return row("what a watch adds to a call that always misses", more, 10e-6, "µs")


def main(storm=STORM):
    held = [*cached_calls(), *compiles(storm), misses()]
    return all(held)


if __name__ == "__main__":
    sys.exit(not main(*map(int, sys.argv[1:])))
