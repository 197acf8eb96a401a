"""Rules about values and sizes that Python needs while tracing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import jax

from explorer.capture.trace_errors import Refusal, refusal
from explorer.model.findings import Finding
from explorer.model.stage import is_library_file
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import expression_on_line, span_location
from explorer.pitfalls.rule import rule


@rule("concretization", "EX009", "error", "errors.html", passive=True)
def concretization(evidence: Evidence) -> Iterator[Finding]:
    """Python needs the value of a traced array, which has none.

    `if`, `float()`, `range()` and similar uses end the trace, because a traced array has no value yet.
    """
    error = evidence.error
    refused = refusal(error) if error is not None else None
    if error is None or refused is None or needs_size(error):
        return
    names = ", ".join(f'"{name}"' for name in refused.counts if name.isidentifier())
    constant = f"\nor, if it may be a constant, jax.jit({evidence.name}, static_argnames=({names},))" if names else ""
    yield concretization.finding(
        f"{evidence.name} can't be traced: {refused.problem}",
        evidence=_evidence(error, refused),
        fix=refused.hint + constant,
        **refused_at(refused),
    )


def needs_size(error: BaseException) -> bool:
    return isinstance(error, jax.errors.NonConcreteBooleanIndexError) or "size argument" in str(error)


def refused_at(refused: Refusal) -> dict[str, Any]:
    if refused.step is None or refused.span is None:
        return {}
    return span_location(refused.step.file, refused.span)


def _evidence(error: BaseException, refused: Refusal) -> str:
    origins = "; ".join(origin.strip() for origin in refused.origins)
    return f"the trace ended with {type(error).__name__}" + (f"; the value came {origins}" if origins else "")


@rule("boolean-mask", "EX010", "error", "notebooks/Common_Gotchas_in_JAX.html#dynamic-shapes", passive=True)
def boolean_mask(evidence: Evidence) -> Iterator[Finding]:
    """The size of an array depends on values, which a compiled program doesn't allow.

    Examples are x[mask], and nonzero, unique or where(condition) without a size.
    """
    error = evidence.error
    refused = refusal(error) if error is not None and needs_size(error) else None
    if error is None or refused is None:
        return
    what = f"`{refused.text}`" if refused.text else "a result"
    yield boolean_mask.finding(
        f"{evidence.name} can't be traced: the shape of {what} depends on values, and a compiled program has one shape",
        evidence=f"the trace ended with {type(error).__name__}",
        fix=refused.hint,
        **refused_at(refused),
    )


@rule(
    "symbolic-equality",
    "EX028",
    "error",
    "export/shape_poly.html#comparison-of-symbolic-dimensions-is-partially-supported",
    passive=True,
)
def symbolic_equality(evidence: Evidence) -> Iterator[Finding]:
    """A comparison of a symbolic dimension with a number is decided once for all sizes.

    `if n == 1` is silently False for a symbolic dimension, even though the size may be 1.
    """
    reported: set[tuple[str, str, int]] = set()
    for test in evidence.undecided:
        key = test.text, test.file, test.line
        if key in reported or is_library_file(test.file):
            continue
        reported.add(key)
        answer = "True" if " != " in test.text else "False"
        yield symbolic_equality.finding(
            f"{evidence.name} asks whether {test.text}: that is taken to be {answer} for every size, which it isn't",
            evidence=f"the trace compared a symbolic dimension, and {test.text} holds for some sizes only",
            fix="compile the special sizes apart, with numbers for them; or compute so that no size is special",
            **span_location(
                test.file,
                expression_on_line(test.file, test.line, lambda node: isinstance(node, ast.Compare)),
            ),
        )
