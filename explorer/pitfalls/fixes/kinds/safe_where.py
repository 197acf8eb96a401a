"""jnp.where(y > 0, jnp.sqrt(y), 0): the branch gets a value that it can be derived at, where it isn't chosen."""

from __future__ import annotations

import jax.numpy as jnp
import libcst as cst

from explorer.model.findings.finding import Finding
from explorer.pitfalls.fixes.rewrite import Rewrite
from explorer.pitfalls.fixes.unit import RewriteUncertain, Unit, finding_span, replace_node, replace_parts

__all__ = ["REWRITES"]


def _double(unit: Unit, finding: Finding) -> cst.Module:
    span = finding_span(finding)
    call = next((one for one in unit.around(cst.Call, span) if unit.resolve(one.func) is jnp.where), None)
    call = call or next((one for one in unit.nodes(cst.Call, span) if unit.resolve(one.func) is jnp.where), None)
    if call is None or len(call.args) != 3 or any(one.keyword is not None or one.star for one in call.args):
        raise RewriteUncertain("it is no jnp.where with two branches")
    condition = call.args[0].value
    if not isinstance(condition, cst.Comparison) or len(condition.comparisons) != 1:
        raise RewriteUncertain("the condition is no comparison")
    for value in (condition.left, condition.comparisons[0].comparator):
        if isinstance(value, cst.BaseNumber):
            continue
        for branch in (1, 2):
            same = [one for one in _within(call.args[branch].value) if one.deep_equals(value)]
            if same:
                chosen = [cst.Arg(condition), cst.Arg(value), cst.Arg(cst.Integer("1"))]
                if branch == 2:
                    chosen[1:] = reversed(chosen[1:])
                changed = replace_parts(call.args[branch], [(one, cst.Call(call.func, chosen)) for one in same])
                args = [changed if i == branch else one for i, one in enumerate(call.args)]
                return replace_node(unit, call, call.with_changes(args=args))
    raise RewriteUncertain("no branch computes with what is compared")


def _within(node: cst.CSTNode) -> list[cst.CSTNode]:
    return [node, *(inner for child in node.children for inner in _within(child))]


REWRITES = (Rewrite("nan-gradient", "where it isn't chosen, the branch computes with 1", _double),)
