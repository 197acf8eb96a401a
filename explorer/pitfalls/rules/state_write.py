"""Writes to globals, closures, `self` and containers: they happen while the function is traced, and not again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.influence import is_private, reaches_program
from explorer.pitfalls.rule import Rule
from explorer.pitfalls.safe_text import safe_text
from explorer.pitfalls.state import Change
from explorer.pitfalls.writes import Write, holds_tracer, write_of


def check(evidence: Evidence) -> Iterator[Finding]:
    by_place: dict[tuple[str, object], list[tuple[Change, Write]]] = {}
    leaked = {path for path, _, _ in evidence.after.tracers()}
    for change in evidence.changes:
        write = write_of(evidence, change)
        if write is not None and not _is_same_number(change):
            by_place.setdefault((write.function.file, write.span), []).append((change, write))
    for made in by_place.values():
        # What was left behind traced is an error of its own: `leaked-tracer` says so.
        if not any(change.path in leaked or holds_tracer(evidence, change.after) for change, _ in made):
            yield _found(evidence, *made[0])


def _found(evidence: Evidence, change: Change, write: Write) -> Finding:
    name = change.holder_path if isinstance(write.node, ast.Call) or change.how == "content" else change.path
    before, after = safe_text(change.before), safe_text(change.after)
    seen = f"`{change.path}` was {before} before the trace and is {after} after it"
    if change.before is ...:
        seen = f"the trace left `{change.path}` = {after}"
    elif change.after is ...:
        seen = f"the trace took `{change.path}` away, which was {before}"
    elif change.how == "content":
        seen = f"the trace changed what is in `{change.path}`"
    return RULE.finding(
        f"`{write.text}` changes {name} while {evidence.name} is traced, and in no call after that",
        function=write.function,
        span=write.span,
        evidence=seen,
        fix=f"return the new value from {evidence.name}, and set {name} where it is called; arrays that it should keep "
        f"can be state of explorer.jit({evidence.name}, inputs=…, outputs=…)",
        severity="note" if _is_memo(write) or _is_bookkeeping(evidence, change, write) else None,
    )


def _is_same_number(change: Change) -> bool:
    """Whether it is the same number in another type: 100 and 100.0."""
    before, after = change.before, change.after
    return type(before) in (int, float) and type(after) in (int, float) and before == after


def _is_bookkeeping(evidence: Evidence, change: Change, write: Write) -> bool:
    """Whether an author counts or keeps something for themselves, and the program has nothing of it."""
    values = change.before, change.after
    return is_private(change.path) and not reaches_program(evidence, write.function, *values)


def _is_memo(write: Write) -> bool:
    """Whether it is done only where it wasn't yet: `if x is None`, `if key not in cache`, `setdefault`.

    A value kept for the next time, made once: tracing once does no harm.
    """
    match write.node:
        case ast.Call(func=ast.Attribute(attr="setdefault")):
            return True
        case _:
            pass
    tests = [outer.test for outer in write.function.around(write.node) if isinstance(outer, ast.If)]
    absences = (ast.Is, ast.NotIn)
    return any(isinstance(test, ast.Compare) and isinstance(test.ops[0], absences) for test in tests)


RULE = Rule(
    "state-write",
    "EX006",
    "warning",
    "What a compiled function writes outside of itself is written once, while it is traced.",
    "https://docs.jax.dev/en/latest/stateful-computations.html",
    check,
)
