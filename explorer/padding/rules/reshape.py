"""Reshape: axes are merged and taken apart by noting their factors; elements move only where that can't say it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from explorer.padding.interpreter import Call
from explorer.padding.registry import rule
from explorer.padding.sizes import is_symbolic
from explorer.padding.values import UNIFORM, Fill, Value


class _Piece(NamedTuple):
    """A part of an axis in memory order, and the fill of its padded positions."""

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
    axes = _distribute(_pieces(value), call.shape)
    if axes is None:
        return _moved(call, value)
    layout = [tuple(piece.size for piece in axis) for axis in axes]
    array = lax.reshape(value.array, call.sizes.shape(call.shape))
    fills = [_only([piece.fill for piece in axis if is_symbolic(piece.size)]) for axis in axes]
    return call.value(array, tuple(layout), fills)


def _transposed(value: Value, axes: Sequence[int]) -> Value:
    """Its axes in another order, in which they are merged."""
    aval = value.aval.update(shape=tuple(value.shape[axis] for axis in axes))
    layout, fills = tuple(value.layout[axis] for axis in axes), tuple(value.fills[axis] for axis in axes)
    return Value(lax.transpose(value.array, axes), aval, layout, fills)


def _only(fills: Sequence[Fill]) -> Fill:
    return fills[0] if fills and all(fill == fills[0] for fill in fills) else None


def _pieces(value: Value) -> list[_Piece]:
    """What a value's axes are made of, without ones, joined wherever valid positions stay in front."""
    pieces: list[_Piece] = []
    for size, factors, fill in zip(value.shape, value.layout, value.fills, strict=True):
        pieces += [_Piece(factor, fill) for factor in factors or (size,)]
    return _joined(pieces)


def _joined(pieces: Sequence[_Piece]) -> list[_Piece]:
    joined: list[_Piece] = []
    for piece in pieces:
        if joined and not is_symbolic(piece.size):  # i * 3 + j: what is valid of i·j comes first if that of i does
            joined[-1] = _Piece(joined[-1].size * piece.size, joined[-1].fill)
        elif is_symbolic(piece.size) or piece.size != 1:
            joined.append(piece)
    if len(joined) > 1 and not is_symbolic(joined[0].size) and joined[0].size == 1:
        del joined[0]
    return joined


def _distribute(pieces: list[_Piece], shape: Sequence[Any]) -> list[list[_Piece]] | None:
    """The pieces of each new axis; None if a piece would have to be cut where its padding is."""
    rest = list(pieces)
    axes: list[list[_Piece]] = []
    for size in shape:
        axis = _take(rest, size)
        if axis is None:
            return None
        axes.append(axis)
    return axes


def _take(rest: list[_Piece], size: Any) -> list[_Piece] | None:
    """Pieces from the front whose product is `size`, which are taken away."""
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
    """How often one size is in another, for any sizes; None if there is no such number or polynomial."""
    if not is_symbolic(size) and not is_symbolic(divisor):
        return size // divisor if divisor and size % divisor == 0 else None
    quotient = size // divisor
    return quotient if quotient * divisor == size else None


def _moved(call: Call, value: Value) -> Value:
    """Elements gathered into their new places: the last resort, as slow as a gather is."""
    value = call.unmerged(value)
    call.interpreter.tally.relayouts += 1
    index = call.sizes.positions(tuple(call.shape), tuple(value.shape))
    array = jnp.take(value.array.reshape(-1), index, mode="clip")
    return call.value(array.reshape(call.sizes.shape(call.shape)))
