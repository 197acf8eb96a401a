"""x[mask], and nonzero, unique, where(condition) without a size: a compiled program's shapes can't depend on values."""

from __future__ import annotations

from collections.abc import Iterator

from explorer.capture.trace_errors import refusal
from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.rule import Rule
from explorer.pitfalls.rules.concretization import needs_size, refused_at


def check(evidence: Evidence) -> Iterator[Finding]:
    error = evidence.error
    refused = refusal(error) if error is not None and needs_size(error) else None
    if error is None or refused is None:
        return
    what = f"`{refused.text}`" if refused.text else "a result"
    yield RULE.finding(
        f"{evidence.name} can't be traced: the shape of {what} depends on values, and a compiled program has one shape",
        evidence=f"the trace ended with {type(error).__name__}",
        fix=refused.hint,
        **refused_at(refused),
    )


RULE = Rule(
    "boolean-mask",
    "EX010",
    "error",
    "The size of an array depends on values, which a compiled program can't have.",
    "https://docs.jax.dev/en/latest/notebooks/Common_Gotchas_in_JAX.html#dynamic-shapes",
    check,
    passive=True,
)
