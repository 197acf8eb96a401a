"""x[mask].sum() and its like: the mask becomes the reduction's `where`, and the shape stays what it is."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from explorer.model.findings import Finding
from explorer.pitfalls.fixes.rewrite import Rewrite
from explorer.pitfalls.fixes.unit import RewriteUncertain, Unit, finding_span, replace_node

_REDUCTIONS = ("sum", "mean", "prod", "any", "all", "std", "var")


def _reduced(unit: Unit, finding: Finding) -> cst.Module:
    span = finding_span(finding)
    masked = [*unit.nodes(cst.Subscript, span), *unit.around(cst.Subscript, span)]
    for call in unit.around(cst.Call, span):
        for node in masked:
            method = m.matches(call.func, m.Attribute(attr=m.OneOf(*map(m.Name, _REDUCTIONS))))
            if not method or len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
                continue
            if not _has_its_shape(unit, node.slice[0].slice.value, node.value):
                raise RewriteUncertain("the mask may have fewer dimensions")
            mask = cst.Arg(node.slice[0].slice.value, cst.Name("where"), equal=_EQUAL)
            assert isinstance(call.func, cst.Attribute)
            if call.func.value is node and not call.args:
                return replace_node(
                    unit, call, call.with_changes(func=call.func.with_changes(value=node.value), args=[mask])
                )
            called = getattr(unit.resolve(call.func), "__module__", "")
            if len(call.args) == 1 and call.args[0].value is node and str(called).startswith("jax"):
                return replace_node(unit, call, call.with_changes(args=[cst.Arg(node.value), mask]))
    raise RewriteUncertain("what is done with it isn't a reduction")


def _has_its_shape(unit: Unit, mask: cst.BaseExpression, array: cst.BaseExpression) -> bool:
    """Whether a mask is a comparison of the array itself, and so as large as that."""
    match mask:
        case cst.Name(name):
            given = [one for one in unit.nodes(cst.Assign) if m.matches(one.targets[0].target, m.Name(name))]
            return (
                len(given) == 1
                and not isinstance(given[0].value, cst.Name)
                and _has_its_shape(unit, given[0].value, array)
            )
        case cst.Comparison(left=left, comparisons=others):
            return any(one.deep_equals(array) for one in (left, *(other.comparator for other in others)))
        case cst.BinaryOperation(left=left, operator=cst.BitAnd() | cst.BitOr(), right=right):
            return _has_its_shape(unit, left, array) and _has_its_shape(unit, right, array)
        case cst.UnaryOperation(operator=cst.BitInvert(), expression=inner):
            return _has_its_shape(unit, inner, array)
        case _:
            return False


_EQUAL = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
REWRITES = (Rewrite("boolean-mask", "the reduction leaves out what the mask does, and the shape stays", _reduced),)
