"""One random key used several times: each use gets a subkey of its own."""

from __future__ import annotations

from typing import Any

import jax
import libcst as cst

from explorer.model.findings.finding import Finding
from explorer.pitfalls.fixes.rewrite import Rewrite
from explorer.pitfalls.fixes.unit import RewriteUncertain, Unit, finding_span, parse_expression, replace_node

__all__ = ["REWRITES"]

_NO_DRAWS = ("split", "key", "PRNGKey", "fold_in", "wrap_key_data", "key_data", "clone", "key_impl")


def _split(unit: Unit, finding: Finding) -> cst.Module:
    span = finding_span(finding)
    used = next((one for one in unit.around(cst.Call, span) if _draws(unit, one)), None)
    if used is None or not isinstance(used.args[0].value, cst.Name):
        raise RewriteUncertain("it isn't known what draws")
    key = used.args[0].value.value
    block = next(iter(unit.around(cst.IndentedBlock, unit.span(used))), None)
    if block is None:
        raise RewriteUncertain("it stands in no block")
    name = unit.unused_name("subkey")
    body: list[Any] = []
    for line in block.body:
        draws = [one for one in unit.nodes(cst.Call, unit.span(line)) if _draws(unit, one) and _is(one, key)]
        if not draws:
            body.append(line)
            continue
        if len(draws) > 1 or not isinstance(line, cst.SimpleStatementLine) or _in_a_function(unit, draws[0], block):
            raise RewriteUncertain("it isn't one draw after the other")
        split = parse_expression(unit.qualified_name("jax.random.split"))
        targets = cst.Tuple([cst.Element(cst.Name(key)), cst.Element(cst.Name(name))], lpar=[], rpar=[])
        made = cst.Assign([cst.AssignTarget(targets)], cst.Call(split, [cst.Arg(cst.Name(key))]))
        body.append(cst.SimpleStatementLine([made], leading_lines=line.leading_lines))
        args = [draws[0].args[0].with_changes(value=cst.Name(name)), *draws[0].args[1:]]
        body.append(line.with_changes(leading_lines=[]).deep_replace(draws[0], draws[0].with_changes(args=args)))
    return replace_node(unit, block, block.with_changes(body=body))


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
