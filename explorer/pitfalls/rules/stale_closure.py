"""Globals, closures and attributes that a function reads: the compiled program keeps the values of its trace."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explorer.model.findings.finding import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.later_assignments import Rewrite, rewrites
from explorer.pitfalls.reads import Read, holds_data, is_constant, reads
from explorer.pitfalls.rule import Rule
from explorer.pitfalls.safe import is_exactly
from explorer.pitfalls.safe_text import safe_text

__all__ = ["RULE", "stale"]


def check(evidence: Evidence) -> Iterator[Finding]:
    written = {change.path for change in evidence.changes}
    for read in reads(evidence):
        # What never changes is as good as a constant: saying so for each would hide what matters.
        if not any(read.path == path or path.startswith((f"{read.path}[", f"{read.path}.")) for path in written):
            rewrite = next(rewrites(read, evidence), None)
            is_data = holds_data(read.value) or (not read.value and not is_constant(read.root))
            if rewrite is not None and is_data:
                yield _found(evidence, read, rewrite)
            elif _is_changeable(read):
                yield _may_change(evidence, read)


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


def _found(evidence: Evidence, read: Read, rewrite: Rewrite) -> Finding:
    return RULE.finding(
        f"{evidence.name} reads `{read.text}` while it is traced, and keeps what it was then: "
        f"`{rewrite.text}` in {rewrite.place} is not seen by a compiled {evidence.name}",
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
    was, known = safe_text(read.value), safe_text(now)
    if now is read.value:
        return f"what is in `{read.text}` is not what it was at the trace"
    if was == known:  # an array's numbers may be on a device: they aren't told
        return f"`{read.text}` was {was} at the trace, and another {known} is there now"
    return f"`{read.text}` was {was} at the trace and is {known} now"


def _fix(name: str, read: Read) -> str:
    key = (
        read.node.slice.value
        if isinstance(read.node, ast.Subscript) and isinstance(read.node.slice, ast.Constant)
        else ""
    )
    is_name = isinstance(key, str) and key.isidentifier()
    argument = key if is_name else read.text.partition("[")[0].rpartition(".")[2]
    return (
        f"pass it as an argument: def {name}(…, {argument}), called as {name}(…, {read.text}); "
        f"or hold it as state: explorer.jit({name}, inputs=…)"
    )


RULE = Rule(
    "stale-closure",
    "EX005",
    "warning",
    "What a compiled function reads from outside is read once, while it is traced.",
    "https://docs.jax.dev/en/latest/notebooks/Common_Gotchas_in_JAX.html#pure-functions",
    check,
)
