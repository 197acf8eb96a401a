"""A loop over range() whose body is several assignments becomes jax.lax.fori_loop, with that body as a function."""

from __future__ import annotations

import libcst as cst

from explorer.model.findings import Finding
from explorer.pitfalls.fixes.kinds.loops import BINARY, range_of
from explorer.pitfalls.fixes.kinds.values import pure
from explorer.pitfalls.fixes.rewrite import Rewrite
from explorer.pitfalls.fixes.unit import RewriteUncertain, Unit, descendants, parse_expression, replace_node


def _fori(unit: Unit, finding: Finding) -> cst.Module:
    loop, body = _plain_loop(unit, finding)
    low, high, index = range_of(unit, loop)
    carried = _carried(unit, loop, body, index)
    block = next((block for block in unit.around(cst.IndentedBlock, unit.span(loop)) if loop in block.body), None)
    if block is None or not carried:
        raise RewriteUncertain("it stands in no function, or nothing goes from turn to turn")
    name, lines = unit.unused_name("body"), [*body.body]
    if len(carried) == 1:
        carry, target = carried[0], cst.Name(carried[0])
        first: cst.BaseExpression = target
    else:
        carry, elements = unit.unused_name("carry"), [cst.Element(cst.Name(one)) for one in carried]
        target, first = cst.Tuple(elements, lpar=[], rpar=[]), cst.Tuple(elements)
        lines.insert(0, cst.parse_statement(f"{', '.join(carried)} = {carry}"))
    lines.append(cst.parse_statement(f"return {', '.join(carried)}"))
    parameters = cst.Parameters([cst.Param(cst.Name(index)), cst.Param(cst.Name(carry))])
    turn = cst.FunctionDef(cst.Name(name), parameters, body.with_changes(body=lines), leading_lines=loop.leading_lines)
    func = parse_expression(unit.qualified_name("jax.lax.fori_loop"))
    call = cst.Call(func, [cst.Arg(low), cst.Arg(high), cst.Arg(cst.Name(name)), cst.Arg(first)])
    line = cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(target)], call)])
    at = list(block.body).index(loop)
    return replace_node(unit, block, block.with_changes(body=[*block.body[:at], turn, line, *block.body[at + 1 :]]))


def _plain_loop(unit: Unit, finding: Finding) -> tuple[cst.For, cst.IndentedBlock]:
    loop = next((loop for loop in unit.nodes(cst.For) if unit.span(loop).line == finding.line), None)
    if loop is None or loop.orelse is not None or not isinstance(loop.body, cst.IndentedBlock):
        raise RewriteUncertain("it is no plain loop")
    return loop, loop.body


def _carried(unit: Unit, loop: cst.For, body: cst.IndentedBlock, index: str) -> list[str]:
    """The names that the body assigns and that go from turn to turn, or are read elsewhere."""
    inside = unit.span(loop)
    outside = (name for name in unit.nodes(cst.Name) if unit.span(name) not in inside and not _is_target(unit, name))
    elsewhere = {name.value for name in outside}
    if index in elsewhere:
        raise RewriteUncertain(f"{index} is read after the loop")
    assigned: dict[str, None] = {}
    early: set[str] = set()  # read in a turn before the turn assigns them
    for line in body.body:
        name, value, reads = _assignment(line)
        if name == index:
            raise RewriteUncertain(f"{index} is assigned")
        if not pure(unit, value):
            raise RewriteUncertain("its body may do more than to compute")
        early |= reads - set(assigned)
        assigned[name] = None
    return [name for name in assigned if name in early or name in elsewhere]


def _assignment(line: cst.CSTNode) -> tuple[str, cst.BaseExpression, set[str]]:
    """The name that a statement assigns, the value, and the names that it reads."""
    match line:
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(name))], value=value)]):
            return name, value, _read(value)
        case cst.SimpleStatementLine(body=[cst.AugAssign(target=cst.Name(name), operator=operator, value=value)]):
            if type(operator) not in BINARY:
                raise RewriteUncertain("an operator that arrays don't have")
            return name, value, _read(value) | {name}
        case _:
            raise RewriteUncertain("its body is more than assignments")


def _read(node: cst.CSTNode) -> set[str]:
    return {part.value for part in descendants(node) if isinstance(part, cst.Name)}


def _is_target(unit: Unit, name: cst.Name) -> bool:
    """Whether a name is only assigned there."""
    return any(one.target is name for one in unit.around(cst.AssignTarget, unit.span(name)))


REWRITES = (Rewrite("unrolled-loop", "jax.lax.fori_loop traces its body once", _fori),)
