"""Rules for shapes: broadcast, transpose, concatenate, slice, pad, reshape.

A reshape merges and splits axes by their factors alone; elements move only if factors can't express the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from explorer._jax.symbolic import is_at_least
from explorer.padding.interpreter import (
    UNIFORM,
    Call,
    Fill,
    Value,
    longest_layout,
    make_value,
    rule,
    scalar_fill,
)
from explorer.padding.sizes import Factors, Refused, grows, is_symbolic


@rule("broadcast_in_dim", "shape broadcast_dimensions", absent="sharding", shrinks=True)
def broadcast(call: Call) -> Value:
    value = call.inputs[0]
    source = {int(axis): at for at, axis in enumerate(call.params["broadcast_dimensions"])}
    layout: list[Factors] = []
    fills: list[Fill] = []
    for axis, size in enumerate(call.shape):
        at = source.get(axis)
        if at is None or (value.shape[at] == 1 and size != 1):
            # Along a new axis all elements are equal; a known scalar is also the fill.
            layout.append(UNIFORM)
            fills.append(scalar_fill(value))
        else:
            layout.append(value.layout[at])
            fills.append(value.fills[at])
    kept = list(source)
    array = lax.broadcast_in_dim(value.array, call.sizes.shape(call.shape), kept)
    result = call.value(array, tuple(layout), fills)
    if value.greatest_of is not None and kept == [a for a in range(len(call.shape)) if a not in value.greatest_of[1]]:
        result.greatest_of = value.greatest_of  # still the maximum of the elements at the same positions
    return result


@rule("squeeze", "dimensions", shrinks=True)
def squeeze(call: Call) -> Value:
    (value,) = call.inputs
    dropped = {int(axis) % value.rank for axis in call.params["dimensions"]}
    return _moved(call, value, [axis for axis in range(value.rank) if axis not in dropped])


@rule("transpose", "permutation", shrinks=True)
def transpose(call: Call) -> Value:
    return _moved(call, call.inputs[0], [int(axis) for axis in call.params["permutation"]])


def _moved(call: Call, value: Value, axes: Sequence[int]) -> Value:
    layout = tuple(value.layout[axis] for axis in axes)
    return call.value(call.bind(value.array), layout, [value.fills[axis] for axis in axes])


@rule("iota", "dtype shape dimension", absent="sharding", shrinks=True)
def iota(call: Call) -> Value:
    axis = int(call.params["dimension"])
    array = lax.broadcasted_iota(call.params["dtype"], call.sizes.shape(call.shape), axis)
    return call.value(array, tuple((size,) if at == axis else UNIFORM for at, size in enumerate(call.shape)))


@rule("empty empty2", "dtype shape", absent="sharding out_sharding")
def empty(call: Call) -> Value:
    array = lax.full(call.sizes.shape(call.shape), 0, call.avals[0].dtype)
    return call.value(array, (UNIFORM,) * len(call.shape), [0] * len(call.shape))


@rule("concatenate", "dimension", shrinks=True)
def concatenate(call: Call) -> Value:
    axis = int(call.params["dimension"])
    others = [at for at in range(len(call.shape)) if at != axis]
    values = call.aligned([call.unmerged(value, [axis]) for value in call.inputs], [others] * len(call.inputs))
    layout = tuple((call.shape[axis],) if a == axis else f for a, f in enumerate(longest_layout(values)))
    fills = [_only(fills) for fills in zip(*(value.fills for value in values), strict=True)]
    if not any(value.is_padded(axis) for value in values[:-1]) and all(grows(value.shape[axis]) for value in values):
        fills[axis] = values[-1].fills[axis]
        return call.value(lax.concatenate([value.array for value in values], axis), layout, fills)
    fills[axis] = None
    return call.value(_written_in_turn(call, values, axis), layout, fills)


def _written_in_turn(call: Call, values: Sequence[Value], axis: int) -> Any:
    """Return arrays joined at the end of each valid part: each overwrites the padding of its predecessor."""
    # The buffer holds all arrays at bucket size, which for shrinking sizes is more than the bucket size of the sum.
    # Otherwise XLA would shift the last update to fit.
    shape = list(call.sizes.shape(call.shape))
    length, shape[axis] = shape[axis], sum(call.sizes.bucket(value.shape[axis]) for value in values)
    array, at = jnp.zeros(shape, call.avals[0].dtype), 0
    for value in values:
        start = [jnp.int32(at if other == axis else 0) for other in range(value.rank)]
        array = lax.dynamic_update_slice(array, value.array, start)
        at = at + call.sizes.true(value.shape[axis])
    return lax.slice_in_dim(array, 0, length, axis=axis)


@rule("stack", "axis")
def stack(call: Call) -> Value:
    axis = int(call.params["axis"]) % len(call.shape)
    values = call.aligned(call.inputs, [range(call.inputs[0].rank)] * len(call.inputs))
    layout = list(longest_layout(values))
    layout.insert(axis, (call.shape[axis],))
    return call.value(call.bind(*(value.array for value in values)), tuple(layout))


@rule("unstack", "axis")
def unstack(call: Call) -> Sequence[Value]:
    (value,) = call.inputs
    axis = int(call.params["axis"]) % value.rank
    return call.values(call.bind(value.array), tuple(f for at, f in enumerate(value.layout) if at != axis))


@rule("split", "sizes axis", shrinks=True)
def split(call: Call) -> Sequence[Value]:
    axis = int(call.params["axis"])
    value = call.unmerged(call.inputs[0], [axis])
    pieces: list[Value] = []
    at: Any = 0
    for size, aval in zip(call.params["sizes"], call.avals, strict=True):
        layout = (*value.layout[:axis], (size,), *value.layout[axis + 1 :])
        array = cut(call, value.array, value.shape[axis], at, size, axis)
        pieces.append(make_value(array, aval, layout, value.fills_without([axis])))
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
    """Return the array with a piece of one axis, which has the bucket's size for `length`.

    The axis's size and the piece's start and length may be symbolic.
    """
    count = call.sizes.bucket(length)
    if not (grows(start) and grows(length) and grows(size)):  # otherwise start + length may exceed the bucket
        widths = [(0, count if at == axis else 0, 0) for at in range(array.ndim)]
        array = lax.pad(array, jnp.zeros((), array.dtype), widths)
    if not is_symbolic(start):
        return lax.slice_in_dim(array, start, start + count, axis=axis)
    return lax.dynamic_slice_in_dim(array, jnp.int32(call.sizes.true(start)), count, axis)


@rule("slice", "start_indices limit_indices strides", shrinks=True)
def slice_(call: Call) -> Value:
    starts, limits = call.params["start_indices"], call.params["limit_indices"]
    strides = call.params["strides"] or (1,) * len(starts)
    source = call.inputs[0].shape
    changed = [a for a, size in enumerate(call.shape) if not (size == source[a] and strides[a] == 1)]
    value = call.unmerged(call.inputs[0], changed)
    array = value.array
    for axis in changed:
        array = _strided(call, array, axis, starts[axis], strides[axis])
    # Valid elements cut off at the end are in the padding now.
    fills = value.fills_without([axis for axis in changed if limits[axis] != source[axis]])
    return call.value(array, call.in_one_piece(value, changed), fills)


def _strided(call: Call, array: Any, axis: int, start: Any, stride: Any) -> Any:
    size, length = call.inputs[0].shape[axis], call.shape[axis]
    if not is_symbolic(stride) and stride == 1:
        return cut(call, array, size, start, length, axis)
    if is_symbolic(start) or is_symbolic(stride):
        raise Refused("a slice with steps whose start or step depends on the size")
    if not (grows(size) and grows(length)):
        raise Refused("a slice with steps of a size that shrinks")
    count = call.sizes.bucket(length)
    end = start + max(0, count - 1) * stride + min(count, 1)
    return lax.slice_in_dim(array, start, end, stride, axis)


@rule("rev", "dimensions")
def rev(call: Call) -> Value:
    axes = [int(axis) for axis in call.params["dimensions"]]
    value = call.unmerged(call.inputs[0], axes)
    array, fills = value.array, list(value.fills)
    for axis in axes:
        array = lax.rev(array, (axis,))
        if value.is_padded(axis):
            # The padding comes first now: cut it off and append as much.
            bucket = call.sizes.bucket(value.shape[axis])
            start = bucket - jnp.int32(call.sizes.true(value.shape[axis]))
            array = lax.dynamic_slice_in_dim(lax.concatenate([array, array], axis), start, bucket, axis)
            fills[axis] = None
    return call.value(array, value.layout, fills)


@rule("pad", "padding_config", shrinks=True)
def pad(call: Call) -> Value:
    config = call.params["padding_config"]
    changed = [axis for axis, amounts in enumerate(config) if tuple(amounts) != (0, 0, 0)]
    value, filler = call.unmerged(call.inputs[0], changed), call.inputs[1]
    constant = scalar_fill(filler)
    if constant is None:
        array = _filled_with(call, value, filler.array, changed)
    else:
        array = call.masked(value, constant, changed)
    for axis in changed:
        array = _padded(call, array, filler.array, axis)
    # Along other axes the fill stays known only if the filler equals it.
    fills = [constant if axis in changed or value.fills[axis] == constant else None for axis in range(value.rank)]
    for axis in changed:
        _, high, _ = config[axis]
        if not is_at_least(high, 0):  # cut off at the end, as by a slice
            fills[axis] = None
    return call.value(array, call.in_one_piece(value, changed), fills)


def _padded(call: Call, array: Any, filler: Any, axis: int) -> Any:
    """Return the array with padding in front, behind and between its elements, or cut, at the bucket's sizes."""
    low, _, inner = call.params["padding_config"][axis]
    if is_symbolic(inner) or (is_symbolic(low) and not is_at_least(low, 0)):
        raise Refused("an axis is padded inside, or maybe cut in front, by an amount that depends on the size")
    length, own = call.sizes.bucket(call.shape[axis]), array.shape[axis]
    own += max(0, own - 1) * inner
    front = 0 if is_symbolic(low) else low
    widths = [(front, length - own - front, inner) if at == axis else (0, 0, 0) for at in range(array.ndim)]
    if not is_symbolic(low):
        return lax.pad(array, filler, widths)
    # Write the array into a row of the filler that has room for its padding.
    start = [jnp.int32(call.sizes.true(low) if at == axis else 0) for at in range(array.ndim)]
    moved = lax.pad(array, filler, [(0, 0, inner) if at == axis else (0, 0, 0) for at in range(array.ndim)])
    row = jnp.broadcast_to(filler, [length + own if at == axis else size for at, size in enumerate(array.shape)])
    row = lax.dynamic_update_slice(row, moved, start)
    return lax.slice_in_dim(row, 0, length, axis=axis)


def _filled_with(call: Call, value: Value, filler: Any, axes: Sequence[int]) -> Any:
    array = value.array
    for axis in (axis for axis in axes if value.is_padded(axis)):
        mask = lax.broadcast_in_dim(call.sizes.mask(value.layout[axis]), array.shape, (axis,))
        array = lax.select(mask, array, lax.broadcast(filler, array.shape))
    return array


class _Piece(NamedTuple):
    size: Any
    fill: Fill


@rule("reshape", "new_sizes dimensions", absent="sharding")
def reshape(call: Call) -> Value:
    (value,) = call.inputs
    if call.params["dimensions"] is not None:
        value = _transposed(value, [int(axis) for axis in call.params["dimensions"]])
    if all(factors == UNIFORM or size == 1 for factors, size in zip(value.layout, value.shape, strict=True)):
        array = lax.reshape(value.array, call.sizes.shape(call.shape))
        return call.value(array, (UNIFORM,) * len(call.shape), [_only(value.fills)] * len(call.shape))
    rows = zip(value.shape, value.layout, value.fills, strict=True)
    pieces = [_Piece(factor, fill) for size, factors, fill in rows for factor in factors or (size,)]
    axes = _distribute(_joined(pieces), call.shape)
    if axes is None:
        return _moved_across(call, value)
    layout = [tuple(piece.size for piece in axis) for axis in axes]
    array = lax.reshape(value.array, call.sizes.shape(call.shape))
    fills = [_only([piece.fill for piece in axis if is_symbolic(piece.size)]) for axis in axes]
    return call.value(array, tuple(layout), fills)


def _transposed(value: Value, axes: Sequence[int]) -> Value:
    aval = value.aval.update(shape=tuple(value.shape[axis] for axis in axes))
    layout, fills = tuple(value.layout[axis] for axis in axes), tuple(value.fills[axis] for axis in axes)
    return Value(lax.transpose(value.array, axes), aval, layout, fills)


def _only(fills: Sequence[Fill]) -> Fill:
    return fills[0] if fills and all(fill == fills[0] for fill in fills) else None


def _joined(pieces: Sequence[_Piece]) -> list[_Piece]:
    """Return the factors without those of size 1, each number merged into the factor before it.

    A merge keeps the valid positions in front.
    """
    joined: list[_Piece] = []
    for piece in pieces:
        if joined and not is_symbolic(piece.size):  # i * 3 + j: valid positions of (b, 3) come first if those of b do
            joined[-1] = _Piece(joined[-1].size * piece.size, joined[-1].fill)
        elif is_symbolic(piece.size) or piece.size != 1:
            joined.append(piece)
    if len(joined) > 1 and not is_symbolic(joined[0].size) and joined[0].size == 1:
        del joined[0]
    return joined


def _distribute(pieces: list[_Piece], shape: Sequence[Any]) -> list[list[_Piece]] | None:
    """Return the factors of each new axis; None if a factor would have to be split inside its padding."""
    rest = list(pieces)
    axes: list[list[_Piece]] = []
    for size in shape:
        axis = _take(rest, size)
        if axis is None:
            return None
        axes.append(axis)
    return axes


def _take(rest: list[_Piece], size: Any) -> list[_Piece] | None:
    """Remove factors whose product is `size` from the front of `rest` and return them; None if impossible."""
    axis: list[_Piece] = []
    wanted = size
    while is_symbolic(wanted) or wanted != 1:
        if not rest:
            return None
        piece = rest.pop(0)
        if piece.size == wanted:
            axis.append(piece)
            break
        more, inner = _quotient(wanted, piece.size), _quotient(piece.size, wanted)
        if more is not None:
            axis.append(piece)
            wanted = more
        elif inner is not None and not is_symbolic(inner):
            axis.append(_Piece(wanted, piece.fill))
            rest[:] = _joined([_Piece(inner, None), *rest])
            break
        else:
            return None
    return _joined(axis) or [_Piece(1, None)]


def _quotient(size: Any, divisor: Any) -> Any:
    """Return size / divisor if it is exact for all sizes; None otherwise."""
    if not is_symbolic(size) and not is_symbolic(divisor):
        return size // divisor if divisor and size % divisor == 0 else None
    quotient = size // divisor
    return quotient if quotient * divisor == size else None


def _moved_across(call: Call, value: Value) -> Value:
    """Return the reshaped value by gathering every element: the slowest way, used last."""
    value = call.unmerged(value)
    call.interpreter.tally.relayouts += 1
    index = call.sizes.positions(tuple(call.shape), tuple(value.shape))
    array = jnp.take(value.array.reshape(-1), index, mode="clip")
    return call.value(array.reshape(call.sizes.shape(call.shape)))
