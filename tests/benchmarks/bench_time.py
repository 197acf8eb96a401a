"""Whether `ex.time` is right: against a timer written by hand, and whether its intervals hold the truth.

Both take turns in one run, so what slows the machine down slows both. Run it on a machine that does nothing else: the
truth itself moves where other programs come and go.

python -m tests.benchmarks.bench_time
"""

import gc
import sys
import time
from statistics import median

import jax
import jax.numpy as jnp

import explorer as ex
from tests.benchmarks.table import row

ROUNDS = 15
BLOCK = 0.2  # seconds of one block of the timer written by hand
CLOSE = 0.05
MISSED = 0.1


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


def measure():
    """Each function's name, and its rounds of `(samples by hand, Timing, samples by hand)`."""
    for name, (function, x) in functions().items():
        careful(function, x)
        yield (
            name,
            [(careful(function, x), ex.time(function, x, eager=False), careful(function, x)) for _ in range(ROUNDS)],
        )


def holds(timing, truth):
    return timing.steady.low <= truth <= timing.steady.high


def main():
    print(f"ex.time against a timer written by hand, {ROUNDS} runs each", flush=True)
    good, held, runs = True, 0, 0
    for name, rounds in measure():
        truth = median(one for before, _, after in rounds for one in (*before, *after))
        ratios = [timing.steady.median / median(before + after) for before, timing, after in rounds]
        good &= row(f"{name}, {1e3 * truth:.3g} ms: off by", abs(median(ratios) - 1), CLOSE, "×")
        inside = sum(holds(timing, truth) for _, timing, _ in rounds)
        # The truth of a moment is another one wherever the machine's load changes meanwhile; it is told for comparison.
        local = sum(holds(timing, median(before + after)) for before, timing, after in rounds)
        width = median(timing.steady.reach for _, timing, _ in rounds)
        print(
            f"    interval of ±{100 * width:.1f} %, holds the truth in {inside} of {len(rounds)}; "
            f"that of the moment in {local}",
            flush=True,
        )
        held, runs = held + inside, runs + len(rounds)
    good &= row(f"runs whose interval misses the truth, of {runs}", 1 - held / runs, MISSED, "×")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
