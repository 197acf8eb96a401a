"""Fixes of NaN gradients: choose operands to guard, try each guard by running it, and write it as code."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import filterfalse, permutations, product

import numpy as np

from explorer.capture.sources import Span, parse, read_source, syntax_at
from explorer.model.graph import Frame
from explorer.pitfalls.equations import Equation
from explorer.pitfalls.function_source import Edit, span_of
from explorer.pitfalls.gradient_probes import Probes, Results, run_at, singular_at
from explorer.pitfalls.gradient_slices import LEAST, Guard, Singularity, ValueSlice, in_branch, singularity

_MAX_SITES = 6  # operations to guard for one value
_BOUNDS = ("max", "min", "clamp")
_STEP = 0.02  # well above the rounding of float32, in which differences of functions such as expm1 are taken
_MAX_ASSIGNMENTS = 4  # assignments from an operation to the choice


def find_edits(
    sliced: ValueSlice,
    probes: Probes,
    before: Results,
    causes: Sequence[tuple[Equation, Singularity]],
    choice: ast.Call | None,
    place: Frame,
) -> tuple[Edit, ...]:
    """Return the edits of the fewest guards that keep the value and make the gradient finite wherever the value is.

    The result is empty if there are no such guards, or they can't be written.

    Args:
        sliced, probes, before: The value, its inputs, and the results there.
        causes: Operations whose derivative isn't finite at some probes.
        choice, place: The user's `where(…)`, None if there is no choice; and the frame of the choice or operation.
    """
    sites = [site for one in causes if (site := site_of(sliced, *one)) is not None]
    has_both_sides = bool(before.both[before.is_finite].any(axis=0).all())
    if not 0 < len(sites) <= _MAX_SITES or not has_both_sides:
        return ()
    for kinds in _attempts(sliced, sites, choice, place):
        guards = [Guard(site.equation, site.singularity, kind) for site, kind in zip(sites, kinds, strict=True)]
        if _is_fixed_by(sliced, probes, before, guards):
            guards = _fewest(sliced, probes, before, guards)
            if not loses_slope(sliced, probes, before, guards):
                kind_of = {guard.equation: guard.kind for guard in guards}
                guarded = [site for site in sites if site.equation in kind_of]
                edits = dict.fromkeys(write(sliced, site, kind_of[site.equation], choice) for site in guarded)
                return tuple(_outermost(edits))
    return ()


def _fewest(sliced: ValueSlice, probes: Probes, before: Results, guards: list[Guard]) -> list[Guard]:
    for guard in list(guards):
        fewer = [other for other in guards if other is not guard]
        if fewer and _is_fixed_by(sliced, probes, before, fewer):
            guards = fewer
    return guards


def _outermost(edits: Iterable[Edit]) -> Iterator[Edit]:
    """Yield the edits, with edits inside another edit's span written into its text."""
    edits = sorted(edits, key=lambda edit: edit.span)
    if len({edit.span for edit in edits}) < len(edits):  # two guards for one piece of the text
        raise ValueError("one operation would be written in two ways")
    for edit in edits:
        if not any(_is_inside(edit, other) for other in edits):
            yield _with_inner(edit, [other for other in edits if _is_inside(other, edit)])


def _is_inside(edit: Edit, outer: Edit) -> bool:
    return edit is not outer and edit.file == outer.file and edit.span in outer.span


def _with_inner(edit: Edit, edits: Sequence[Edit]) -> Edit:
    after = edit.after
    for inner in edits:
        if inner.text not in after:
            raise ValueError("the inner operation isn't in the text of the outer one")
        after = after.replace(inner.text, inner.after)
    return replace(edit, after=after)


def singular_equations(sliced: ValueSlice, probes: Probes, results: Results) -> list[tuple[Equation, Singularity]]:
    pairs = [(equation, where) for equation in sliced.equations if (where := singularity(equation)) is not None]
    if not pairs:
        return []
    chosen = [probe[results.witnesses[:16]] for probe in probes]
    is_hit = singular_at(sliced, chosen, [equation for equation, _ in pairs], [where.is_regular for _, where in pairs])
    return [pair for pair, hit in zip(pairs, is_hit, strict=True) if hit]


def _attempts(
    sliced: ValueSlice, sites: Sequence[Site], choice: ast.Call | None, place: Frame
) -> Iterator[tuple[str, ...]]:
    """Yield the kinds of guards to try, one per site, most readable first."""
    # In the order in which the kinds are preferred.
    options = [list(_kinds(sliced, site, choice, place)) for site in sites]
    seen: set[tuple[str, ...]] = set()
    for order in permutations(("condition", "operand", "both")):
        kinds = tuple(next((kind for kind in (*order, "least") if kind in own), "") for own in options)
        if "" not in kinds and kinds not in seen:
            seen.add(kinds)
            yield kinds
    if len(sites) <= 3:
        yield from filterfalse(seen.__contains__, product(*options))


def _kinds(sliced: ValueSlice, site: Site, choice: ast.Call | None, place: Frame) -> Iterator[str]:
    """Yield each `Guard.kind` that fits an operation, without an effect on other uses of its value."""
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
    """Yield each `Guard.kind` that fits an operation whose value only the choice uses."""
    if site.singularity.test and not site.singularity.is_kept:
        yield "operand"
    in_one = sum(in_branch(sliced, site.equation, branch) for branch in sliced.sink.inputs[1:]) == 1
    if in_one and _holds_at(site, choice, place):
        yield "condition"


def _is_fixed_by(sliced: ValueSlice, probes: Probes, before: Results, guards: Sequence[Guard]) -> bool:
    try:
        after = run_at(sliced, probes, guards)
    except Exception:  # the condition is larger than the operand, or depends on it
        return False
    return is_fixed(before, after)


def is_fixed(before: Results, after: Results) -> bool:
    at = before.is_finite
    if after.values.shape != before.values.shape or not at.any():
        return False
    same = np.allclose(after.values[at], before.values[at], rtol=1e-5, atol=1e-6)
    return same and bool(after.has_gradient[at].all())


def loses_slope(sliced: ValueSlice, probes: Probes, before: Results, guards: Sequence[Guard]) -> bool:
    """Return True if guards change the slope where both sides of a point have the same one, or if they can't be run.

    `where(x != 0, expm1(x) / x, 1)` has the slope 1/2 at 0. Chosen twice, it has the slope of the constant 1.
    """
    rows = before.witnesses[:16]
    at = [probe[rows] for probe in probes]
    left, right = (
        [(probe + step).astype(probe.dtype) if probe.dtype.kind in "fc" else probe for probe in at]
        for step in (-_STEP, _STEP)
    )
    try:
        guarded = run_at(sliced, at, guards).gradients
        sides = [run_at(sliced, moved) for moved in (left, right)]
    except Exception:
        return True
    slopes = [side.gradients for side in sides]
    slope = (slopes[0] + slopes[1]) / 2
    # A pole also has equal slopes on both sides, but its value doesn't change accordingly.
    change = (sides[1].values - sides[0].values).reshape(len(rows), -1).sum(axis=1)
    is_continuous = abs(change - 2 * _STEP * slope.sum(axis=1)) <= 0.5 * _STEP * (1 + abs(slope).sum(axis=1))
    is_smooth = is_continuous[:, None] & (abs(slopes[0] - slopes[1]) < 0.1 * (1 + abs(slope)))  # NaN is not
    return bool((is_smooth & (abs(guarded - slope) > 0.2 * (1 + abs(slope)))).any())


# Text ----------------------------------------------------------------------------------------------------------------


def _function_around(file: str, span: Span) -> ast.AST | None:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)
    return next((node for node in reversed(syntax_at(file, span)) if isinstance(node, functions)), None)


def _is_used_there_alone(site: Site, choice: ast.Call, place: Frame) -> bool:
    """Return True if an operation's value reaches only the choice, by the function's text."""
    if site.frame.file != place.file:
        return False
    if site.span in Span.of(choice):
        return True
    function = _function_around(place.file, span_of(place))
    other = _function_around(site.frame.file, span_of(site.frame))
    if function is None or other is None or ast.dump(function) != ast.dump(other):
        return False
    return _flows_into(function, site.span, choice, _MAX_ASSIGNMENTS)


def _flows_into(function: ast.AST, span: Span, choice: ast.Call, left: int) -> bool:
    assigned = [node for node in ast.walk(function) if isinstance(node, ast.Assign) and span in Span.of(node.value)]
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
    name = getattr(choice.func, "attr", getattr(choice.func, "id", ""))
    if len(choice.args) != 3 or name not in ("where", "select"):
        return False
    is_inside = site.frame.file == place.file and site.span in Span.of(choice)
    return is_inside or _stored_before(choice.args[0], _function_around(place.file, span_of(place)) or choice, site)


def _stored_before(condition: ast.expr, function: ast.AST, site: Site) -> bool:
    names = {node.id for node in ast.walk(condition) if isinstance(node, ast.Name)}
    stores = (node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id in names)
    return all(node.lineno < site.span.line for node in stores if not isinstance(node.ctx, ast.Load))


# Primitive and index of the guarded operand, by the name of the user's call.
_CALLS = {
    **{name: ("log", 0) for name in ("log", "log2", "log10")},
    **{name: (name, 0) for name in ("log1p", "sqrt", "rsqrt", "cbrt", "exp", "exp2", "expm1", "sinh", "cosh")},
    **dict.fromkeys(("arccos", "acos"), ("acos", 0)),
    **dict.fromkeys(("arcsin", "asin"), ("asin", 0)),
    **dict.fromkeys(("arctanh", "atanh"), ("atanh", 0)),
    **dict.fromkeys(("arccosh", "acosh"), ("acosh", 0)),
    **dict.fromkeys(("arctan2", "atan2"), ("atan2", 1)),
    **dict.fromkeys(("power", "pow", "float_power"), ("pow", 0)),
    **dict.fromkeys(("divide", "true_divide", "div"), ("div", 1)),
    "reciprocal": ("div", 0),
    **dict.fromkeys(("gammaln", "lgamma"), ("lgamma", 0)),
    "digamma": ("digamma", 0),
    "erfinv": ("erf_inv", 0),
}


@dataclass(frozen=True)
class Site:
    equation: Equation  # what it was traced to
    singularity: Singularity  # where its derivative isn't finite
    frame: Frame  # its place in the text
    node: ast.expr  # the call or the operator
    operand: ast.expr  # the text of the operand to guard
    first: ast.expr | None = None  # text of the first operand, if the test needs both
    root: str = ""  # of a norm or a deviation, which is a root of the operand: how that is written, with `{x}` for it

    @property
    def span(self) -> Span:
        return Span.of(self.node)


def site_of(sliced: ValueSlice, equation: Equation, where: Singularity) -> Site | None:
    frame = sliced.program.called_from(equation)
    path = syntax_at(frame.file, span_of(frame)) if frame is not None else ()
    if frame is None or not path:
        return None
    match path[-1]:
        case ast.BinOp(op=ast.Div()) as node if equation.op == "div":
            return Site(equation, where, frame, node, node.right)
        case ast.BinOp(op=ast.Pow()) as node if equation.op in ("pow", "integer_pow"):
            return Site(equation, where, frame, node, node.left)
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) as node:
            return _call_site(equation, where, frame, node, name)
        case _:
            return None


def _call_site(equation: Equation, where: Singularity, frame: Frame, node: ast.Call, name: str) -> Site | None:
    if equation.op == "sqrt" and name in ("norm", "std"):
        squares = _squares(node, name)
        return None if squares is None else Site(equation, where, frame, node, squares, root="jnp.sqrt({x})")
    op, at = _CALLS.get(name, ("", 0))
    is_it = op == {"log2": "log"}.get(equation.op, equation.op) or (
        equation.op == "integer_pow" and name in ("reciprocal", "power", "pow")
    )
    if not is_it or len(node.args) <= at or node.keywords:
        return None
    return Site(equation, where, frame, node, node.args[at], node.args[0] if at else None)


def _squares(node: ast.Call, name: str) -> ast.expr | None:
    """Return a new expression whose square root the call computes: `x.var(…)` of `x.std(…)`, `jnp.sum(x**2)` of a norm.

    `jnp.std(…)` gives `jnp.var(…)`. None for a bare `std(…)`, and for a norm with arguments other than `axis` and
    `keepdims`.
    """
    if name == "std":
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        return owner and ast.Call(ast.Attribute(owner, "var", ast.Load()), node.args, node.keywords)
    if len(node.args) != 1 or any(keyword.arg not in ("axis", "keepdims") for keyword in node.keywords):
        return None
    square = ast.BinOp(node.args[0], ast.Pow(), ast.Constant(2))
    return ast.Call(ast.Attribute(ast.Name("jnp"), "sum", ast.Load()), [square], node.keywords)


def write(sliced: ValueSlice, site: Site, kind: str, choice: ast.Call | None) -> Edit:
    source = read_source(site.frame.file)
    before = "" if source is None else ast.get_source_segment(source.text, site.node) or ""
    return Edit(site.frame.file, site.span, _guarded(sliced, site, kind, choice), before, ast.unparse(site.node))


def _guarded(sliced: ValueSlice, site: Site, kind: str, choice: ast.Call | None) -> str:
    """Return the text of the operation with a guard."""
    numpy, text, singular = _numpy(choice, site.node), ast.unparse(site.operand), site.singularity
    where, safe = f"{numpy}.where", singular.safe
    text = text.replace("jnp.", f"{numpy}.") if site.root else text
    if kind == "condition" and choice is not None:
        chosen = [text, safe] if in_branch(sliced, site.equation, sliced.sink.inputs[2]) else [safe, text]
        return _with_operand(site, f"{where}({', '.join([ast.unparse(choice.args[0]), *chosen])})")
    if kind == "least":
        return _with_operand(site, f"{numpy}.maximum({text}, {LEAST:g})")
    first = "" if site.first is None else ast.unparse(site.first)
    first = f"({first})" if first and not first.isidentifier() else first
    is_short = isinstance(site.operand, ast.Name)
    name = text if is_short else _unused(site.frame.file, "s")
    test = singular.test.format(x=text if is_short else f"({name} := {text})", y=first)
    if kind == "operand":
        return _with_operand(site, f"{where}({test}, {name}, {safe})")
    inside = f"{where}({singular.test.format(x=name, y=first)}, {name}, {safe})"
    result = site.root.replace("jnp", numpy).format(x=inside) if site.root else _with_operand(site, inside)
    return f"{where}({test}, {result}, {singular.limit.format(x=name).replace('jnp.', f'{numpy}.')})"


def _with_operand(site: Site, text: str) -> str:
    operand = ast.Name("_operand_")
    changed = copy(site.node)
    for name, part in ast.iter_fields(changed):
        if part is site.operand:
            setattr(changed, name, operand)
        elif name == "args":
            setattr(changed, name, [operand if argument is site.operand else argument for argument in part])
    return ast.unparse(changed).replace("_operand_", text)


def _numpy(choice: ast.Call | None, node: ast.expr) -> str:
    for called in (choice.func if choice is not None else None, getattr(node, "func", None)):
        match called:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if attr in ("where", "select") or name in (
                "jnp",
                "np",
            ):
                return name
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id=name), attr="linalg")):
                return name
            case _:
                continue
    return "jnp"


def _unused(file: str, name: str) -> str:
    source = read_source(file)
    tree = parse(source.text) if source is not None else None
    taken = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} if tree is not None else set[str]()
    return next(one for one in (name, *(f"{name}_{i}" for i in range(2, 100))) if one not in taken)
