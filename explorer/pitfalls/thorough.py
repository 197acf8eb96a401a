"""Two traces of one function with the same arguments, compared: what differs was made while tracing, and baked in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from explorer._jax import inner_jaxprs, user_stack
from explorer.capture.sources import Span
from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.locations import span_location
from explorer.pitfalls.rule import Rule, all_rules

_RULE = "impure-random"
_MOST = 20  # places; a program that is another altogether differs everywhere


def trace_differences(first: Evidence, second: Evidence, findings: Iterable[Finding]) -> list[Finding]:
    """A finding for each line that traced to another program the second time, unless one of `findings` is there."""
    if first.jaxpr is None or second.jaxpr is None:
        return []
    rule = next(rule for rule in all_rules() if rule.name == _RULE)
    places = {(finding.file, finding.line) for finding in findings}
    differences: list[Finding] = []
    for equation, how in _differences(first.jaxpr, second.jaxpr):
        finding = _finding(rule, first, equation, how)
        if (finding.file, finding.line) not in places:
            places.add((finding.file, finding.line))
            differences.append(finding)
        if len(differences) == _MOST:
            break
    return differences


def _finding(rule: Rule, evidence: Evidence, equation: Any, how: str) -> Finding:
    stack = user_stack(getattr(getattr(equation, "source_info", None), "traceback", None))
    return rule.finding(
        f"{evidence.name} traced twice with the same arguments gives two programs: something made while tracing is "
        "baked in here",
        evidence=how,
        fix="make it outside, and pass it as an argument",
        severity="warning",
        **(span_location(stack[0].file, Span(stack[0].line, 0, 0, 0)) if stack else {}),
    )


def _differences(one: Any, other: Any) -> Iterator[tuple[Any, str]]:
    """The equations that differ, and how, in the order of the program."""
    inner, outer = getattr(one, "jaxpr", one), getattr(other, "jaxpr", other)
    values = _constants(one), _constants(other)
    for a, b in zip(inner.eqns, outer.eqns, strict=False):
        if a.primitive.name != b.primitive.name:
            yield a, f"{a.primitive.name} in the first trace, {b.primitive.name} in the second"
            return  # all that follows is shifted
        for left, right in zip(a.invars, b.invars, strict=False):
            was, now = _value(left, values[0]), _value(right, values[1])
            if was is not None and now is not None and not _same(was, now):
                yield a, f"{_short(was)} in the first trace, {_short(now)} in the second"
        pairs = zip(inner_jaxprs(a.params), inner_jaxprs(b.params), strict=False)
        for (_, left), (_, right) in pairs:
            yield from _differences(left, right)
    if len(inner.eqns) != len(outer.eqns):
        more = max(inner, outer, key=lambda program: len(program.eqns))
        yield more.eqns[min(len(inner.eqns), len(outer.eqns))], f"{len(inner.eqns)} equations, then {len(outer.eqns)}"


def _constants(program: Any) -> dict[Any, Any]:
    variables = getattr(getattr(program, "jaxpr", program), "constvars", ())
    return dict(zip(variables, getattr(program, "consts", ()), strict=False))


def _value(operand: Any, constants: dict[Any, Any]) -> Any:
    """What an operand is, if the trace knew."""
    return operand.val if hasattr(operand, "val") else constants.get(operand)


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    left, right = np.asarray(one), np.asarray(other)
    if left.dtype == object or right.dtype == object:
        return True  # keys and the like, which aren't compared
    return left.shape == right.shape and left.dtype == right.dtype and left.tobytes() == right.tobytes()


def _short(value: Any) -> str:
    array = np.asarray(value)
    return f"{array.item()!r}" if array.ndim == 0 else f"{array.dtype}{list(array.shape)} starting {array.ravel()[:3]}"
