"""Clocks: what they show while the function is traced is a constant of the compiled program."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.rule import Rule
from explorer.pitfalls.rules.async_timing import timed_calls

_CLOCKS = ("time", "perf_counter", "monotonic", "process_time", "thread_time", "clock_gettime")
_TIMES = (
    *(f"time.{clock}{unit}" for clock in _CLOCKS for unit in ("", "_ns")),
    *(f"time.{name}" for name in ("localtime", "gmtime", "ctime", "asctime", "strftime")),
    *(f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")),
    "datetime.date.today",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    # What measures jitted functions is no function to compile: `async-timing` looks at it.
    measuring = {id(call) for _, *clocks, _ in timed_calls(evidence) for call in clocks}
    for call, function in evidence.calls(*_TIMES):
        if id(call) in measuring:
            continue
        name = call.callee.removeprefix("datetime.")
        moment = datetime.fromtimestamp(evidence.started).strftime("%H:%M:%S on %Y-%m-%d")
        yield RULE.finding(
            f"{name}() is asked while {evidence.name} is traced: each later call sees that moment again",
            function=function,
            span=call.span,
            evidence=f"it was asked {call.times}, in a trace at {moment}",
            fix=f"ask {name}() outside of {evidence.name}, and pass it as an argument; to measure, ask it before and "
            f"after jax.block_until_ready({evidence.name}(…))",
        )
    for call, function in evidence.calls("time.sleep"):
        yield RULE.finding(
            f"time.sleep() waits while {evidence.name} is traced, and in no call after that",
            function=function,
            span=call.span,
            evidence=f"it waited {call.times}",
            fix=f"wait outside of {evidence.name}",
        )


RULE = Rule(
    "impure-time",
    "EX002",
    "warning",
    "A clock that a compiled function asks stands still: it shows the time of the trace.",
    "https://docs.jax.dev/en/latest/notebooks/Common_Gotchas_in_JAX.html#pure-functions",
    check,
)
