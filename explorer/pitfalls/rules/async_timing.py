"""A clock around the call of a jitted function: the call returns before the device has computed anything."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from explorer._jax.arguments import is_jitted
from explorer.capture.sources import Span
from explorer.model.findings.finding import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource
from explorer.pitfalls.jits import is_users_jitted
from explorer.pitfalls.recorder import Call
from explorer.pitfalls.rule import Rule
from explorer.pitfalls.rules.host_transfer import BLOCKING
from explorer.pitfalls.syntax_trees import last_name

_CLOCKS = ("time", "perf_counter", "monotonic")
CLOCKS = tuple(f"time.{clock}{unit}" for clock in _CLOCKS for unit in ("", "_ns"))


def check(evidence: Evidence) -> Iterator[Finding]:
    for function, _, stop, jitted in timed_calls(evidence):
        if jitted is None:
            continue
        call = function.short(jitted)
        yield RULE.finding(
            f"the time up to here is that of starting `{call}`, not of computing it: a jitted function returns before "
            "the device is done",
            function=function,
            span=stop.span,
            evidence="nothing between the two clocks waits for the result",
            fix=f"jax.block_until_ready({call}) before the clock is read again; or explorer.time, which waits",
        )


def timed_calls(evidence: Evidence) -> Iterator[tuple[FunctionSource, Call, Call, ast.Call | None]]:
    """Where a function that isn't compiled itself asks a clock before and after it calls jitted ones.

    Yields:
        The function, the two calls of the clock, and a jitted call between them that nothing waits for, or None.
    """
    if is_jitted(evidence.target):
        return
    by_function: dict[int, tuple[FunctionSource, list[Call]]] = {}
    for call, function in evidence.calls(*CLOCKS):
        if function is not None:
            by_function.setdefault(id(function), (function, []))[1].append(call)
    for function, clocks in by_function.values():
        for start, stop in pairwise(sorted(clocks, key=lambda one: one.span)):
            between = _calls_between(function, start, stop)
            jitted = [node for node in between if is_users_jitted(function.resolve(node.func))]
            if jitted:
                waits = any(last_name(node.func) in BLOCKING for node in between)
                yield function, start, stop, None if waits else jitted[-1]


def _calls_between(function: FunctionSource, start: Call, stop: Call) -> list[ast.Call]:
    """In the order of their ends, which is that in which they are made."""
    calls = sorted(function.walk(ast.Call), key=lambda node: Span.of(node)[2:])
    return [node for node in calls if start.span[2:] < Span.of(node)[2:] < stop.span[2:]]


RULE = Rule(
    "async-timing",
    "EX031",
    "warning",
    "JAX computes while Python goes on: a clock that doesn't wait for the result measures the start of a call.",
    "https://docs.jax.dev/en/latest/async_dispatch.html",
    check,
)
