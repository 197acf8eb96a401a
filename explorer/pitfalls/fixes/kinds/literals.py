"""A dtype that JAX narrows anyway, a list as a static argument, a breakpoint(): one word for another."""

from __future__ import annotations

import libcst as cst

from explorer.model.findings import Finding
from explorer.pitfalls.fixes.rewrite import Rewrite
from explorer.pitfalls.fixes.unit import (
    RewriteUncertain,
    Unit,
    finding_span,
    parse_expression,
    replace_node,
    replace_parts,
)

# Digits that are lost are what one expects of 32 bits; whole numbers that they can't hold would become others.
_NARROW = {"float64": "float32", "complex128": "complex64"}


def _narrow(unit: Unit, finding: Finding) -> cst.Module:
    """All such dtypes in the statement of what was found: JAX warns of each line once."""
    new: list[tuple[cst.CSTNode, cst.CSTNode]] = []
    statement = next(iter(unit.around(cst.SimpleStatementLine, finding_span(finding))), None)
    within = unit.span(statement) if statement is not None else finding_span(finding)
    for node in unit.nodes(cst.BaseExpression, within):
        if isinstance(node, cst.Attribute) and node.attr.value in _NARROW:
            new.append((node.attr, cst.Name(_NARROW[node.attr.value])))
        elif isinstance(node, cst.SimpleString) and node.raw_value in _NARROW:
            new.append((node, cst.SimpleString(f"{node.quote}{_NARROW[node.raw_value]}{node.quote}")))
    if not new:
        raise RewriteUncertain("no dtype is named there")
    return replace_parts(unit.module, new)


def _tuple(unit: Unit, finding: Finding) -> cst.Module:
    span = finding_span(finding)
    node = next((node for node in unit.around(cst.List, span) if unit.span(node) == span), None)
    if node is None or any(isinstance(element, cst.StarredElement) for element in node.elements):
        raise RewriteUncertain("it is no list")
    elements = node.elements
    if len(elements) == 1:
        elements = [elements[0].with_changes(comma=cst.Comma())]
    return replace_node(unit, node, cst.Tuple(elements))


def _breakpoint(unit: Unit, finding: Finding) -> cst.Module:
    call = unit.at(finding_span(finding), cst.Call)
    if unit.source(call.func) not in ("breakpoint", "pdb.set_trace") or call.args:
        raise RewriteUncertain("it is no breakpoint()")
    return replace_node(unit, call.func, parse_expression(unit.qualified_name("jax.debug.breakpoint")))


REWRITES = (
    Rewrite("truncation", "the dtype that it is", _narrow),
    Rewrite("unhashable-static", "a tuple has a hash", _tuple),
    Rewrite("impure-print", "jax.debug.breakpoint() stops while the program runs", _breakpoint),
)
