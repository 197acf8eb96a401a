"""x[i] = v becomes x = x.at[i].set(v). A dict that was passed stays: its caller may read the change."""

from __future__ import annotations

import libcst as cst

from explorer.model.findings import Finding
from explorer.pitfalls.fixes.rewrite import Rewrite
from explorer.pitfalls.fixes.unit import RewriteUncertain, Unit, finding_span, replace_node

_IN_PLACE: dict[type[cst.BaseAugOp], str] = {
    cst.AddAssign: "add",
    cst.SubtractAssign: "subtract",
    cst.MultiplyAssign: "multiply",
    cst.DivideAssign: "divide",
    cst.PowerAssign: "power",
}


def _at(unit: Unit, finding: Finding) -> cst.Module:
    span = finding_span(finding)
    statements = [*unit.around(cst.SimpleStatementLine, span), *unit.nodes(cst.SimpleStatementLine, span)]
    for line in statements:
        match line.body[0]:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript() as target)], value=value):
                return replace_node(unit, line.body[0], _changed(target, "set", value))
            case cst.AugAssign(target=cst.Subscript() as target, operator=operator, value=value):
                method = _IN_PLACE.get(type(operator))
                if method is None:
                    raise RewriteUncertain("jax.Array.at has no such method")
                return replace_node(unit, line.body[0], _changed(target, method, value))
            case _:
                continue
    raise RewriteUncertain("nothing is assigned there")


def _changed(target: cst.Subscript, method: str, value: cst.BaseExpression) -> cst.Assign:
    if not isinstance(target.value, cst.Name):
        raise RewriteUncertain("it isn't a name that is assigned to")
    at = target.with_changes(value=cst.Attribute(target.value, cst.Name("at")))
    call = cst.Call(cst.Attribute(at, cst.Name(method)), [cst.Arg(value)])
    return cst.Assign([cst.AssignTarget(target.value)], call)


REWRITES = (
    Rewrite("argument-mutation", "a new array with the change; inside jax.jit it is made in place", _at),
    Rewrite("concretization", "a new array with the change; inside jax.jit it is made in place", _at),
)
