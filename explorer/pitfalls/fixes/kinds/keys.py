"""One random key used several times: each use gets a subkey of its own."""

from __future__ import annotations

from typing import Any

import jax
import libcst as cst

from explorer.model.findings import Finding
from explorer.pitfalls.fixes.rewrite import Rewrite
from explorer.pitfalls.fixes.unit import RewriteUncertain, Unit, finding_span, parse_expression, replace_node

_NO_DRAWS = ("split", "key", "PRNGKey", "fold_in", "wrap_key_data", "key_data", "clone", "key_impl")


def _split(unit: Unit, finding: Finding) -> cst.Module:
    span = finding_span(finding)
    used = next((call for call in unit.around(cst.Call, span) if _draws(unit, call)), None)
    block = next(iter(unit.around(cst.IndentedBlock, unit.span(used))), None) if used is not None else None
    if used is None or block is None or not isinstance(used.args[0].value, cst.Name):
        raise RewriteUncertain("it isn't known what draws")
    key = used.args[0].value.value
    name, split = unit.unused_name("subkey"), parse_expression(unit.qualified_name("jax.random.split"))
    body: list[Any] = []
    for line in block.body:
        draws = [call for call in unit.nodes(cst.Call, unit.span(line)) if _draws(unit, call) and _is(call, key)]
        body += _with_subkey(unit, block, line, draws, name, split) if draws else [line]
    return replace_node(unit, block, block.with_changes(body=body))


def _with_subkey(
    unit: Unit, block: cst.IndentedBlock, line: Any, draws: list[cst.Call], name: str, split: cst.BaseExpression
) -> list[Any]:
    """A statement that draws once, under one that splits the key: `key, subkey = jax.random.split(key)`."""
    draw, *others = draws
    if others or not isinstance(line, cst.SimpleStatementLine) or _in_a_function(unit, draw, block):
        raise RewriteUncertain("it isn't one draw after the other")
    key = draw.args[0].value
    targets = cst.Tuple([cst.Element(key), cst.Element(cst.Name(name))], lpar=[], rpar=[])
    above = cst.Assign([cst.AssignTarget(targets)], cst.Call(split, [cst.Arg(key)]))
    args = [draw.args[0].with_changes(value=cst.Name(name)), *draw.args[1:]]
    below = line.with_changes(leading_lines=[]).deep_replace(draw, draw.with_changes(args=args))
    return [cst.SimpleStatementLine([above], leading_lines=line.leading_lines), below]


def _draws(unit: Unit, call: cst.Call) -> bool:
    called = unit.resolve(call.func)
    name = getattr(called, "__name__", "") if called is not ... else ""
    return bool(call.args) and name not in _NO_DRAWS and getattr(jax.random, name or "-", None) is called


def _is(call: cst.Call, key: str) -> bool:
    first = call.args[0].value
    return isinstance(first, cst.Name) and first.value == key


def _in_a_function(unit: Unit, call: cst.Call, block: cst.IndentedBlock) -> bool:
    span = unit.span(block)
    inner = [*unit.around(cst.Lambda, unit.span(call)), *unit.around(cst.FunctionDef, unit.span(call))]
    loops = [*unit.around(cst.CompFor, unit.span(call)), *unit.around(cst.GeneratorExp, unit.span(call))]
    return any(unit.span(one) in span and unit.span(one) != span for one in (*inner, *loops))


REWRITES = (Rewrite("key-reuse", "each draw has a key of its own", _split),)
