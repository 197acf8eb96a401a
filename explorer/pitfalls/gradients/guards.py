"""The cure of a gradient that is NaN: which operands to guard, and how that is written, each tried by running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product

import numpy as np

from explorer.capture.sources import Span, syntax_at
from explorer.model.graph import Frame
from explorer.pitfalls.equations import Equation
from explorer.pitfalls.gradients.guard_text import Edit, Site, site_of, write
from explorer.pitfalls.gradients.probes import Probes, Results, run_at, singular_at
from explorer.pitfalls.gradients.singular import Singularity, singularity
from explorer.pitfalls.gradients.slices import Guard, ValueSlice, in_branch
from explorer.pitfalls.locations import span_of

_MOST = 6  # operations to guard for one value
_BOUNDS = ("max", "min", "clamp")
_STEP = 0.02  # well above the rounding of float32, in which differences of functions such as expm1 are taken
_DEEPEST = 4  # assignments from an operation to the choice


@dataclass(frozen=True)
class Cure:
    """Guards that were run, and how they are written."""

    guards: tuple[Guard, ...]
    edits: tuple[Edit, ...]


def find_cure(
    sliced: ValueSlice,
    probes: Probes,
    before: Results,
    causes: Sequence[tuple[Equation, Singularity]],
    choice: ast.Call | None,
    place: Frame,
) -> Cure | None:
    """The fewest guards with which the value is the same and the gradient finite wherever the value was finite.

    Args:
        sliced: The value whose gradient isn't a number at some of the probes.
        probes: Values of its inputs.
        before: What it gave there.
        causes: The operations whose derivative isn't finite there.
        choice: The user's `where(…)`; None where the value is no choice.
        place: Of the choice or the operation.

    Returns:
        None if there are no such guards, or if they can't be written.
    """
    sites = [site for one in causes if (site := site_of(sliced, *one)) is not None]
    if not 0 < len(sites) <= _MOST or not _has_both_sides(before):
        return None
    for kinds in _attempts(sliced, sites, choice, place):
        guards = [Guard(site.equation, site.singularity, kind) for site, kind in zip(sites, kinds, strict=True)]
        if not _cures(sliced, probes, before, guards):
            continue
        for guard in list(guards):
            fewer = [other for other in guards if other is not guard]
            if fewer and _cures(sliced, probes, before, fewer):
                guards = fewer
        if loses_slope(sliced, probes, before, guards):
            continue
        by_equation = {guard.equation: guard for guard in guards}
        pairs = [(site, by_equation[site.equation]) for site in sites if site.equation in by_equation]
        edits = dict.fromkeys(write(sliced, site, guard, choice) for site, guard in pairs)
        return Cure(tuple(guards), tuple(_outermost(list(edits))))
    return None


def _outermost(edits: list[Edit]) -> Iterator[Edit]:
    """The edits with those that stand in another's piece of the text written into that."""
    edits = sorted(edits, key=lambda edit: edit.span)
    spans = {edit.span for edit in edits}
    if len(spans) < len(edits):  # two guards of one piece of the text, for two ways to it
        raise ValueError("one operation would be written in two ways")
    for edit in edits:
        outer = [other for other in edits if other.file == edit.file and edit.span in other.span and edit is not other]
        if outer:
            continue
        inner = [other for other in edits if other.file == edit.file and other.span in edit.span and edit is not other]
        after = edit.after
        for other in inner:
            if other.text not in after:
                raise ValueError("the text of one isn't in the other's")
            after = after.replace(other.text, other.after)
        yield replace(edit, after=after)


def _has_both_sides(before: Results) -> bool:
    return bool(before.both[before.is_finite].any(axis=0).all())


def singular_equations(sliced: ValueSlice, probes: Probes, results: Results) -> list[tuple[Equation, Singularity]]:
    """The operations of a slice whose derivative isn't finite at a probe that shows the fault."""
    candidates = [(equation, singularity(equation)) for equation in sliced.equations]
    pairs = [(equation, where) for equation, where in candidates if where is not None]
    if not pairs:
        return []
    chosen = [probe[results.witnesses[:16]] for probe in probes]
    is_hit = singular_at(sliced, chosen, [equation for equation, _ in pairs], [where.is_regular for _, where in pairs])
    return [pair for pair, hit in zip(pairs, is_hit, strict=True) if hit]


def _attempts(
    sliced: ValueSlice, sites: Sequence[Site], choice: ast.Call | None, place: Frame
) -> Iterator[tuple[str, ...]]:
    """The kinds of guards to try, for all sites at once, those that are the easiest to read first."""
    # In the order in which the kinds are preferred.
    options = [list(_kinds(sliced, site, choice, place)) for site in sites]
    seen: set[tuple[str, ...]] = set()
    for order in permutations(("condition", "operand", "both")):
        kinds = tuple(next((kind for kind in (*order, "least") if kind in own), "") for own in options)
        if "" not in kinds and kinds not in seen:
            seen.add(kinds)
            yield kinds
    for kinds in product(*options) if len(sites) <= 3 else ():
        if kinds not in seen:
            seen.add(kinds)
            yield kinds


def _kinds(sliced: ValueSlice, site: Site, choice: ast.Call | None, place: Frame) -> Iterator[str]:
    """The guards that only change what nobody else sees."""
    where = site.singularity
    if where.is_kept and where.test:
        yield "operand"
    if where.limit and where.test:
        yield "both"
    if sliced.sink.op in _BOUNDS and where.test in ("{x} > 0", "{x} != 0") and not site.root:
        yield "least"
    if choice is None or not _is_used_there_alone(site, choice, place):
        return
    if where.test and not where.is_kept and not site.root:
        yield "operand"
    in_one = sum(in_branch(sliced, site.equation, branch) for branch in sliced.sink.inputs[1:]) == 1
    if in_one and _holds_at(site, choice, place) and not site.root:
        yield "condition"


def _cures(sliced: ValueSlice, probes: Probes, before: Results, guards: Sequence[Guard]) -> bool:
    """Run with the guards: the value is the same and the gradient finite wherever the value was finite."""
    try:
        after = run_at(sliced, probes, guards)
    except Exception:  # the condition is larger than the operand, or depends on it
        return False
    return is_cured(before, after)


def is_cured(before: Results, after: Results) -> bool:
    at = before.is_finite
    if after.values.shape != before.values.shape or not at.any():
        return False
    same = np.allclose(after.values[at], before.values[at], rtol=1e-5, atol=1e-6)
    return same and bool(after.has_gradient[at].all())


def loses_slope(sliced: ValueSlice, probes: Probes, before: Results, guards: Sequence[Guard]) -> bool:
    """Whether the value has a slope where its gradient was NaN, as it has on both sides, and with the guards another.

    `where(x != 0, expm1(x) / x, 1)` has the slope 1/2 at 0; chosen twice it has that of the 1, which is 0.
    """
    rows = before.witnesses[:16]
    at = [probe[rows] for probe in probes]
    left, right = ([_moved(probe, step) for probe in at] for step in (-_STEP, _STEP))
    try:
        cured = run_at(sliced, at, guards).gradients
        sides = [run_at(sliced, moved) for moved in (left, right)]
    except Exception:
        return True
    slopes = [side.gradients for side in sides]
    slope = (slopes[0] + slopes[1]) / 2
    jump = abs(sides[1].values - sides[0].values).reshape(len(rows), -1).max(axis=1)
    is_continuous = jump <= 4 * _STEP * (1 + abs(slope).sum(axis=1))
    is_smooth = is_continuous[:, None] & (abs(slopes[0] - slopes[1]) < 0.1 * (1 + abs(slope)))  # NaN is not
    return bool((is_smooth & (abs(cured - slope) > 0.2 * (1 + abs(slope)))).any())


def _moved(probe: np.ndarray, step: float) -> np.ndarray:
    return (probe + step).astype(probe.dtype) if probe.dtype.kind in "fc" else probe


# Text ----------------------------------------------------------------------------------------------------------------


def _function_around(file: str, span: Span) -> ast.AST | None:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)
    return next((node for node in reversed(syntax_at(file, span)) if isinstance(node, functions)), None)


def _is_inside(span: Span, node: ast.AST) -> bool:
    return span in Span.of(node)


def _is_used_there_alone(site: Site, choice: ast.Call, place: Frame) -> bool:
    """Whether the value of an operation reaches nothing but the choice, by the text of the function."""
    if site.frame.file != place.file:
        return False
    if _is_inside(site.span, choice):
        return True
    function = _function_around(place.file, span_of(place))
    other = _function_around(site.frame.file, span_of(site.frame))
    if function is None or other is None or ast.dump(function) != ast.dump(other):
        return False
    return _flows_into(function, site.span, choice, _DEEPEST)


def _flows_into(function: ast.AST, span: Span, choice: ast.Call, left: int) -> bool:
    assigned = [node for node in ast.walk(function) if isinstance(node, ast.Assign) and _is_inside(span, node.value)]
    match assigned:
        case [ast.Assign(targets=[ast.Name(id=name)])] if left:
            uses = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name]
            loads = [Span.of(node) for node in uses if isinstance(node.ctx, ast.Load)]
            return len(uses) == len(loads) + 1 and all(
                load in Span.of(choice) or _flows_into(function, load, choice, left - 1) for load in loads
            )
        case _:
            return False


def _holds_at(site: Site, choice: ast.Call, place: Frame) -> bool:
    """Whether the condition of a choice can be tested where an operation stands, with the same result."""
    name = getattr(choice.func, "attr", getattr(choice.func, "id", ""))
    if len(choice.args) != 3 or name not in ("where", "select"):
        return False
    if site.frame.file == place.file and _is_inside(site.span, choice):
        return True
    function = _function_around(place.file, span_of(place))
    names = {node.id for node in ast.walk(choice.args[0]) if isinstance(node, ast.Name)}
    stores = (node for node in ast.walk(function or choice) if isinstance(node, ast.Name) and node.id in names)
    return all(node.lineno < site.span.line for node in stores if not isinstance(node.ctx, ast.Load))
