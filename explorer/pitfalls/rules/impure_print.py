"""print() and its kin: they run while the function is traced, once, and never when the compiled program runs."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import Any

from explorer.model.findings import Finding
from explorer.pitfalls.definite_prints import definite_prints
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.flow import list_traced, traced_in
from explorer.pitfalls.formats import as_format
from explorer.pitfalls.function_source import FunctionSource
from explorer.pitfalls.recorder import Call
from explorer.pitfalls.rule import Rule

_PRINTS = ("builtins.print", "pprint.pprint", "pprint.pp", "rich.print", "IPython.core.display_functions.display")
_STREAMS = ("_io.", "ipykernel.iostream.", "_pytest.capture.")
_STOPS = {
    "builtins.breakpoint": "jax.debug.breakpoint() stops while the program runs",
    "pdb.set_trace": "jax.debug.breakpoint() stops while the program runs",
    "builtins.input": "ask before the call, and pass the answer as an argument",
}
# Whatever level a logger is at now: what it writes at another, or on another day, it writes in the trace alone.
_LOGGING = frozenset(("debug", "info", "warning", "warn", "error", "exception", "critical", "fatal", "log"))


def check(evidence: Evidence) -> Iterator[Finding]:
    if evidence.recording is None:
        yield from (_finding(evidence, call, source, "print()") for call, source in definite_prints(evidence))
    for call, function in evidence.calls():
        name = _printing(call)
        if name:
            severity = "note" if name == "warnings.warn()" else ""
            yield _finding(evidence, call, function, name, severity)
    for call, function in evidence.calls(*_STOPS, "builtins.", "sys.", "ipykernel."):
        name = _stop(call, function)
        if name:
            yield _stopped(evidence, call, function, name)


def _printing(call: Call) -> str:
    """What prints, as a message names it; empty for a call of something else."""
    callee, name = call.callee, call.callee.rpartition(".")[2]
    if callee in _PRINTS:
        return f"{name}()"
    if callee.startswith(("logging.", "absl.logging.")):
        return f"logging's {name}()" if name in _LOGGING else ""
    if callee in ("warnings.warn", "_warnings.warn"):
        return "warnings.warn()"
    stream = _standard(call.receiver) if callee.startswith(_STREAMS) and name in ("write", "writelines") else ""
    return f"sys.{stream}.write()" if stream else ""


def _finding(evidence: Evidence, call: Call, function: FunctionSource | None, name: str, severity: str = "") -> Finding:
    node = function.call_at(call.span) if function is not None else None
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)] if node is not None else []
    shown = list(dict.fromkeys(name for argument in arguments for name in traced_in(argument, call.traced)))
    seen = f"it ran {call.times}, while {evidence.name} was traced"
    if shown:
        seen += (
            f", and showed tracers, not numbers: it was given {list_traced(call.traced, shown)}, which had no value yet"
        )
    return RULE.finding(
        f"{name} ran while {evidence.name} was traced, and runs in no call after that: calls 2, 3, … print nothing",
        function=function,
        span=call.span,
        evidence=seen,
        fix=_fix(name, function, node, shown),
        # What prints no traced value is often meant so: it tells when the function is traced.
        severity=severity or ("warning" if shown or node is None else "note"),
    )


def _fix(name: str, function: FunctionSource | None, node: ast.Call | None, shown: list[str]) -> str:
    is_plain = node is not None and name == "print()" and not node.keywords  # sep, end and file say more
    arguments = as_format(node.args) if node is not None and is_plain else ""
    if arguments:
        return f"jax.debug.print({arguments}) prints in each call, while the program runs"
    if not shown or node is None or function is None:
        return 'jax.debug.print("…") prints in each call; leave this where once per compile is what you want'
    values = ", ".join(shown)
    return f"jax.debug.callback(lambda {values}: {function.source(node)}, {values}) runs in each call"


def _standard(receiver: Any) -> str:
    streams = {"stdout": (sys.stdout, sys.__stdout__), "stderr": (sys.stderr, sys.__stderr__)}
    return next((name for name, files in streams.items() if any(receiver is file for file in files)), "")


def _stop(call: Call, function: FunctionSource | None) -> str:
    """`breakpoint`, `set_trace` or `input`, whatever stands for them here: a kernel has functions of its own."""
    if call.callee in _STOPS:
        return call.callee
    node = function.call_at(call.span) if function is not None else None
    name = f"builtins.{node.func.id}" if node is not None and isinstance(node.func, ast.Name) else ""
    is_own = node is not None and function is not None and function.is_builtin(node.func)
    return name if name in _STOPS and is_own else ""


def _stopped(evidence: Evidence, call: Call, function: FunctionSource | None, name: str) -> Finding:
    return RULE.finding(
        f"{name.rpartition('.')[2]}() ran while {evidence.name} was traced, and does not in later calls",
        function=function,
        span=call.span,
        evidence=f"it ran {call.times}, where traced values have no numbers",
        fix=_STOPS[name],
    )


RULE = Rule(
    "impure-print",
    "EX001",
    "warning",
    "What is printed in a compiled function is printed once, while it is traced.",
    "https://docs.jax.dev/en/latest/debugging/print_breakpoint.html",
    check,
    passive=True,
)
