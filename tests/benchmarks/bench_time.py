"""Whether `ex.time` is right: against a timer written by hand, and whether its intervals hold the truth.

An interval is of what a call takes while no other program wants the processor. Where others do, it may say that it is
too noisy; what it may not do is miss. Three judges:

- machines that are simulated, of which the truth is known, with ten kinds of neighbours: tests/benchmarks/noise.py;
- this machine with a neighbour, a process that burns a core for random periods and stands still for the timer by hand;
- this machine as it is, in turns with the timer by hand. It should do nothing else: the truth moves where others come
  and go.

python -m tests.benchmarks.bench_time [simulated|neighbour|alone]…
"""

import gc
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from statistics import median

import jax
import jax.numpy as jnp

import explorer as ex
from explorer.measure.disturbance import Observer
from tests.benchmarks.noise import KINDS, WORK, Machine, timed
from tests.benchmarks.table import row

ROUNDS = 15
BLOCK = 0.2  # seconds of one block of the timer written by hand
CLOSE = 0.05
MISSED = 0.1
TAIL = 0.01 * 0.693  # the median of a simulated machine's tail, as a part of its call
BURN = """
import os, random, sys, time
draw = random.Random(int(sys.argv[1]))
cores = sorted(os.sched_getaffinity(0))
while True:
    os.sched_setaffinity(0, [draw.choice(cores)])
    end = time.perf_counter() + draw.expovariate(1 / draw.choice([0.03, 0.3, 2.0]))
    while time.perf_counter() < end:
        sum(range(1000))
    time.sleep(draw.expovariate(1 / draw.choice([0.03, 0.3, 2.0])))
"""


def careful(function, *args):
    """A timer as one writes it with care: warm, waited for, no garbage collected, short calls in batches."""
    warm = []
    for _ in range(10):
        start = time.perf_counter()
        function(*args).block_until_ready()
        warm.append(time.perf_counter() - start)
    calls = max(1, int(2e-4 / min(warm)))
    samples = []
    gc.disable()
    try:
        end = time.perf_counter() + BLOCK
        while time.perf_counter() < end or len(samples) < 3:
            start = time.perf_counter()
            for _ in range(calls):
                function(*args).block_until_ready()
            samples.append((time.perf_counter() - start) / calls)
    finally:
        gc.enable()
    return samples[1:]  # the first refills the caches


def functions():
    """By how long they take, on two cores of a server."""
    key = jax.random.key(0)
    tokens = jax.random.normal(key, (16, 1000, 128))
    square, small, row_ = jax.random.normal(key, (640, 640)), jnp.ones(8), jax.random.normal(key, (32_000,))

    def chain(x):
        return jax.lax.fori_loop(0, 12, lambda _, y: jnp.tanh(y) * 1.01 + 0.1, x)

    return {
        "call of 8 numbers": (jax.jit(lambda x: x + 1), small),
        "tanh of 32,000": (jax.jit(lambda x: jnp.tanh(x) * 2), row_),
        "matmul 640×640": (jax.jit(lambda x: x @ x), square),
        "chain of 12 tanh over 2 M": (jax.jit(chain), tokens),
    }


def simulated():
    """Verdicts on machines that are simulated, by kind: pairs of a Samples and the truth."""
    Observer.best = WORK  # as after a moment of quiet in the same process
    for kind, neighbours in KINDS.items():
        pairs = []
        for number, (seconds, own) in enumerate((s, own) for s in (2e-4, 5e-3, 5e-2) for own in (1.0, 2.0)):
            machine = Machine(seconds, random.Random(f"{kind} {number}"), own=own, neighbours=neighbours)
            pairs.append((timed(machine), seconds * (1 + TAIL)))
        yield kind, pairs
    Observer.best = float("inf")


@contextmanager
def neighbour(seed):
    """A process that burns a core for random periods; gives what lets it run and what stops it."""
    process = subprocess.Popen([sys.executable, "-c", BURN, str(seed)])
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield lambda: os.kill(process.pid, signal.SIGCONT), lambda: os.kill(process.pid, signal.SIGSTOP)
    finally:
        process.kill()
        process.wait()


def beside(wake=lambda: None, stop=lambda: None):
    """Verdicts on this machine, by function: pairs of a Samples and the truth of the moment, by hand."""
    for name, (function, x) in functions().items():
        careful(function, x)
        pairs = []
        for _ in range(ROUNDS):
            before = careful(function, x)
            wake()
            timing = ex.time(function, x, eager=False)
            stop()
            pairs.append((timing.steady, median(before + careful(function, x))))
        truth = median(truth for _, truth in pairs)
        yield f"{name}, {1e3 * truth:.3g} ms", pairs


def judge(title, verdicts, is_about_the_middle=False):
    """Print a row for each kind, and whether few enough runs miss."""
    print(title, flush=True)
    good, missed, noisy, runs = True, 0, 0, 0
    for name, pairs in verdicts:
        told = [(samples, truth) for samples, truth in pairs if not samples.is_too_noisy]
        inside = sum(samples.low <= truth <= samples.high for samples, truth in told)
        if is_about_the_middle and told:
            good &= row(f"  {name}: off by", abs(median(s.median / truth for s, truth in told) - 1), CLOSE, "×")
        width = f"±{100 * median(samples.reach for samples, _ in told):.1f} %" if told else "none"
        away = [f"{samples.median / truth:.2f}" for samples, truth in told if not samples.low <= truth <= samples.high]
        print(
            f"    {name}: of {len(pairs)} runs {inside} hold the truth ({width}), "
            f"{len(pairs) - len(told)} are too noisy{', missed: ' if away else ''}{' '.join(away)}",
            flush=True,
        )
        missed, noisy, runs = missed + len(told) - inside, noisy + len(pairs) - len(told), runs + len(pairs)
    if runs > noisy:
        print(f"  of those that claim something {missed / (runs - noisy):.1%} miss", flush=True)
    return good & row(f"  runs whose interval misses the truth, of {runs}", missed / runs, MISSED, "×")


def main(*parts):
    good = True
    if not parts or "simulated" in parts:
        good &= judge("machines that are simulated", simulated())
    if not parts or "neighbour" in parts:
        with neighbour(0) as (wake, stop):
            good &= judge("beside a program that comes and goes", beside(wake, stop))
    if not parts or "alone" in parts:
        good &= judge("against a timer written by hand", beside(), is_about_the_middle=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
