"""What a profile costs: the calls while they are profiled, then the hundred thousand instructions of a training step.

python -m tests.benchmarks.bench_profile [layers] [repeats]
"""

import sys
from gc import collect
from statistics import median
from time import perf_counter

import jax
import jax.numpy as jnp

from explorer._jax.profiling import profiling, read_profile
from explorer.analysis.profile_events import events_of
from explorer.analysis.profile_rows import build_profile
from explorer.measure.calls import Calls, ready
from explorer.measure.profile import captures_of, profiled_call, record
from tests.benchmarks.table import row
from tests.examples.training import training_step

PAIRS = 40
SIZE = 768


def chain(x):
    """A function of some 10 ms whose kernels hand work to other threads, in a loop."""

    def body(carry, _):
        return jnp.tanh(carry @ x) * 0.5, carry.sum()

    last, sums = jax.lax.scan(body, x, None, length=8)
    return last.sum() + sums.sum()


def seconds_of(calls, times):
    start = perf_counter()
    for _ in range(times):
        ready(calls.call())
    return (perf_counter() - start) / times


def overhead():
    """Seconds of a call, plain and profiled, in turn; the ratio of each pair is free of what both meet."""
    calls = Calls(jax.jit(chain), (jnp.ones((SIZE, SIZE)) * 0.01,), {})
    calls.first()
    seconds_of(calls, 3)
    plain, ratios = [], []
    for turn in range(PAIRS):
        times = {}
        for is_profiled in (True, False) if turn % 2 else (False, True):
            if is_profiled:
                with profiling():
                    times[True] = seconds_of(calls, 3)
            else:
                times[False] = seconds_of(calls, 3)
        plain.append(times[False])
        ratios.append(times[True] / times[False])
    return median(plain), median(ratios)


def attribution(layers, repeats):
    """Seconds from what the profiler gave to events, and from these and the capture to a profile; counts."""
    step, arguments = training_step(layers)
    target = profiled_call(jax.jit(step), arguments, {}, None)
    calls = Calls(target.call, target.args, target.kwargs)
    calls.first()
    with profiling() as recording:
        record(calls, 3)
    captures = captures_of(target, events_of(read_profile(recording.data).planes))
    graph = next(iter(captures.values())).hlo.graph  # the text is read by now: a benchmark of its own
    _ = graph.measures
    reads, builds = [], []
    for _ in range(repeats):
        collect()
        start = perf_counter()
        events = events_of(read_profile(recording.data).planes)
        reads.append(perf_counter() - start)
        start = perf_counter()
        found = build_profile("step", "", events, captures)
        builds.append(perf_counter() - start)
    total = sum(line.seconds for line in found.lines) + found.unattributed
    return median(reads), median(builds), len(graph), len(events), abs(total / found.device_seconds - 1), found


def main(layers=24, repeats=5):
    call, ratio = overhead()
    print(f"a call of {call * 1e3:.1f} ms, JAX {jax.__version__}\n")
    held = [row("profiled over plain calls", ratio, 1.10, "×")]
    reads, builds, instructions, events, away, found = attribution(layers, repeats)
    print(f"\n{layers} layers, {instructions:,} instructions, {events:,} events of 3 calls")
    print(f"reading the events {reads:.2f} s, attributing them {builds:.2f} s\n")
    held += [
        row("what the profiler gave to a profile with lines", reads + builds, 2.0, "s"),
        row("lines over the device's time, less one", away, 0.02, "×"),
        row("of it no line is known for", found.unattributed / found.device_seconds, 0.02, "×"),
    ]
    return all(held)


if __name__ == "__main__":
    sys.exit(not main(*map(int, sys.argv[1:])))
