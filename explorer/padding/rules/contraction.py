"""Contractions: where a padded axis is summed over, both operands are 0 there, for 0 · NaN is NaN."""

from __future__ import annotations

from explorer.padding.interpreter import Call
from explorer.padding.refused import Refused
from explorer.padding.registry import rule
from explorer.padding.values import Value


@rule("dot_general", "dimension_numbers precision preferred_element_type", absent="out_sharding", shrinks=True)
def dot(call: Call) -> Value:
    (contracting_left, contracting_right), (batch_left, batch_right) = call.params["dimension_numbers"]
    left, right = call.aligned(call.inputs, [(*contracting_left, *batch_left), (*contracting_right, *batch_right)])
    arrays = call.masked(left, 0, contracting_left), call.masked(right, 0, contracting_right)
    free = [
        value.layout[axis]
        for value, used in ((left, (*contracting_left, *batch_left)), (right, (*contracting_right, *batch_right)))
        for axis in range(value.rank)
        if axis not in used
    ]
    batch = [left.layout[one] or right.layout[other] for one, other in zip(batch_left, batch_right, strict=True)]
    return call.value(call.bind(*arrays), (*batch, *free))


@rule("ragged_dot_general", "ragged_dot_dimension_numbers precision preferred_element_type", absent="group_offset")
def ragged_dot(call: Call) -> Value:
    raise Refused("a ragged product's groups are counted along a padded axis")
