"""Sorting: padded keys are the greatest there are, so that what is valid comes first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from explorer.padding.interpreter import Call
from explorer.padding.refused import Refused
from explorer.padding.registry import rule
from explorer.padding.values import Fill, Value, identity


@rule("sort", "dimension is_stable num_keys")
def sort(call: Call) -> Sequence[Value]:
    axis, keys = int(call.params["dimension"]), call.params["num_keys"]
    values = call.aligned(call.inputs, [range(value.rank) for value in call.inputs])
    layout = call.in_one_piece(values[0], [axis])
    if not values[0].is_padded(axis):
        return call.values(call.bind(*(value.array for value in values)), layout)
    # A valid element as great as the padding comes before it, if equal ones keep their order.
    stable = call.params["is_stable"] or keys < len(values)
    arrays = [call.masked(value, _greatest(value.aval.dtype), [axis]) for value in values[:keys]]
    rest = [value.array for value in values[keys:]]
    return call.values(call.bind(*arrays, *rest, is_stable=stable), layout)


def _greatest(dtype: Any) -> Fill:
    """What JAX sorts behind everything else: NaN, whatever its sign."""
    if jnp.issubdtype(dtype, np.complexfloating):
        return complex(np.nan, np.nan)
    if jnp.issubdtype(dtype, np.inexact):
        return np.nan
    return identity("min", dtype)


@rule("top_k", "k axis is_stable")
def top_k(call: Call) -> Sequence[Value]:
    (operand,) = call.inputs
    axis = int(call.params.get("axis", -1)) % operand.rank
    value = call.unmerged(operand, [axis])
    if value.is_padded(axis) and not call.params.get("is_stable", True):
        raise Refused("the largest elements of a padded axis, in any order of equal ones")
    # Of equal elements the first are meant, and valid positions come first.
    array = call.masked(value, identity("max", value.aval.dtype), [axis])
    return call.values(call.bind(array), call.in_one_piece(value, [axis]))


@rule("approx_top_k", "k reduction_dimension recall_target is_max_k reduction_input_size_override aggregate_to_topk")
def approximate_top_k(call: Call) -> Sequence[Value]:
    (operand,) = call.inputs
    axis = int(call.params["reduction_dimension"]) % operand.rank
    if operand.is_padded(axis):
        raise Refused("how well the largest elements are approximated depends on the size", "use jax.lax.top_k")
    return call.values(call.bind(operand.array), call.in_one_piece(operand, [axis]))
