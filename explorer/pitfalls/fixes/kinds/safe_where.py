"""jnp.where(y > 0, jnp.sqrt(y), 0): the branch gets a value that it can be derived at, where it isn't chosen."""

from __future__ import annotations

from itertools import product

import jax.numpy as jnp
import libcst as cst

from explorer.model.findings.finding import Finding
from explorer.pitfalls.fixes.rewrite import Rewrite
from explorer.pitfalls.fixes.unit import RewriteUncertain, Unit, descendants, finding_span, replace_node, replace_parts


def _double(unit: Unit, finding: Finding) -> cst.Module:
    """Choose twice: what the condition compares is 1 for the branch where that isn't chosen."""
    call = _choice(unit, finding)
    condition = call.args[0].value
    if not isinstance(condition, cst.Comparison) or len(condition.comparisons) != 1:
        raise RewriteUncertain("the condition is no comparison")
    compared = (condition.left, condition.comparisons[0].comparator)
    values = [value for value in compared if not isinstance(value, cst.BaseNumber)]
    for value, branch in product(values, (1, 2)):
        uses = [node for node in descendants(call.args[branch].value) if node.deep_equals(value)]
        if uses:
            safe = [cst.Arg(value), cst.Arg(cst.Integer("1"))]
            chosen = cst.Call(call.func, [cst.Arg(condition), *(safe if branch == 1 else reversed(safe))])
            changed = replace_parts(call.args[branch], [(use, chosen) for use in uses])
            args = [changed if i == branch else arg for i, arg in enumerate(call.args)]
            return replace_node(unit, call, call.with_changes(args=args))
    raise RewriteUncertain("no branch computes with what is compared")


def _choice(unit: Unit, finding: Finding) -> cst.Call:
    span = finding_span(finding)
    calls = (call for call in (*unit.around(cst.Call, span), *unit.nodes(cst.Call, span)))
    call = next((call for call in calls if unit.resolve(call.func) is jnp.where), None)
    if call is None or len(call.args) != 3 or any(arg.keyword is not None or arg.star for arg in call.args):
        raise RewriteUncertain("it is no jnp.where with two branches")
    return call


REWRITES = (Rewrite("nan-gradient", "where it isn't chosen, the branch computes with 1", _double),)
