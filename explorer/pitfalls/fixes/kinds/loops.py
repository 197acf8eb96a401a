"""Loops: what is the same in every turn is made above it; a plain one over range() becomes jax.lax.fori_loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst

from explorer.model.findings import Finding
from explorer.pitfalls.fixes.kinds.values import pure
from explorer.pitfalls.fixes.rewrite import Rewrite
from explorer.pitfalls.fixes.unit import (
    RewriteUncertain,
    Unit,
    descendants,
    finding_span,
    parenthesized,
    parse_expression,
    replace_node,
)


def _hoisted(unit: Unit, finding: Finding) -> cst.Module:
    """jax.jit(lambda …) of a loop's body, assigned once above it, if nothing in it changes from turn to turn."""
    span = finding_span(finding)
    call = next((one for one in unit.around(cst.Call, span) if unit.span(one) == span), None)
    loop: Any = next(iter(_loops(unit, finding)), None)
    if call is None or loop is None:
        raise RewriteUncertain("it isn't in a loop")
    if _names(call) & _bound_in(loop):
        raise RewriteUncertain("it isn't the same in every turn")
    name = unit.unused_name("jitted")
    block = next(iter(one for one in unit.around(cst.IndentedBlock, unit.span(loop)) if loop in one.body), None)
    body: Sequence[Any] = block.body if block is not None else unit.module.body
    made = cst.SimpleStatementLine(
        [cst.Assign([cst.AssignTarget(cst.Name(name))], call)], leading_lines=loop.leading_lines
    )
    below = loop.with_changes(leading_lines=[]).deep_replace(call, cst.Name(name))
    at = list(body).index(loop)
    new = [*body[:at], made, below, *body[at + 1 :]]
    return (
        replace_node(unit, block, block.with_changes(body=new))
        if block is not None
        else unit.module.with_changes(body=new)
    )


def _fori(unit: Unit, finding: Finding) -> cst.Module:
    """`for i in range(n): x = …` with one name that goes from turn to turn."""
    loop = next((one for one in unit.nodes(cst.For) if unit.span(one).line == finding.line), None)
    if loop is None or loop.orelse is not None or loop.asynchronous is not None:
        raise RewriteUncertain("it is no plain loop")
    low, high, index = range_of(unit, loop)
    name, value = _only_assignment(loop)
    if index in _read_after(unit, loop):
        raise RewriteUncertain(f"{index} is read after the loop")
    if not pure(unit, value):
        raise RewriteUncertain("its body may do more than to compute")
    turn = cst.Lambda(cst.Parameters([cst.Param(cst.Name(index)), cst.Param(cst.Name(name))]), value)
    func = parse_expression(unit.qualified_name("jax.lax.fori_loop"))
    call = cst.Call(func, [cst.Arg(low), cst.Arg(high), cst.Arg(turn), cst.Arg(cst.Name(name))])
    line = cst.SimpleStatementLine(
        [cst.Assign([cst.AssignTarget(cst.Name(name))], call)], leading_lines=loop.leading_lines
    )
    return replace_node(unit, loop, line)


def range_of(unit: Unit, loop: cst.For) -> tuple[cst.BaseExpression, cst.BaseExpression, str]:
    """From where to where a loop over range() goes, and its variable."""
    match loop.target, loop.iter:
        case cst.Name(index), cst.Call(func=func, args=[cst.Arg(keyword=None, star="", value=high)]):
            low: cst.BaseExpression = cst.Integer("0")
        case cst.Name(index), cst.Call(
            func=func, args=[cst.Arg(keyword=None, star="", value=low), cst.Arg(keyword=None, star="", value=high)]
        ):
            pass
        case _:
            raise RewriteUncertain("it doesn't go through a range()")
    if unit.resolve(func) is not range:
        raise RewriteUncertain("it doesn't go through a range()")
    return low, high, index


def _only_assignment(loop: cst.For) -> tuple[str, cst.BaseExpression]:
    match loop.body:
        case cst.IndentedBlock(body=[cst.SimpleStatementLine(body=[small]) as line]):
            if (
                line.trailing_whitespace.comment
                or any(one.comment for one in line.leading_lines)
                or loop.body.header.comment
            ):
                raise RewriteUncertain("a comment would be lost")
        case _:
            raise RewriteUncertain("its body is more than an assignment")
    match small:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(name))], value=value):
            return name, value
        case cst.AugAssign(target=cst.Name(name), operator=operator, value=value) if type(operator) in BINARY:
            return name, cst.BinaryOperation(cst.Name(name), BINARY[type(operator)](), parenthesized(value))
        case _:
            raise RewriteUncertain("its body is more than an assignment")


BINARY: dict[Any, Any] = {
    cst.AddAssign: cst.Add,
    cst.SubtractAssign: cst.Subtract,
    cst.MultiplyAssign: cst.Multiply,
    cst.DivideAssign: cst.Divide,
    cst.MatrixMultiplyAssign: cst.MatrixMultiply,
}


def _loops(unit: Unit, finding: Finding) -> list[Any]:
    """The loops around a finding, the innermost first."""
    around = [*unit.around(cst.For, finding_span(finding)), *unit.around(cst.While, finding_span(finding))]
    return sorted(around, key=lambda loop: -unit.span(loop).line)


def _names(node: cst.CSTNode) -> set[str]:
    return {part.value for part in descendants(node) if isinstance(part, cst.Name)} - _parameters(node)


def _parameters(node: cst.CSTNode) -> set[str]:
    """The names of a lambda's parameters, where the node has one as its own first argument."""
    match node:
        case cst.Call(args=[cst.Arg(value=cst.Lambda(params=parameters)), *_]):
            return {one.name.value for one in parameters.params}
        case _:
            return set()


def _bound_in(loop: Any) -> set[str]:
    """The names that a loop gives values to."""
    names: set[str] = _names(loop.target) if isinstance(loop, cst.For) else set()
    for node in descendants(loop.body):
        if isinstance(node, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.NamedExpr, cst.For, cst.CompFor)):
            names |= _names(node.target)
        elif isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            names.add(node.name.value)
        elif isinstance(node, (cst.With, cst.Import, cst.ImportFrom, cst.Del, cst.ExceptHandler, cst.Match)):
            names |= _names(node)
    return names


def _read_after(unit: Unit, loop: cst.For) -> set[str]:
    end = unit.span(loop).end_line
    return {name.value for name in unit.nodes(cst.Name) if unit.span(name).line > end}


REWRITES = (
    Rewrite("rejit-in-loop", "jax.jit once, above the loop", _hoisted),
    Rewrite("unrolled-loop", "jax.lax.fori_loop traces its body once", _fori),
)
