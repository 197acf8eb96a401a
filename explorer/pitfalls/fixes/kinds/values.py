"""Code that asks for the value of what is traced: np.sin(x), float(x), x.item(), `a if x > 0 else b`."""

from __future__ import annotations

import ast

import jax.numpy as jnp
import libcst as cst
import numpy as np

from explorer.capture.sources import as_arrays
from explorer.model.findings import Finding
from explorer.pitfalls.fixes.rewrite import Rewrite
from explorer.pitfalls.fixes.unit import (
    RewriteUncertain,
    Unit,
    finding_span,
    parenthesized,
    parse_expression,
    replace_node,
)


def _numpy(unit: Unit, finding: Finding) -> cst.Module:
    span = finding_span(finding)
    for call in (*unit.around(cst.Call, span), *unit.nodes(cst.Call, span)):
        called = unit.resolve(call.func)
        name = getattr(called, "__name__", "") if called is not ... and isinstance(call.func, cst.Attribute) else ""
        if name and getattr(np, name, None) is called and callable(getattr(jnp, name, None)):
            if any(one.keyword is not None and one.keyword.value == "out" for one in call.args):
                raise RewriteUncertain("it writes to an array")
            return replace_node(unit, call.func, parse_expression(unit.qualified_name(f"jax.numpy.{name}")))
    raise RewriteUncertain("it is no function of NumPy's that jax.numpy has")


def _number(unit: Unit, finding: Finding) -> cst.Module:
    """float(x) where x has a float's dtype already is x; else its value with that dtype."""
    span = finding_span(finding)
    for call in (*unit.around(cst.Call, span), *unit.nodes(cst.Call, span)):
        kind = unit.resolve(call.func)
        match call:
            case cst.Call(args=[cst.Arg(keyword=None, star="", value=value)]) if kind in (float, int, complex):
                if unit.span(call).line != span.line:
                    continue
                if kind is float and "(float" in finding.message:
                    return replace_node(unit, call, parenthesized(value))
                array = parse_expression(unit.qualified_name("jax.numpy.asarray"))
                return replace_node(
                    unit, call, call.with_changes(func=array, args=[cst.Arg(value), cst.Arg(call.func)])
                )
            case cst.Call(func=cst.Attribute(value=value, attr=cst.Name("item")), args=[]):
                return replace_node(unit, call, value)
            case _:
                continue
    raise RewriteUncertain("it is no float(…)")


def _choice(unit: Unit, finding: Finding) -> cst.Module:
    span = finding_span(finding)
    for node in unit.around(cst.IfExp, span):
        if span in unit.span(node.test):
            if not (pure(unit, node.body) and pure(unit, node.orelse)):
                raise RewriteUncertain("both of it would run")
            return replace_node(unit, node, _where(unit, node.test, node.body, node.orelse))
    for branch in unit.around(cst.If, span):
        if span in unit.span(branch.test):
            return _branch(unit, branch)
    raise RewriteUncertain("it is no choice")


def _branch(unit: Unit, branch: cst.If) -> cst.Module:
    """`if c: y = a` / `else: y = b`, or both `return`: one assignment or return of jnp.where."""
    other = branch.orelse
    if not isinstance(other, cst.Else):
        raise RewriteUncertain("there is no else")
    match _only(branch.body), _only(other.body):
        case (
            cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as a)], value=x) as kept,
            cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as b)], value=y),
        ) if a.value == b.value:
            small: cst.BaseSmallStatement = kept.with_changes(value=_checked(unit, branch.test, x, y))
        case cst.Return(value=cst.BaseExpression() as x) as kept, cst.Return(value=cst.BaseExpression() as y):
            small = kept.with_changes(value=_checked(unit, branch.test, x, y))
        case _:
            raise RewriteUncertain("its branches do more than to give one value")
    line = cst.SimpleStatementLine([small], leading_lines=branch.leading_lines)
    return replace_node(unit, branch, line)


def _checked(unit: Unit, test: cst.BaseExpression, x: cst.BaseExpression, y: cst.BaseExpression) -> cst.BaseExpression:
    if not (pure(unit, x) and pure(unit, y)):
        raise RewriteUncertain("both of it would run")
    return _where(unit, test, x, y)


def _only(body: cst.BaseSuite) -> cst.CSTNode | None:
    match body:
        case cst.IndentedBlock(
            body=[cst.SimpleStatementLine(body=[one], leading_lines=above, trailing_whitespace=after)]
        ):
            commented = (
                any(line.comment for line in above) or after.comment is not None or body.header.comment is not None
            )
            return None if commented else one
        case cst.SimpleStatementSuite(body=[one]):
            return one
        case _:
            return None


def _where(unit: Unit, test: cst.BaseExpression, x: cst.BaseExpression, y: cst.BaseExpression) -> cst.Call:
    condition = unit.source(test)
    simple = not isinstance(test, cst.BooleanOperation | cst.UnaryOperation | cst.Comparison) or (
        isinstance(test, cst.Comparison) and len(test.comparisons) == 1
    )
    if not simple:
        condition = as_arrays(ast.parse(condition, mode="eval").body).replace(
            "jnp.", unit.qualified_name("jax.numpy._")[:-1]
        )
    func = parse_expression(unit.qualified_name("jax.numpy.where"))
    return cst.Call(func, [cst.Arg(parse_expression(condition)), cst.Arg(x), cst.Arg(y)])


_PURE = (
    cst.Name, cst.Attribute, cst.BinaryOperation, cst.UnaryOperation, cst.BaseNumber, cst.Comparison, cst.Subscript,
    cst.Index, cst.Slice, cst.SubscriptElement, cst.Arg, cst.ComparisonTarget,
)  # fmt: skip


# Of arrays, and of nothing else that one has in a computation.
_METHODS = (
    "sum", "mean", "prod", "max", "min", "std", "var", "dot", "astype", "reshape", "ravel", "transpose", "squeeze",
    "clip", "argmax", "argmin", "cumsum", "cumprod", "conj", "swapaxes", "flatten", "round",
)  # fmt: skip


def pure(unit: Unit, node: cst.CSTNode) -> bool:
    """Whether an expression only computes, so that it may run though its value isn't needed."""
    if isinstance(node, cst.Call):
        called = unit.resolve(node.func)
        module = getattr(called, "__module__", "") if called is not ... else ""
        of_jax = isinstance(module, str) and module.partition(".")[0] in ("jax", "jaxlib", "flax", "optax")
        method = (
            isinstance(node.func, cst.Attribute) and node.func.attr.value in _METHODS and pure(unit, node.func.value)
        )
        return (of_jax or method) and all(pure(unit, one) for one in node.args)
    if isinstance(
        node, cst.BaseExpression | cst.Arg | cst.SubscriptElement | cst.ComparisonTarget | cst.Index | cst.Slice
    ):
        return isinstance(node, _PURE) and all(pure(unit, one) for one in node.children)
    return True  # blanks, brackets, operators


REWRITES = (
    Rewrite("concretization", "jax.numpy has the same function, and traces it", _numpy),
    Rewrite("concretization", "the value stays traced", _number),
    Rewrite("host-transfer", "the value stays traced", _number),
    Rewrite("concretization", "jnp.where chooses while the program runs, and computes both", _choice),
)
