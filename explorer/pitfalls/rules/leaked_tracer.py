"""A traced value that outlives its trace: whoever uses it later gets an UnexpectedTracerError."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from explorer.model.findings.finding import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.rule import Rule
from explorer.pitfalls.safe_text import safe_text
from explorer.pitfalls.state import Change, Container
from explorer.pitfalls.writes import Write, write_of


def check(evidence: Evidence) -> Iterator[Finding]:
    earlier = {id(value) for _, value, _ in evidence.before.tracers()}
    seen: dict[object, int] = {}
    for path, value, holder in evidence.after.tracers():
        if id(value) in earlier:
            yield _from_before(evidence, path, value)
            continue
        change = _change(evidence, path, value, holder)
        write = write_of(evidence, change)
        place: object = path if write is None else (write.function.file, write.span)
        seen[place] = seen.get(place, 0) + 1
        if seen[place] == 1:  # a list of a hundred is one mistake
            yield _left(evidence, path, value, write)


def _change(evidence: Evidence, path: str, value: Any, holder: Container) -> Change:
    """The change that brought a value there: that of the container which was there before."""
    changes = evidence.changes
    exact = next((one for one in changes if one.path == path), None)
    outer = next((one for one in changes if one.how == "set" and path.startswith(one.path)), None)
    return exact or outer or Change(path, ..., value, "set", holder.value, holder.path)


def _left(evidence: Evidence, path: str, value: Any, write: Write | None) -> Finding:
    function = write.function if write is not None else next(iter(evidence.functions), None)
    return RULE.finding(
        f"{evidence.name} leaves a traced value in `{path}`: using it after the trace is an error",
        function=function,
        span=write.span if write is not None else None if function is None else function.header,
        evidence=f"after the trace `{path}` is {safe_text(value)}, which stands for no numbers any more",
        fix=f"return it from {evidence.name} instead, and set {path.partition('[')[0]} where {evidence.name} is called",
    )


def _from_before(evidence: Evidence, path: str, value: Any) -> Finding:
    function = next(iter(evidence.functions), None)
    return RULE.finding(
        f"`{path}` holds a traced value that an earlier trace left: {evidence.name} can't compute with it",
        function=function,
        span=None if function is None else function.header,
        evidence=f"before the trace `{path}` was {safe_text(value)} already",
        fix=f"set {path.partition('[')[0]} anew, and return what is to be kept from the function that set it",
    )


RULE = Rule(
    "leaked-tracer",
    "EX007",
    "error",
    "A value that stands for numbers only while a function is traced was kept, and can't be used afterwards.",
    "https://docs.jax.dev/en/latest/errors.html#jax.errors.UnexpectedTracerError",
    check,
)
