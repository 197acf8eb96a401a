"""`if`, `float()`, `range()` and their like on a traced value: the trace ends there, for it has no value yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax

from explorer.capture.trace_errors import Refusal, refusal
from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.locations import span_location
from explorer.pitfalls.rule import Rule


def check(evidence: Evidence) -> Iterator[Finding]:
    error = evidence.error
    refused = refusal(error) if error is not None else None
    if error is None or refused is None or needs_size(error):
        return
    names = ", ".join(f'"{name}"' for name in refused.counts if name.isidentifier())
    constant = f"\nor, if it may be a constant, jax.jit({evidence.name}, static_argnames=({names},))" if names else ""
    yield RULE.finding(
        f"{evidence.name} can't be traced: {refused.problem}",
        evidence=_evidence(error, refused),
        fix=refused.hint + constant,
        **refused_at(refused),
    )


def needs_size(error: BaseException) -> bool:
    """Whether it is the size of a result that depends on values: a boolean mask, `nonzero` without `size=`."""
    return isinstance(error, jax.errors.NonConcreteBooleanIndexError) or "size argument" in str(error)


def refused_at(refused: Refusal) -> dict[str, Any]:
    """The piece of the user's text that asked for a value."""
    if refused.step is None or refused.span is None:
        return {}
    return span_location(refused.step.file, refused.span)


def _evidence(error: BaseException, refused: Refusal) -> str:
    origins = "; ".join(origin.strip() for origin in refused.origins)
    return f"the trace ended with {type(error).__name__}" + (f"; the value came {origins}" if origins else "")


RULE = Rule(
    "concretization",
    "EX009",
    "error",
    "Python asks for the value of something that has none while it is traced.",
    "https://docs.jax.dev/en/latest/errors.html",
    check,
    passive=True,
)
