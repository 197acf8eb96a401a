"""Shapes: axes added, dropped, moved, joined and cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from explorer.aot.padding.interpreter import Call, scalar_fill
from explorer.aot.padding.registry import Refused, rule
from explorer.aot.padding.sizes import Factors, grows, is_symbolic
from explorer.aot.padding.values import UNIFORM, Fill, Layout, Value, make_value


@rule("broadcast_in_dim", "shape broadcast_dimensions", absent="sharding")
def broadcast(call: Call) -> Value:
    value = call.inputs[0]
    source = {int(axis): at for at, axis in enumerate(call.params["broadcast_dimensions"])}
    layout: list[Factors] = []
    fills: list[Fill] = []
    for axis, size in enumerate(call.shape):
        at = source.get(axis)
        if at is None or (value.shape[at] == 1 and size != 1):
            # Along a new axis each position has what the valid ones have; of a number that is a fill.
            layout.append(UNIFORM)
            fills.append(scalar_fill(value))
        else:
            layout.append(value.layout[at])
            fills.append(value.fills[at])
    array = lax.broadcast_in_dim(
        value.array, call.sizes.shape(call.shape), [int(axis) for axis in call.params["broadcast_dimensions"]]
    )
    return call.value(array, tuple(layout), fills)


@rule("squeeze", "dimensions")
def squeeze(call: Call) -> Value:
    (value,) = call.inputs
    dropped = {int(axis) % value.rank for axis in call.params["dimensions"]}
    return _moved(call, value, [axis for axis in range(value.rank) if axis not in dropped])


@rule("transpose", "permutation")
def transpose(call: Call) -> Value:
    return _moved(call, call.inputs[0], [int(axis) for axis in call.params["permutation"]])


def _moved(call: Call, value: Value, axes: Sequence[int]) -> Value:
    layout = tuple(value.layout[axis] for axis in axes)
    return call.value(call.bind(value.array), layout, [value.fills[axis] for axis in axes])


@rule("iota", "dtype shape dimension", absent="sharding")
def iota(call: Call) -> Value:
    axis = int(call.params["dimension"])
    array = lax.broadcasted_iota(call.params["dtype"], call.sizes.shape(call.shape), axis)
    return call.value(array, tuple((size,) if at == axis else UNIFORM for at, size in enumerate(call.shape)))


@rule("empty empty2", "dtype shape", absent="sharding out_sharding")
def empty(call: Call) -> Value:
    array = lax.full(call.sizes.shape(call.shape), 0, call.avals[0].dtype)
    return call.value(array, (UNIFORM,) * len(call.shape), [0] * len(call.shape))


@rule("concatenate", "dimension")
def concatenate(call: Call) -> Value:
    axis = int(call.params["dimension"])
    values = [call.unmerged(value, [axis]) for value in call.inputs]
    others = [at for at in range(len(call.shape)) if at != axis]
    values = call.aligned(values, [others] * len(values))
    layout = _joined_layout(call, values, axis)
    fills = [_agreed([value.fills[at] for value in values]) if at != axis else None for at in range(len(layout))]
    if not any(value.is_padded(axis) for value in values[:-1]):
        fills[axis] = values[-1].fills[axis]
        return call.value(lax.concatenate([value.array for value in values], axis), layout, fills)
    # Each writes over the padding of the one before.
    array, at = jnp.zeros(call.sizes.shape(call.shape), call.avals[0].dtype), 0
    for value in values:
        start = [jnp.int32(at if other == axis else 0) for other in range(value.rank)]
        array = lax.dynamic_update_slice(array, value.array, start)
        at = at + call.sizes.true(value.shape[axis])
    return call.value(array, layout, fills)


def _joined_layout(call: Call, values: Sequence[Value], axis: int) -> Layout:
    layouts = [list(value.layout) for value in values]
    return tuple(
        (size,) if at == axis else max((layout[at] for layout in layouts), key=len)
        for at, size in enumerate(call.shape)
    )


def _agreed(fills: Sequence[Fill]) -> Fill:
    return fills[0] if all(fill == fills[0] for fill in fills) else None


@rule("stack", "axis")
def stack(call: Call) -> Value:
    axis = int(call.params["axis"]) % len(call.shape)
    values = call.aligned(call.inputs, [range(call.inputs[0].rank)] * len(call.inputs))
    layout = [max(factors, key=len) for factors in zip(*(value.layout for value in values), strict=True)]
    layout.insert(axis, (call.shape[axis],))
    return call.value(call.bind(*(value.array for value in values)), tuple(layout))


@rule("unstack", "axis")
def unstack(call: Call) -> Sequence[Value]:
    (value,) = call.inputs
    axis = int(call.params["axis"]) % value.rank
    return call.values(call.bind(value.array), tuple(f for at, f in enumerate(value.layout) if at != axis))


@rule("split", "sizes axis")
def split(call: Call) -> Sequence[Value]:
    axis = int(call.params["axis"])
    value = call.unmerged(call.inputs[0], [axis])
    pieces: list[Value] = []
    at: Any = 0
    for size, aval in zip(call.params["sizes"], call.avals, strict=True):
        array, fill = cut(call, value.array, value.shape[axis], at, size, axis), value.fills[axis]
        fills = [
            fill if old == axis and at == 0 and value.shape[axis] == size else f for old, f in enumerate(value.fills)
        ]
        fills[axis] = fills[axis] if value.shape[axis] == size else None
        pieces.append(make_value(array, aval, (*value.layout[:axis], (size,), *value.layout[axis + 1 :]), fills))
        at = at + size
    return pieces


@rule("tile", "reps")
def tile(call: Call) -> Value:
    value = call.unmerged(call.inputs[0])
    array = value.array
    for axis, times in enumerate(call.params["reps"]):
        if not is_symbolic(times) and times == 1:
            continue
        if not value.is_padded(axis):
            array = jnp.concatenate([array] * call.sizes.bucket(times), axis)
            continue
        position = lax.iota(jnp.int32, call.sizes.bucket(call.shape[axis]))
        index = lax.rem(position, jnp.maximum(call.sizes.true(value.shape[axis]), 1))
        array = jnp.take(array, index, axis=axis, mode="clip")
    return call.value(array)


def cut(call: Call, array: Any, size: Any, start: Any, length: Any, axis: int) -> Any:
    """A piece of an axis, from a start that may depend on the call's sizes.

    Args:
        call: The equation.
        array: Whose axis is in one piece.
        size: The symbolic size of the axis.
        start: Symbolic too.
        length: Of the piece, symbolic.
        axis: Which.
    """
    count = call.sizes.bucket(length)
    if not is_symbolic(start):
        return lax.slice_in_dim(array, start, start + count, axis=axis)
    if grows(start):  # so that start and length together are no more than the bucket has
        return lax.dynamic_slice_in_dim(array, jnp.int32(call.sizes.true(start)), count, axis)
    positions = lax.iota(jnp.int32, count) + jnp.int32(call.sizes.true(start))
    return jnp.take(array, positions, axis=axis, mode="clip")


@rule("slice", "start_indices limit_indices strides")
def slice_(call: Call) -> Value:
    starts = call.params["start_indices"]
    limits, strides = call.params["limit_indices"], call.params["strides"] or (1,) * len(starts)
    changed = [a for a, size in enumerate(call.shape) if not (size == call.inputs[0].shape[a] and strides[a] == 1)]
    value = call.unmerged(call.inputs[0], changed)
    array, fills = value.array, list(value.fills)
    for axis in changed:
        start, stride, size = starts[axis], strides[axis], value.shape[axis]
        if not is_symbolic(start) and not is_symbolic(stride):
            count = call.sizes.bucket(call.shape[axis])
            end = start + max(0, count - 1) * stride + min(count, 1)
            array = lax.slice_in_dim(array, start, end, stride, axis)
        elif stride == 1:
            array = cut(call, array, size, start, call.shape[axis], axis)
        else:
            raise Refused("a slice with steps starts at a place that depends on the size")
        # What was cut off at the end may be valid, and lies in the padding now.
        fills[axis] = fills[axis] if limits[axis] == size else None
    layout = tuple((call.shape[a],) if a in changed else factors for a, factors in enumerate(value.layout))
    return call.value(array, layout, fills)


@rule("rev", "dimensions")
def rev(call: Call) -> Value:
    axes = [int(axis) for axis in call.params["dimensions"]]
    value = call.unmerged(call.inputs[0], axes)
    array, fills = value.array, list(value.fills)
    for axis in axes:
        array = lax.rev(array, (axis,))
        if value.is_padded(axis):
            # The padding comes first now: it is cut off, and as much put behind.
            bucket = call.sizes.bucket(value.shape[axis])
            start = bucket - jnp.int32(call.sizes.true(value.shape[axis]))
            array = lax.dynamic_slice_in_dim(lax.concatenate([array, array], axis), start, bucket, axis)
            fills[axis] = None
    return call.value(array, value.layout, fills)


@rule("pad", "padding_config")
def pad(call: Call) -> Value:
    config = call.params["padding_config"]
    changed = [axis for axis, amounts in enumerate(config) if tuple(amounts) != (0, 0, 0)]
    value, filler = call.unmerged(call.inputs[0], changed), call.inputs[1]
    if any(is_symbolic(low) or is_symbolic(inner) for low, _, inner in config):
        raise Refused("an axis is padded in front, or inside, by an amount that depends on the size")
    array, constant = value.array, scalar_fill(filler)
    behind = [axis for axis in changed if value.is_padded(axis)]
    if behind and constant is not None:
        array = call.masked(value, constant, behind)
    elif behind:
        array = _filled_with(call, value, filler.array, behind)
    fills = [constant if axis in changed else None for axis in range(value.rank)]
    widths = [(low, call.sizes.bucket(high), inner) for low, high, inner in config]
    return call.value(lax.pad(array, filler.array, widths), _padded_layout(call, value, changed), fills)


def _padded_layout(call: Call, value: Value, changed: Sequence[int]) -> Layout:
    return tuple((call.shape[a],) if a in changed else factors for a, factors in enumerate(value.layout))


def _filled_with(call: Call, value: Value, filler: Any, axes: Sequence[int]) -> Any:
    array = value.array
    for axis in axes:
        mask = lax.broadcast_in_dim(call.sizes.mask(value.layout[axis]), array.shape, (axis,))
        array = lax.select(mask, array, lax.broadcast(filler, array.shape))
    return array
