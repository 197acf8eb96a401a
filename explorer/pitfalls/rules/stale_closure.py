"""Globals, closures and attributes that a function reads: the compiled program keeps the values of its trace."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from keyword import iskeyword
from typing import Any

from explorer.capture.hot_functions import hot_status
from explorer.capture.safe_reading import is_exactly
from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.influence import is_private, reaches_program
from explorer.pitfalls.later_assignments import LaterAssignment, later_assignments
from explorer.pitfalls.reads import Read, holds_data, is_constant, reads
from explorer.pitfalls.rule import Rule
from explorer.pitfalls.safe_text import safe_text
from explorer.pitfalls.writes import MUTATORS


def check(evidence: Evidence) -> Iterator[Finding]:
    if not evidence.is_jitted and is_guarded(evidence.function):
        return
    for read in reads(evidence):
        if _is_written(evidence, read):
            continue  # `state-write` says so
        if _is_own_stack(evidence, read):
            continue
        # What an author keeps to themselves is theirs to know, as long as no number of it is in the program.
        if is_private(read.text) and not reaches_program(evidence, read.function, read.value):
            continue
        # What never changes is as good as a constant: saying so for each would hide what matters.
        assignment = next(later_assignments(read, evidence), None)
        is_data = holds_data(read.value) or (not read.value and not is_constant(read.root))
        if assignment is not None and is_data:
            yield _changed_later(evidence, read, assignment)
        elif _is_changeable(read):
            yield _may_change(evidence, read)


def is_guarded(function: Any) -> bool:
    """Whether hot paths are on and compile this function, if anybody does: they check at each call what it reads."""
    status = hot_status(function)
    return status is not None and status.is_on and status.row.state != "eager"


def _is_written(evidence: Evidence, read: Read) -> bool:
    paths = (change.path for change in evidence.changes)
    return any(path == read.path or path.startswith((f"{read.path}[", f"{read.path}.")) for path in paths)


def _is_own_stack(evidence: Evidence, read: Read) -> bool:
    """Whether what is in it is what the trace put there: it is empty before and after, and is pushed to meanwhile."""
    is_empty = is_exactly(read.value, list, dict, set) and not read.value
    return is_empty and any(
        call.receiver is read.value and call.callee.rpartition(".")[2] in MUTATORS for call, _ in evidence.calls()
    )


def _is_changeable(read: Read) -> bool:
    """Whether it is in a list or a dict, which are there to be changed, unless they are called constants."""
    container = read.holder if is_exactly(read.holder, list, dict) else read.value
    return is_exactly(container, list, dict) and not is_constant(read.root) and holds_data(container)


def _may_change(evidence: Evidence, read: Read) -> Finding:
    return RULE.finding(
        f"{evidence.name} reads `{read.text}` while it is traced, and keeps what it was then: if it is changed, a "
        f"compiled {evidence.name} doesn't see it",
        function=read.function,
        span=read.span,
        evidence=f"at the trace `{read.text}` was {safe_text(read.value)}; nothing in this file changes it later",
        fix=_fix(evidence.name, read),
        severity="note",
    )


def _changed_later(evidence: Evidence, read: Read, assignment: LaterAssignment) -> Finding:
    return RULE.finding(
        f"{evidence.name} reads `{read.text}` while it is traced, and keeps what it was then: "
        f"`{assignment.text}` in {assignment.place} is not seen by a compiled {evidence.name}",
        function=read.function,
        span=read.span,
        evidence=f"at the trace `{read.text}` was {safe_text(read.value)}, which is a constant of the program now",
        fix=_fix(evidence.name, read),
    )


def stale(name: str, read: Read, now: object) -> Finding:
    """The finding about a value that has changed since the trace."""
    return RULE.finding(
        f"stale now: a compiled {name} still uses the `{read.text}` of its trace, which has changed since",
        function=read.function,
        span=read.span,
        evidence=_changed(read, now),
        fix=_fix(name, read),
        severity="error",
    )


def _changed(read: Read, now: object) -> str:
    before, after = safe_text(read.value), safe_text(now)
    if now is read.value:
        return f"what is in `{read.text}` is not what it was at the trace"
    if before == after:  # an array's numbers may be on a device, and aren't in its text
        return f"`{read.text}` was {before} at the trace, and another {after} is there now"
    return f"`{read.text}` was {before} at the trace and is {after} now"


def _fix(name: str, read: Read) -> str:
    argument = _argument(read)
    instead = "" if argument == read.text else f", with {argument} in the place of {read.text}"
    return (
        f"pass it as an argument: def {name}(…, {argument}){instead}, called as {name}(…, {read.text}); "
        f"or hold it as state: explorer.jit({name}, inputs=…)"
    )


def _argument(read: Read) -> str:
    """A name for what was read: `rate` of `settings["rate"]`, `rates_0` of `rates[0]`."""
    match read.node:
        case ast.Subscript(slice=ast.Constant(value=str() as key)) if key.isidentifier() and not iskeyword(key):
            return key
        case ast.Subscript(slice=ast.Constant(value=int() as key)) if key >= 0:
            return f"{_last(read.text)}_{key}"
        case ast.Subscript():
            return f"{_last(read.text)}_item"
        case _:
            return _last(read.text)


def _last(path: str) -> str:
    return path.partition("[")[0].rpartition(".")[2]


RULE = Rule(
    "stale-closure",
    "EX005",
    "warning",
    "What a compiled function reads from outside is read once, while it is traced.",
    "https://docs.jax.dev/en/latest/notebooks/Common_Gotchas_in_JAX.html#pure-functions",
    check,
)
