"""Operations without a finite derivative in the user's text, and how a guard of one is written."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from explorer.capture.sources import Span, parse, read_source, syntax_at
from explorer.model.graph import Frame
from explorer.pitfalls.equations import Equation
from explorer.pitfalls.function_source import Edit, span_of
from explorer.pitfalls.gradients.singular import Singularity
from explorer.pitfalls.gradients.slices import LEAST, Guard, ValueSlice, in_branch

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


def site_of(sliced: ValueSlice, equation: Equation, where: Singularity) -> Site | None:
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


def write(sliced: ValueSlice, site: Site, guard: Guard, choice: ast.Call | None) -> Edit:
    """How a guard is written at its operation."""
    numpy = _numpy(choice, site.node)
    operand = ast.unparse(site.operand)
    where, text = f"{numpy}.where", operand.replace("jnp.", f"{numpy}.") if site.root else operand
    safe, singular = guard.singularity.safe, guard.singularity
    first = _atom(ast.unparse(site.first)) if site.first is not None else ""
    if guard.kind == "condition" and choice is not None:
        condition = ast.unparse(choice.args[0])
        in_true = in_branch(sliced, site.equation, sliced.sink.inputs[2])
        after = f"{where}({condition}, {text}, {safe})" if in_true else f"{where}({condition}, {safe}, {text})"
        return _edit(site, _with_operand(site, after))
    is_short = isinstance(site.operand, ast.Name)
    name = text if is_short else _unused(site.frame.file, "s")
    tested = text if is_short else f"({name} := {text})"
    test = singular.test.format(x=tested, y=first)
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
    return Edit(site.frame.file, site.span, after, before, ast.unparse(site.node))


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
