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
from explorer.pitfalls.function_source import span_of
from explorer.pitfalls.gradients.guard_text import Edit, Site, site_of, write
from explorer.pitfalls.gradients.probes import Probes, Results, run_at, singular_at
from explorer.pitfalls.gradients.singular import Singularity, singularity
from explorer.pitfalls.gradients.slices import Guard, ValueSlice, in_branch

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
        if _cures(sliced, probes, before, guards):
            guards = _fewest(sliced, probes, before, guards)
            if not loses_slope(sliced, probes, before, guards):
                return Cure(tuple(guards), tuple(_outermost(_edits(sliced, sites, guards, choice))))
    return None


def _fewest(sliced: ValueSlice, probes: Probes, before: Results, guards: list[Guard]) -> list[Guard]:
    """The guards without those that aren't needed."""
    for guard in list(guards):
        fewer = [other for other in guards if other is not guard]
        if fewer and _cures(sliced, probes, before, fewer):
            guards = fewer
    return guards


def _edits(sliced: ValueSlice, sites: Sequence[Site], guards: Sequence[Guard], choice: ast.Call | None) -> list[Edit]:
    kinds = {guard.equation: guard for guard in guards}
    guarded = (site for site in sites if site.equation in kinds)
    return list(dict.fromkeys(write(sliced, site, kinds[site.equation], choice) for site in guarded))


def _outermost(edits: list[Edit]) -> Iterator[Edit]:
    """The edits with those that stand in another's piece of the text written into that."""
    edits = sorted(edits, key=lambda edit: edit.span)
    spans = {edit.span for edit in edits}
    if len(spans) < len(edits):  # two guards of one piece of the text, for two ways to it
        raise ValueError("one operation would be written in two ways")
    for edit in edits:
        if not _around(edits, edit):
            yield _with_inner(edit, [other for other in edits if edit in _around(edits, other)])


def _around(edits: Sequence[Edit], edit: Edit) -> list[Edit]:
    others = (other for other in edits if other is not edit and other.file == edit.file)
    return [other for other in others if edit.span in other.span]


def _with_inner(edit: Edit, inner: Sequence[Edit]) -> Edit:
    after = edit.after
    for other in inner:
        if other.text not in after:
            raise ValueError("the text of one isn't in the other's")
        after = after.replace(other.text, other.after)
    return replace(edit, after=after)


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
        kinds = tuple(_first_of(order, own) for own in options)
        if "" not in kinds and kinds not in seen:
            seen.add(kinds)
            yield kinds
    if len(sites) <= 3:
        yield from (kinds for kinds in product(*options) if kinds not in seen)


def _first_of(order: Sequence[str], kinds: Sequence[str]) -> str:
    return next((kind for kind in (*order, "least") if kind in kinds), "")


def _kinds(sliced: ValueSlice, site: Site, choice: ast.Call | None, place: Frame) -> Iterator[str]:
    """The guards that only change what nobody else sees."""
    where = site.singularity
    if where.is_kept:
        yield "operand"
    if where.limit:
        yield "both"
    if site.root:
        return
    if sliced.sink.op in _BOUNDS and where.test in ("{x} > 0", "{x} != 0"):
        yield "least"
    if choice is not None and _is_used_there_alone(site, choice, place):
        yield from _kinds_within(sliced, site, choice, place)


def _kinds_within(sliced: ValueSlice, site: Site, choice: ast.Call, place: Frame) -> Iterator[str]:
    """The guards that change a value which only the choice sees."""
    if site.singularity.test and not site.singularity.is_kept:
        yield "operand"
    in_one = sum(in_branch(sliced, site.equation, branch) for branch in sliced.sink.inputs[1:]) == 1
    if in_one and _holds_at(site, choice, place):
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
    # A pole has the same slope on both sides too, but doesn't change by it.
    change = (sides[1].values - sides[0].values).reshape(len(rows), -1).sum(axis=1)
    is_continuous = abs(change - 2 * _STEP * slope.sum(axis=1)) <= 0.5 * _STEP * (1 + abs(slope).sum(axis=1))
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
            uses, loads = _uses(function, name)
            return uses == len(loads) + 1 and all(
                load in Span.of(choice) or _flows_into(function, load, choice, left - 1) for load in loads
            )
        case _:
            return False


def _uses(function: ast.AST, name: str) -> tuple[int, list[Span]]:
    """How often a name stands in a function, and where it is read."""
    uses = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name]
    return len(uses), [Span.of(node) for node in uses if isinstance(node.ctx, ast.Load)]


def _holds_at(site: Site, choice: ast.Call, place: Frame) -> bool:
    """Whether the condition of a choice can be tested where an operation stands, with the same result."""
    name = getattr(choice.func, "attr", getattr(choice.func, "id", ""))
    if len(choice.args) != 3 or name not in ("where", "select"):
        return False
    is_inside = site.frame.file == place.file and _is_inside(site.span, choice)
    return is_inside or _stored_before(choice.args[0], _function_around(place.file, span_of(place)) or choice, site)


def _stored_before(condition: ast.expr, function: ast.AST, site: Site) -> bool:
    """Whether nothing gives the names of a condition another value below an operation."""
    names = {node.id for node in ast.walk(condition) if isinstance(node, ast.Name)}
    stores = (node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id in names)
    return all(node.lineno < site.span.line for node in stores if not isinstance(node.ctx, ast.Load))
