"""Rules for gather, scatter and dynamic slices: indices are clipped to the valid part of an axis, not to the bucket's.

An index in the padding may be anything: a gather clips it or fills, a scatter drops it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jax.lax import GatherScatterMode

from explorer.padding.interpreter import Call, Layout, Value, identity, rule
from explorer.padding.sizes import Refused, grows, is_symbolic


class _Axis(NamedTuple):
    axis: int
    size: Any
    window: Any

    @property
    def is_whole(self) -> bool:
        return self.window == self.size

    @property
    def overhang(self) -> Any:
        """Size by which a window may exceed the bucket's axis, though its valid part doesn't; 0 if it can't."""
        return self.window if is_symbolic(self.window) and not grows(self.size - self.window) else 0


def _stretched(call: Call, array: Any, axes: Sequence[_Axis]) -> Any:
    """Return the array with room for overhanging windows, which XLA would otherwise move to fit."""
    widths = [(0, 0, 0)] * array.ndim
    for axis in axes:
        widths[axis.axis] = (0, call.sizes.bucket(axis.overhang), 0)
    return lax.pad(array, jnp.zeros((), array.dtype), widths) if any(any(w) for w in widths) else array


def _limit(call: Call, axis: _Axis, dtype: Any) -> Any:
    return jnp.asarray(call.sizes.true(axis.size) - call.sizes.true(axis.window)).astype(dtype)


# Slices at run-time places ----------------------------------------------------------------------------------------


@rule("dynamic_slice", "slice_sizes")
def dynamic_slice(call: Call) -> Value:
    operand, *starts = call.inputs
    axes = _windows(operand, call.params["slice_sizes"])
    cut = [axis.axis for axis in axes if not axis.is_whole]
    operand = call.unmerged(operand, cut)
    array = _stretched(call, operand.array, axes)
    places = _clipped(call, axes, starts)
    result = lax.dynamic_slice(array, places, call.sizes.shape(call.params["slice_sizes"]))
    return call.value(result, call.in_one_piece(operand, cut), operand.fills_without(cut))


@rule("dynamic_update_slice")
def dynamic_update_slice(call: Call) -> Value:
    operand, update, *starts = call.inputs
    axes = _windows(operand, update.shape)
    places = _clipped(call, axes, starts)
    return _written(call, operand, update, axes, places)


def _windows(operand: Value, windows: Sequence[Any]) -> list[_Axis]:
    return [_Axis(axis, size, windows[axis]) for axis, size in enumerate(operand.shape)]


def _clipped(call: Call, axes: Sequence[_Axis], starts: Sequence[Value]) -> list[Any]:
    places: list[Any] = []
    for axis, start in zip(axes, starts, strict=True):
        index = _wide(start.array)
        places.append(jnp.clip(index, 0, _limit(call, axis, index.dtype)))
    return places


def _wide(index: Any) -> Any:
    """Return an index of at least 32 bits: with 8, a limit of 200 would wrap."""
    index = jnp.asarray(index)
    return index if index.dtype.itemsize >= 4 else index.astype(jnp.int32)


def _written(call: Call, operand: Value, update: Value, axes: Sequence[_Axis], places: Sequence[Any]) -> Value:
    """Return the operand with one window overwritten, except by the window's padding."""
    partial = [axis.axis for axis in axes if not axis.is_whole]
    operand, update = call.unmerged(operand.settled(), partial), call.unmerged(update, partial)
    whole = [axis.axis for axis in axes if axis.is_whole]
    operand, update = call.aligned([operand, update], [whole, whole])
    array, new = _stretched(call, operand.array, axes), update.array
    for axis in partial:
        if update.is_padded(axis):
            old = lax.dynamic_slice(array, places, new.shape)
            new = lax.select(lax.broadcast_in_dim(call.sizes.mask(update.layout[axis]), new.shape, (axis,)), new, old)
    written = lax.dynamic_update_slice(array, new, places)
    result = lax.slice(written, (0,) * written.ndim, call.sizes.shape(operand.shape))
    # The window is in the valid part, unless it covers the whole axis.
    return call.value(result, operand.layout, operand.fills_without(whole))


# Gather -----------------------------------------------------------------------------------------------------------


@rule("gather", "dimension_numbers slice_sizes unique_indices indices_are_sorted mode fill_value")
def gather(call: Call) -> Value:
    numbers, windows = call.params["dimension_numbers"], call.params["slice_sizes"]
    mode = GatherScatterMode.from_any(call.params["mode"])
    if mode not in _MODES:
        raise Refused(f"a gather with mode {mode}")
    operand, indices = call.aligned(call.inputs, [numbers.operand_batching_dims, numbers.start_indices_batching_dims])
    axes = [axis for axis in _windows(operand, windows) if axis.axis not in numbers.operand_batching_dims]
    cut = [axis.axis for axis in axes if not axis.is_whole and axis.window != 1]
    operand = call.unmerged(operand, cut)
    drops = mode == GatherScatterMode.FILL_OR_DROP
    places = _places(call, operand, indices, numbers.start_index_map, {a.axis: a for a in axes}, drops)
    # XLA clips the indices of a gather with PROMISE_IN_BOUNDS, and drops those of a scatter.
    result = call.bind(
        _stretched(call, operand.array, axes),
        places,
        mode=GatherScatterMode.CLIP if mode == GatherScatterMode.PROMISE_IN_BOUNDS else mode,
        indices_are_sorted=False,
        unique_indices=False,
    )
    return call.value(result, _gathered(call, operand, indices, [a.axis for a in axes]))


def _gathered(call: Call, operand: Value, indices: Value, axes: Sequence[int]) -> Layout:
    numbers, windows = call.params["dimension_numbers"], call.params["slice_sizes"]
    kept = [axis for axis in axes if axis not in numbers.collapsed_slice_dims]
    of_window = iter([operand.layout[a] if windows[a] == operand.shape[a] else (windows[a],) for a in kept])
    of_batch = iter(indices.layout[:-1])
    return tuple(next(of_window if at in numbers.offset_dims else of_batch) for at in range(len(call.shape)))


_MODES = (GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP, GatherScatterMode.PROMISE_IN_BOUNDS)


def _places(
    call: Call, operand: Value, indices: Value, index_map: Sequence[int], axes: dict[int, _Axis], drops: bool
) -> Any:
    """Return the start indices of windows, clipped so that each window ends in the valid part.

    If `drops`, an index that would be clipped becomes the largest integer instead, which is outside of the bucket.
    """
    index = _wide(indices.array)
    far = jnp.asarray(jnp.iinfo(index.dtype).max, index.dtype)
    columns: list[Any] = []
    for at, axis in enumerate(index_map):
        column, limit = index[..., at], _limit(call, axes[axis], index.dtype)
        valid = jnp.clip(column, 0, limit)
        if axes[axis].window == 1 and len(operand.layout[axis]) > 1:
            factors = operand.layout[axis]
            digits = call.sizes.digits(valid, factors, call.sizes.true)
            valid = call.sizes.number(digits, factors, call.sizes.bucket)
        columns.append(jnp.where((column < 0) | (column > limit), far, valid) if drops else valid)
    return jnp.stack(columns, -1) if columns else index


# Scatter ----------------------------------------------------------------------------------------------------------

_KINDS = {"add": "sum", "sub": "sum", "mul": "prod", "min": "min", "max": "max"}
_SCATTERS = "scatter scatter-add scatter-sub scatter-mul scatter-min scatter-max"


@rule(
    f"{_SCATTERS} {_SCATTERS.replace('-', '_')}",
    "update_jaxpr update_consts dimension_numbers indices_are_sorted unique_indices mode",
)
def scatter(call: Call) -> Value:
    numbers, mode = call.params["dimension_numbers"], GatherScatterMode.from_any(call.params["mode"])
    if mode not in _MODES:
        raise Refused(f"a scatter with mode {mode}")
    operand, indices, update = call.inputs[0].settled(), *call.inputs[1:]
    axes = _scatter_windows(operand, update, numbers)
    operand, indices, update = _aligned_scatter(call, operand, indices, update, axes)
    ragged = [axis for axis in axes.values() if is_symbolic(axis.window) and not axis.is_whole]
    kind = _KINDS.get(call.name[len("scatter") :].strip("-_"))
    if ragged and kind is None:
        return _set_window(call, operand, indices, update, axes, mode)
    # A window's padding must not change what it overlaps.
    of_update = _window_axes(operand, numbers)
    neutral = identity(kind or "sum", update.aval.dtype)
    updates = call.masked(update, neutral, [of_update[axis.axis] for axis in ragged]) if ragged else update.array
    places = _places(call, operand, indices, numbers.scatter_dims_to_operand_dims, axes, mode != GatherScatterMode.CLIP)
    result = _bind_scatter(call, _stretched(call, operand.array, list(axes.values())), indices, places, updates)
    result = lax.slice(result, (0,) * result.ndim, call.sizes.shape(operand.shape))
    written = [axis for axis in range(operand.rank) if axis not in axes or axes[axis].is_whole]
    return call.value(result, operand.layout, operand.fills_without(written))


def _bind_scatter(call: Call, array: Any, indices: Value, places: Any, updates: Any) -> Any:
    lanes = call.params["dimension_numbers"].scatter_indices_batching_dims
    loose = [axis for axis in range(indices.rank - 1) if axis not in lanes]
    return call.bind(
        array,
        _dropped(call, indices, places, loose),
        updates,
        mode=GatherScatterMode.FILL_OR_DROP,
        indices_are_sorted=False,
        unique_indices=call.params["unique_indices"] and not any(map(indices.is_padded, loose)),
    )


def _window_axes(operand: Value, numbers: Any) -> dict[int, int]:
    """Return, for each operand axis that windows have, its axis in the updates."""
    gone = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    return dict(zip([a for a in range(operand.rank) if a not in gone], numbers.update_window_dims, strict=True))


def _scatter_windows(operand: Value, update: Value, numbers: Any) -> dict[int, _Axis]:
    windows = _window_axes(operand, numbers)
    return {
        axis: _Axis(axis, size, update.shape[windows[axis]] if axis in windows else 1)
        for axis, size in enumerate(operand.shape)
        if axis not in numbers.operand_batching_dims
    }


def _aligned_scatter(
    call: Call, operand: Value, indices: Value, update: Value, axes: dict[int, _Axis]
) -> tuple[Value, Value, Value]:
    """Return operand, indices and update with one layout along each shared axis."""
    numbers = call.params["dimension_numbers"]
    windows = _window_axes(operand, numbers)
    whole, partial = ([a for a in windows if axes[a].is_whole == is_whole] for is_whole in (True, False))
    operand, update = call.unmerged(operand, partial), call.unmerged(update, [windows[a] for a in partial])
    batch = [a for a in range(update.rank) if a not in numbers.update_window_dims]
    update, indices = call.aligned([update, indices], [batch, range(indices.rank - 1)])
    lanes: list[int] = [batch[at] for at in numbers.scatter_indices_batching_dims]
    operand, update = call.aligned(
        [operand, update],
        [[*whole, *numbers.operand_batching_dims], [*(windows[a] for a in whole), *lanes]],
    )
    indices = call.aligned([update, indices], [batch, range(indices.rank - 1)])[1]
    return operand, indices, update


def _dropped(call: Call, indices: Value, places: Any, axes: Sequence[int]) -> Any:
    """Return the indices with those in the padding moved out of the bucket, so that they write nothing."""
    padded = [axis for axis in axes if indices.is_padded(axis)]
    if not padded:
        return places
    if not indices.shape[-1]:
        raise Refused("a scatter whose updates have a padded axis, and no index that could drop them")
    far = lax.full(places.shape, jnp.iinfo(places.dtype).max, places.dtype)
    for axis in padded:
        mask = call.sizes.mask(indices.layout[axis] or (indices.shape[axis],))
        places = lax.select(lax.broadcast_in_dim(mask, places.shape, (axis,)), places, far)
    return places


def _set_window(call: Call, operand: Value, indices: Value, update: Value, axes: dict[int, _Axis], mode: Any) -> Value:
    """Return the result of writing one window whose length depends on the sizes, except by its padding."""
    numbers = call.params["dimension_numbers"]
    is_one = indices.rank == 1 and not numbers.inserted_window_dims and call.params["update_jaxpr"] is None
    if not is_one or tuple(numbers.update_window_dims) != tuple(range(operand.rank)):
        raise Refused("a scatter writes several windows whose length depends on the size", "set them one by one")
    places: list[Any] = [jnp.int32(0)] * operand.rank
    is_inside: Any = True
    for at, axis in enumerate(numbers.scatter_dims_to_operand_dims):
        index = _wide(indices.array)[at]
        limit = _limit(call, axes[axis], index.dtype)
        places[axis] = jnp.clip(index, 0, limit).astype(jnp.int32)
        is_inside = is_inside & (index >= 0) & (index <= limit)
    written = _written(call, operand, update, [axes[a] for a in range(operand.rank)], places)
    if mode == GatherScatterMode.CLIP:
        return written
    operand = call.in_layout(operand, written.layout)
    return call.value(jnp.where(is_inside, written.array, operand.array), written.layout)
