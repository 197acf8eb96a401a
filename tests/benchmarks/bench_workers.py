"""A sweep of 64 compiles on two workers against one: alternating, and what the machine does beside.

python -m tests.benchmarks.bench_workers [points] [rounds]
"""

import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from time import perf_counter

import jax
import jax.numpy as jnp

import explorer as ex
from tests.benchmarks.table import row

LAYERS = 3
WIDTH = 16


def loss(weights, x, scale):
    for weight in weights:
        x = jnp.tanh(x @ weight) * scale
    return (x**2).sum()


def step(weights, x, scale):
    return jax.value_and_grad(loss)(weights, x, scale)


def swept(executor, points):
    arguments = [jnp.ones((WIDTH, WIDTH))] * LAYERS, jnp.ones((8, WIDTH))
    start = perf_counter()
    made = ex.sweep(step, *arguments, over={"scale": [*range(1, points + 1)]}, time=False, executor=executor)
    spent = perf_counter() - start
    assert not made.failed, made.failed[0].error
    return spent


def processor_seconds(pool):
    """What the pool's processes have taken."""
    fields = [Path(f"/proc/{number}/stat").read_text().rpartition(") ")[2].split() for number in pool._processes]
    return sum(int(field[11]) + int(field[12]) for field in fields) / os.sysconf("SC_CLK_TCK")


def main():
    points, rounds = [*map(int, sys.argv[1:]), *(64, 3)[len(sys.argv) - 1 :]]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as one, ProcessPoolExecutor(2, mp_context=context) as two:
        for executor in (one, two):  # workers start, and import JAX
            swept(executor, 4)
        before, start = processor_seconds(one), perf_counter()
        swept(one, points // 4)
        cores = (processor_seconds(one) - before) / (perf_counter() - start)
        ratios = []
        for turn in range(rounds):
            spent = {}
            for name, executor in (("one", one), ("two", two))[:: 1 if turn % 2 else -1]:
                spent[name] = swept(executor, points)
            ratios.append(spent["one"] / spent["two"])
            load = os.getloadavg()[0]
            print(
                f"  one {spent['one']:.1f} s, two {spent['two']:.1f} s: {ratios[-1]:.2f}×, load {load:.1f}", flush=True
            )
        here = swept(None, points)
    print(f"  without executor= {here:.1f} s; {os.cpu_count()} cores")
    print(f"  one worker kept {cores:.2f} of {os.cpu_count()} cores busy: what is left is what a second one can use")
    return row(f"{points} compiles: two workers' part of one's seconds", 1 / median(ratios), 1 / 1.7, "×")


if __name__ == "__main__":
    sys.exit(not main())
