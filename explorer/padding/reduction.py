"""Rules for reductions, cumulative operations, argmax and sorting.

Padding is masked with the neutral element; for sorting with the greatest key, so that valid elements come first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from explorer.padding.interpreter import Call, Fill, Layout, Value, identity, rule, scalar_fill
from explorer.padding.sizes import Refused


def _kind(call: Call) -> str:
    """Return the operation of `reduce_sum`, `cumsum` or `argmax`: `sum`, `sum`, `max`; `max` for logsumexp too."""
    kind = re.split("reduce_|cum|arg", call.name)[-1]
    return "max" if kind == "logsumexp" else kind  # padding of -inf adds nothing to either


@rule(
    "reduce_sum reduce_prod reduce_max reduce_min reduce_or reduce_and reduce_xor",
    "axes",
    absent="out_sharding",
    shrinks=True,
)
def reduction(call: Call) -> Value:
    (value,) = call.inputs
    kind, axes = _kind(call), [int(axis) for axis in call.params["axes"]]
    neutral = identity(kind, value.aval.dtype)
    kept = [axis for axis in range(value.rank) if axis not in axes]
    if kind == "prod" and _is_complex(value) and any(value.is_padded(axis) for axis in axes):
        return call.value(_product_of_valid(call, value, axes), _settled(value, kept))
    sums_alone = kind == "sum" and _sums_alone(value, axes, neutral)
    array = value.array if sums_alone else call.masked(value, neutral, axes)
    fills = [_reduced(kind, value.fills[axis], neutral) for axis in kept]
    result = call.value(call.bind(array), _settled(value, kept), fills)
    if kind == "max":
        result.greatest_of = array, frozenset(axes)
    return result


def _sums_alone(value: Value, axes: Sequence[int], neutral: Fill) -> bool:
    """Return True if there is padding and it changes no sum: it is 0, or NaN only if all valid elements are NaN."""
    padded = [axis for axis in axes if value.is_padded(axis)]
    return bool(padded) and all(axis in value.or_nan and value.or_nan[axis] == neutral for axis in padded)


def _is_complex(value: Value) -> bool:
    return jnp.issubdtype(value.aval.dtype, jnp.complexfloating)


def _product_of_valid(call: Call, value: Value, axes: Sequence[int]) -> Any:
    """Return the product of the valid elements. 1 isn't neutral for complex numbers: (inf+0j)·(1+0j) is inf+nanj."""
    mask = jnp.ones(value.array.shape, bool)
    for axis in axes:
        if value.is_padded(axis):
            own = call.sizes.mask(value.layout[axis] or (value.shape[axis],))
            mask = lax.bitwise_and(mask, lax.broadcast_in_dim(own, mask.shape, (axis,)))

    def both(one: tuple[Any, Any], other: tuple[Any, Any]) -> tuple[Any, Any]:
        product = lax.select(one[1], lax.select(other[1], one[0] * other[0], one[0]), other[0])
        return product, lax.bitwise_or(one[1], other[1])

    one = jnp.ones((), value.aval.dtype)
    product, is_any = lax.reduce((value.array, mask), (one, jnp.zeros((), bool)), both, axes)
    return lax.select(is_any, product, jnp.ones_like(product))


def _settled(value: Value, axes: Sequence[int]) -> Layout:
    return tuple(value.layout[axis] for axis in axes)


def _reduced(kind: str, fill: Fill, neutral: Fill) -> Fill:
    """Return the reduction of elements that all equal `fill`; None if it is unknown."""
    if fill == neutral or kind in ("max", "min", "or", "and"):
        return fill
    return 0 if kind == "prod" and fill == 0 else None


@rule("reduce", "computation jaxpr dimensions")
def any_reduction(call: Call) -> Sequence[Value]:
    operands, starts = call.inputs[: len(call.inputs) // 2], call.inputs[len(call.inputs) // 2 :]
    axes = [int(axis) for axis in call.params["dimensions"]]
    kept = [axis for axis in range(operands[0].rank) if axis not in axes]
    neutral = _neutral(call.params["jaxpr"], operands)
    # XLA's result is undefined if the start isn't neutral.
    if neutral is not None and scalar_fill(starts[0]) == neutral:
        array = call.masked(operands[0], neutral, axes)
        return call.values(call.bind(array, starts[0].array), _settled(operands[0], kept))
    if any(operands[0].is_padded(axis) for axis in axes):
        raise Refused(
            "a reduction over a padded axis by a function without a known neutral element",
            "use a sum, product, maximum or minimum",
        )
    values = call.aligned(operands, [range(value.rank) for value in operands])
    arrays = call.bind(*(value.array for value in (*values, *starts)))
    return call.values(arrays, _settled(values[0], kept))


_OPERATIONS = {"add": "sum", "mul": "prod", "max": "max", "min": "min", "and": "and", "or": "or", "xor": "xor"}


def _neutral(closed: Any, operands: Sequence[Value]) -> Fill:
    jaxpr = getattr(closed, "jaxpr", closed)
    if len(operands) != 1 or len(jaxpr.eqns) != 1 or list(jaxpr.eqns[0].invars) != list(jaxpr.invars):
        return None
    kind = _OPERATIONS.get(jaxpr.eqns[0].primitive.name)
    if kind is None or (kind == "prod" and _is_complex(operands[0])):
        return None
    return identity(kind, operands[0].aval.dtype)


@rule("argmax argmin", "axes index_dtype")
def argument(call: Call) -> Value:
    axes = [int(axis) for axis in call.params["axes"]]
    value = call.unmerged(call.inputs[0], axes)
    # The first of equal elements wins, and valid positions come first.
    array = call.masked(value, identity(_kind(call), value.aval.dtype), axes)
    return call.value(call.bind(array), _settled(value, [axis for axis in range(value.rank) if axis not in axes]))


@rule("cumsum cumprod cummax cummin cumlogsumexp", "axis reverse")
def cumulative(call: Call) -> Value:
    (value,) = call.inputs
    axis = int(call.params["axis"])
    # Padding after all valid positions doesn't reach them, unless the direction is reversed or the axis merged.
    reaches = call.params["reverse"] or len(value.layout[axis]) > 1
    if reaches and call.name == "cumprod" and _is_complex(value):
        raise Refused("a product of complex numbers from the end of a padded axis: (inf+0j)·(1+0j) is inf+nanj")
    array: Any = call.masked(value, identity(_kind(call), value.aval.dtype), [axis]) if reaches else value.array
    layout = tuple((value.shape[a],) if a == axis and not f else f for a, f in enumerate(value.layout))
    return call.value(call.bind(array), layout)


@rule("sort", "dimension is_stable num_keys")
def sort(call: Call) -> Sequence[Value]:
    axis, keys = int(call.params["dimension"]), call.params["num_keys"]
    values = call.aligned(call.inputs, [range(value.rank) for value in call.inputs])
    layout = call.in_one_piece(values[0], [axis])
    if not values[0].is_padded(axis):
        return call.values(call.bind(*(value.array for value in values)), layout)
    # A stable sort puts valid elements before padding of the same key.
    stable = call.params["is_stable"] or keys < len(values)
    arrays = [call.masked(value, _greatest(value.aval.dtype), [axis]) for value in values[:keys]]
    rest = [value.array for value in values[keys:]]
    return call.values(call.bind(*arrays, *rest, is_stable=stable), layout)


def _greatest(dtype: Any) -> Fill:
    """Return the key that JAX sorts last: NaN of any sign, or the greatest number of the type."""
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
    # The first of equal elements win, and valid positions come first.
    array = call.masked(value, identity("max", value.aval.dtype), [axis])
    return call.values(call.bind(array), call.in_one_piece(value, [axis]))


@rule("approx_top_k", "k reduction_dimension recall_target is_max_k reduction_input_size_override aggregate_to_topk")
def approximate_top_k(call: Call) -> Sequence[Value]:
    (operand,) = call.inputs
    axis = int(call.params["reduction_dimension"]) % operand.rank
    if operand.is_padded(axis):
        raise Refused("how well the largest elements are approximated depends on the size", "use jax.lax.top_k")
    return call.values(call.bind(operand.array), call.in_one_piece(operand, [axis]))
