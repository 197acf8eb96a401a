"""A loop over range() whose body is several assignments becomes jax.lax.fori_loop, with that body as a function."""

from __future__ import annotations

import libcst as cst

from explorer.model.findings.finding import Finding
from explorer.pitfalls.fixes.kinds.loops import BINARY, range_of
from explorer.pitfalls.fixes.kinds.values import pure
from explorer.pitfalls.fixes.rewrite import Rewrite
from explorer.pitfalls.fixes.unit import RewriteUncertain, Unit, parse_expression

__all__ = ["REWRITES"]


def _fori(unit: Unit, finding: Finding) -> cst.Module:
    loop = next((one for one in unit.nodes(cst.For) if unit.span(one).line == finding.line), None)
    if loop is None or loop.orelse is not None or not isinstance(loop.body, cst.IndentedBlock):
        raise RewriteUncertain("it is no plain loop")
    low, high, index = range_of(unit, loop)
    assigned, carried = _names(unit, loop, loop.body, index)
    if index in assigned:
        raise RewriteUncertain(f"{index} is assigned")
    block = next((one for one in unit.around(cst.IndentedBlock, unit.span(loop)) if loop in one.body), None)
    if block is None or not carried:
        raise RewriteUncertain("it stands in no function, or nothing goes from turn to turn")
    alone = len(carried) == 1
    name = unit.unused_name("body")
    carry = carried[0] if alone else unit.unused_name("carry")
    names = f"{carried[0]}" if alone else ", ".join(carried)
    body = [*loop.body.body, cst.parse_statement(f"return {names}")]
    if not alone:
        body.insert(0, cst.parse_statement(f"{names} = {carry}"))
    parameters = cst.Parameters([cst.Param(cst.Name(index)), cst.Param(cst.Name(carry))])
    turn = cst.FunctionDef(
        cst.Name(name), parameters, loop.body.with_changes(body=body), leading_lines=loop.leading_lines
    )
    func = parse_expression(unit.qualified_name("jax.lax.fori_loop"))
    first = parse_expression(carry if alone else f"({names})")
    call = cst.Call(func, [cst.Arg(low), cst.Arg(high), cst.Arg(cst.Name(name)), cst.Arg(first)])
    target = cst.Name(carry) if alone else cst.Tuple([cst.Element(cst.Name(one)) for one in carried], lpar=[], rpar=[])
    line = cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(target)], call)])
    at = list(block.body).index(loop)
    new = [*block.body[:at], turn, line, *block.body[at + 1 :]]
    changed = unit.module.deep_replace(block, block.with_changes(body=new))
    assert isinstance(changed, cst.Module)
    return changed


def _names(unit: Unit, loop: cst.For, body: cst.IndentedBlock, index: str) -> tuple[set[str], list[str]]:
    """The names that the body assigns, and those of them that go from turn to turn or are read elsewhere."""
    inside = unit.span(loop)
    elsewhere = {
        one.value for one in unit.nodes(cst.Name) if unit.span(one) not in inside and not _is_target(unit, one)
    }
    if index in elsewhere:
        raise RewriteUncertain(f"{index} is read after the loop")
    assigned: dict[str, None] = {}
    early: set[str] = set()
    for line in body.body:
        match line:
            case cst.SimpleStatementLine(
                body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(name))], value=value)]
            ):
                reads = _read(value)
            case cst.SimpleStatementLine(body=[cst.AugAssign(target=cst.Name(name), operator=operator, value=value)]):
                if type(operator) not in BINARY:
                    raise RewriteUncertain("an operator that arrays don't have")
                reads = _read(value) | {name}
            case _:
                raise RewriteUncertain("its body is more than assignments")
        if not pure(unit, value):
            raise RewriteUncertain("its body may do more than to compute")
        early |= reads - set(assigned)
        assigned[name] = None
    return set(assigned), [name for name in assigned if name in early or name in elsewhere]


def _read(node: cst.CSTNode) -> set[str]:
    found = {node.value} if isinstance(node, cst.Name) else set[str]()
    return found.union(*(_read(child) for child in node.children))


def _is_target(unit: Unit, name: cst.Name) -> bool:
    """Whether a name is only assigned there."""
    return any(one.target is name for one in unit.around(cst.AssignTarget, unit.span(name)))


REWRITES = (Rewrite("unrolled-loop", "jax.lax.fori_loop traces its body once", _fori),)
