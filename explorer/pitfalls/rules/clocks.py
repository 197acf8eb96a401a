"""Rules about clocks that are read while tracing, and around calls of compiled functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise

from explorer._jax.arguments import is_jitted
from explorer.capture.sources import Span
from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource, is_users_jitted, last_name
from explorer.pitfalls.recorder import Call
from explorer.pitfalls.rule import rule
from explorer.pitfalls.rules.slow_calls import BLOCKING

_CLOCKS = ("time", "perf_counter", "monotonic", "process_time", "thread_time", "clock_gettime")
_TIMES = (
    *(f"time.{clock}{unit}" for clock in _CLOCKS for unit in ("", "_ns")),
    *(f"time.{name}" for name in ("localtime", "gmtime", "ctime", "asctime", "strftime")),
    *(f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")),
    "datetime.date.today",
)


@rule("impure-time", "EX002", "warning", "notebooks/Common_Gotchas_in_JAX.html#pure-functions")
def impure_time(evidence: Evidence) -> Iterator[Finding]:
    """A clock in a compiled function always shows the time of the trace.

    The time that was read while tracing is a constant of the compiled program.
    """
    # A function that measures jitted functions isn't meant to be compiled: `async-timing` checks it.
    measuring = {id(call) for _, *clocks, _ in timed_calls(evidence) for call in clocks}
    for call, function, _ in evidence.calls:
        if call.callee not in _TIMES or id(call) in measuring:
            continue
        name = call.callee.removeprefix("datetime.")
        moment = datetime.fromtimestamp(evidence.started).strftime("%H:%M:%S on %Y-%m-%d")
        yield impure_time.finding(
            f"{name}() is asked while {evidence.name} is traced: each later call sees that moment again",
            at=(function, call.span),
            evidence=f"it was asked {call.times}, in a trace at {moment}",
            fix=f"ask {name}() outside of {evidence.name}, and pass it as an argument; to measure, ask it before and "
            f"after jax.block_until_ready({evidence.name}(…))",
        )
    for call, function in [(call, at) for call, at, _ in evidence.calls if call.callee == "time.sleep"]:
        yield impure_time.finding(
            f"time.sleep() waits while {evidence.name} is traced, and in no call after that",
            at=(function, call.span),
            evidence=f"it waited {call.times}",
            fix=f"wait outside of {evidence.name}",
        )


_MEASURING = tuple(f"time.{clock}{unit}" for clock in ("time", "perf_counter", "monotonic") for unit in ("", "_ns"))


@rule("async-timing", "EX031", "warning", "async_dispatch.html")
def async_timing(evidence: Evidence) -> Iterator[Finding]:
    """A clock that doesn't wait for the result measures only the start of a call.

    A jitted function returns before the device has computed anything.
    """
    for function, _, stop, jitted in timed_calls(evidence):
        if jitted is None:
            continue
        call = function.short(jitted)
        yield async_timing.finding(
            f"the time up to here is that of starting `{call}`, not of computing it: a jitted function returns before "
            "the device is done",
            at=(function, stop.span),
            evidence="nothing between the two clocks waits for the result",
            fix=f"jax.block_until_ready({call}) before the clock is read again; or explorer.time, which waits",
        )


def timed_calls(evidence: Evidence) -> Iterator[tuple[FunctionSource, Call, Call, ast.Call | None]]:
    """Find functions that aren't compiled and read a clock before and after a jitted call.

    Yields:
        The function, the two clock calls, and a jitted call between them whose result isn't awaited, or None.
    """
    by_function: dict[int, tuple[FunctionSource, list[Call]]] = {}
    for call, function, _ in evidence.calls:
        if function is not None and call.callee in _MEASURING:
            by_function.setdefault(id(function), (function, []))[1].append(call)
    if not by_function or is_jitted(evidence.target):
        return
    for function, clocks in by_function.values():
        for start, stop in pairwise(sorted(clocks, key=lambda one: one.span)):
            between = _calls_between(function, start, stop)
            jitted = [node for node in between if is_users_jitted(function.resolve(node.func))]
            if jitted:
                waits = any(last_name(node.func) in BLOCKING for node in between)
                yield function, start, stop, None if waits else jitted[-1]


def _calls_between(function: FunctionSource, start: Call, stop: Call) -> list[ast.Call]:
    """Return the calls between two clocks, ordered by their ends, which is the order of execution."""
    calls = sorted(function.calls, key=lambda node: Span.of(node)[2:])
    return [node for node in calls if start.span[2:] < Span.of(node)[2:] < stop.span[2:]]
