"""The cure of a gradient that is NaN: which operands to guard, and how that is written, each tried by running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product

import numpy as np

from explorer.capture.sources import Span, read_source, syntax_at
from explorer.model.graph import Frame
from explorer.pitfalls.equations import Equation
from explorer.pitfalls.gradients.probes import Probes, Results, run_at, singular_at
from explorer.pitfalls.gradients.singular import Singularity, singularity
from explorer.pitfalls.gradients.slices import LEAST, Guard, ValueSlice, in_branch
from explorer.pitfalls.locations import span_of
from explorer.pitfalls.syntax_trees import parse

_MOST = 6  # operations to guard for one value
_BOUNDS = ("max", "min", "clamp")
_DEEPEST = 4  # assignments from an operation to the choice
# What the user calls an operation, and the operand of the call that it takes.
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
    """An operation in the user's text.

    Args:
        equation: What it was traced to.
        singularity: Where its derivative isn't finite.
        frame: Where it stands.
        node: The call or the operator.
        operand: The text of the operand to guard.
        first: That of the first operand, where the test asks for both.
        root: Of a norm or a deviation, which is a root of the operand: how that is written, with `{x}` for it.
    """

    equation: Equation
    singularity: Singularity
    frame: Frame
    node: ast.expr
    operand: ast.expr
    first: ast.expr | None = None
    root: str = ""

    @property
    def span(self) -> Span:
        return Span.of(self.node)


@dataclass(frozen=True)
class Edit:
    """A piece of a file, and what to write there instead.

    Args:
        file, span: Where.
        before: As it is written.
        text: The same as Python writes it.
        after: What to write there.
    """

    file: str
    span: Span
    before: str
    text: str
    after: str


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
    sites = [site for one in causes if (site := _site(sliced, *one)) is not None]
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
    found = [(equation, singularity(equation)) for equation in sliced.equations]
    pairs = [(equation, where) for equation, where in found if where is not None]
    if not pairs:
        return []
    chosen = [probe[results.witnesses[:16]] for probe in probes]
    is_hit = singular_at(sliced, chosen, [equation for equation, _ in pairs], [where.is_regular for _, where in pairs])
    return [pair for pair, hit in zip(pairs, is_hit, strict=True) if hit]


def _site(sliced: ValueSlice, equation: Equation, where: Singularity) -> Site | None:
    frame = sliced.program.called_from(equation)
    way = syntax_at(frame.file, span_of(frame)) if frame is not None else ()
    if frame is None or not way:
        return None
    match way[-1]:
        case ast.BinOp(op=ast.Div()) as node if equation.op == "div":
            return Site(equation, where, frame, node, node.right)
        case ast.BinOp(op=ast.Pow()) as node if equation.op in ("pow", "integer_pow"):
            return Site(equation, where, frame, node, node.left)
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) as node:
            return _call_site(equation, where, frame, node, name)
        case _:
            return None


def _call_site(equation: Equation, where: Singularity, frame: Frame, node: ast.Call, name: str) -> Site | None:
    if any(isinstance(argument, ast.Starred) for argument in node.args):
        return None
    if equation.op == "sqrt" and name in ("norm", "std"):
        squares = _squares(node, name)
        return None if squares is None else Site(equation, where, frame, node, squares, root="jnp.sqrt({x})")
    op, at = _CALLS.get(name, ("", 0))
    if name == "reciprocal" and equation.op in ("div", "integer_pow"):
        op = equation.op
    if op == "pow" and equation.op == "integer_pow":
        op = equation.op
    if op != equation.op or len(node.args) <= at or node.keywords:
        return None
    return Site(equation, where, frame, node, node.args[at], node.args[0] if at else None)


def _squares(node: ast.Call, name: str) -> ast.expr | None:
    """The sum of squares that a norm is the root of, or the variance that a deviation is."""
    if name == "std":
        match node.func:
            case ast.Attribute(value=value):
                return ast.Call(ast.Attribute(value, "var", ast.Load()), node.args, node.keywords)
            case _:
                return None
    if len(node.args) != 1 or any(keyword.arg not in ("axis", "keepdims") for keyword in node.keywords):
        return None
    square = ast.BinOp(node.args[0], ast.Pow(), ast.Constant(2))
    return ast.Call(ast.Attribute(ast.Name("jnp"), "sum", ast.Load()), [square], node.keywords)


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
    if sliced.sink.op in _BOUNDS and where.test == "{x} > 0" and not site.root:
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
    """Whether the condition of a choice can be asked where an operation stands, with the same result."""
    name = getattr(choice.func, "attr", getattr(choice.func, "id", ""))
    if len(choice.args) != 3 or name not in ("where", "select"):
        return False
    if site.frame.file == place.file and _is_inside(site.span, choice):
        return True
    function = _function_around(place.file, span_of(place))
    names = {node.id for node in ast.walk(choice.args[0]) if isinstance(node, ast.Name)}
    stores = (node for node in ast.walk(function or choice) if isinstance(node, ast.Name) and node.id in names)
    return all(node.lineno < site.span.line for node in stores if not isinstance(node.ctx, ast.Load))


def write(sliced: ValueSlice, site: Site, guard: Guard, choice: ast.Call | None) -> Edit:
    """How a guard is written at its operation."""
    numpy = _numpy(choice, site.node)
    operand = ast.unparse(site.operand)
    where, text = f"{numpy}.where", operand.replace("jnp.", f"{numpy}.") if site.root else operand
    safe, singular = guard.singularity.safe, guard.singularity
    first = "" if site.first is None else _atom(ast.unparse(site.first))
    if guard.kind == "condition" and choice is not None:
        condition = ast.unparse(choice.args[0])
        in_true = in_branch(sliced, site.equation, sliced.sink.inputs[2])
        after = f"{where}({condition}, {text}, {safe})" if in_true else f"{where}({condition}, {safe}, {text})"
        return _edit(site, _with_operand(site, after))
    is_short = isinstance(site.operand, ast.Name)
    name = text if is_short else _unused(site.frame.file, "s")
    asked = text if is_short else f"({name} := {text})"
    test = singular.test.format(x=asked, y=first)
    if guard.kind == "least":
        return _edit(site, _with_operand(site, f"{numpy}.maximum({text}, {LEAST:g})"))
    if guard.kind == "operand":
        return _edit(site, _with_operand(site, f"{where}({test}, {name}, {safe})"))
    inside = f"{where}({singular.test.format(x=name, y=first)}, {name}, {safe})"
    result = site.root.replace("jnp", numpy).format(x=inside) if site.root else _with_operand(site, inside)
    limit = singular.limit.format(x=name).replace("jnp.", f"{numpy}.")
    return _edit(site, f"{where}({test}, {result}, {limit})")


def _edit(site: Site, after: str) -> Edit:
    source = read_source(site.frame.file)
    before = "" if source is None else ast.get_source_segment(source.text, site.node) or ""
    return Edit(site.frame.file, site.span, before, ast.unparse(site.node), after)


def _with_operand(site: Site, text: str) -> str:
    """The operation with another operand."""
    operand = ast.Name("_operand_")
    match site.node:
        case ast.BinOp(op=ast.Div()) as node:
            changed: ast.expr = ast.BinOp(node.left, node.op, operand)
        case ast.BinOp() as node:
            changed = ast.BinOp(operand, node.op, node.right)
        case ast.Call() as node:
            args = [operand if argument is site.operand else argument for argument in node.args]
            changed = ast.Call(node.func, args, node.keywords)
        case _:
            raise ValueError("no operation")
    return ast.unparse(changed).replace("_operand_", text)


def _numpy(choice: ast.Call | None, node: ast.expr) -> str:
    """The user's name for jax.numpy."""
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


def _atom(text: str) -> str:
    return text if text.isidentifier() else f"({text})"


def _unused(file: str, name: str) -> str:
    """A name that stands nowhere in a file."""
    source = read_source(file)
    tree = parse(source.text) if source is not None else None
    taken = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} if tree is not None else set[str]()
    return next(one for one in (name, *(f"{name}_{i}" for i in range(2, 100))) if one not in taken)
