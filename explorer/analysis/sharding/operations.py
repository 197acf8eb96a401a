"""Sharding rules: the spread of each HLO operation's result, from those of its operands.

An operation without a rule gives a value that differs along every axis of its operands, with unknown splits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from explorer.analysis.sharding.spread import (
    Dims,
    Operation,
    bitcast,
    classes_of,
    constant,
    device_values,
    distinct_dims,
    gathered,
    gathers,
    known_dims,
    merged_dims,
    numbered,
    reshaped,
    source_of,
    union,
)
from explorer.model.shardings import COMPUTED, Axes, DeviceMesh, Spread, axes_of_pairs, parse_groups


def _groups_axes(operation: Operation) -> int:
    return _axes_of_groups(operation.mesh, operation.attributes.get("replica_groups", ""))


@lru_cache(maxsize=256)  # a program has few distinct groups, each with all its devices
def _axes_of_groups(mesh: DeviceMesh, text: str) -> int:
    groups = parse_groups(text)
    # `{}` means all devices. Groups in an unknown notation prove nothing.
    return mesh.joined(groups) if groups or text.strip("{} ") else mesh.full


def _all_reduce(operation: Operation, spreads: Sequence[Spread]) -> Spread:
    along = _groups_axes(operation)
    spread = spreads[0]
    axes = union(spreads) & ~along
    return Spread(
        axes, known_dims(spread.dims, ~along), COMPUTED, gathered(spreads, axes) & ~along, gathers(spreads, axes)
    )


def _all_gather(operation: Operation, spreads: Sequence[Spread]) -> Spread:
    spread, (at,) = spreads[0], operation.numbers("dimensions")
    along, classes = _gathered_classes(operation, spread)
    dims = spread.dims if classes is None else None
    if dims is not None:
        split = dims[at]
        # After a gather along a slow axis, a part is no contiguous block, and no list of axes describes it.
        inside = {axis for axis in split if along >> axis & 1}
        is_fastest = set(split[len(split) - len(inside) :]) == inside
        dims = dims if is_fastest else None
    here = tuple(axis for axis in range(len(operation.mesh.sizes)) if (along & spread.axes) >> axis & 1)
    marks = spread.marks or ((),) * len(operation.array.dims)
    return Spread(
        spread.axes & ~along,
        known_dims(dims, ~along),
        spread.source,
        spread.gathered | along & spread.axes,
        spread.gathers,
        marks=(*marks[:at], here, *marks[at + 1 :]),
        classes=classes if spread.axes & ~along else None,
    )


def _gathered_classes(operation: Operation, spread: Spread) -> tuple[int, tuple[int, ...] | None]:
    """Return (axes as bits, each device's class): a gather makes a value equal along these axes.

    Devices of one class have equal values. The classes are None unless the gather's groups split an axis.

    Two gathers along both parts of an axis make a value equal along the whole axis; each gather alone doesn't.
    """
    mesh, groups = operation.mesh, parse_groups(operation.attributes.get("replica_groups", ""))
    along = _groups_axes(operation)
    group_of = {device: group for group in groups for device in group}
    is_whole = all(len(group) == mesh.devices_along(along) for group in groups)
    if len(group_of) != mesh.count or (is_whole and spread.classes is None):
        return along, None
    before = spread.classes or mesh.places(spread.axes)
    classes = numbered([tuple(before[member] for member in group_of[device]) for device in range(mesh.count)])
    return spread.axes & ~mesh.differing(np.asarray(classes)), classes


def _reduce_scatter(operation: Operation, spreads: Sequence[Spread]) -> Spread:
    along, (at,) = _groups_axes(operation), operation.numbers("dimensions")
    axes = union(spreads) | along
    dims = known_dims(spreads[0].dims, ~along)
    if dims is not None:
        added = tuple(axis for axis in range(len(operation.mesh.sizes)) if along >> axis & 1)
        dims = (*dims[:at], dims[at] + added, *dims[at + 1 :])
    return Spread(axes, dims, COMPUTED, gathered(spreads, axes), gathers(spreads, axes))


def _exchange(operation: Operation, spreads: Sequence[Spread]) -> Spread:
    axes = union(spreads) | _groups_axes(operation)
    return Spread(axes, None, COMPUTED, gathered(spreads, axes), gathers(spreads, axes))


def _permute(operation: Operation, spreads: Sequence[Spread]) -> Spread:
    # If every device receives, values equal along an axis stay equal. A device without a source has zeros.
    spread, mesh = spreads[0], operation.mesh
    pairs = parse_groups(operation.attributes.get("source_target_pairs", ""))
    names = axes_of_pairs(pairs, list(zip(mesh.names, mesh.sizes, strict=True)))
    along = sum(1 << mesh.names.index(name) for name in names) if names else mesh.full
    is_complete = len({pair[1] for pair in pairs if len(pair) == 2}) == mesh.count
    axes = spread.axes if is_complete and not spread.axes & along else spread.axes | along
    dims = spread.dims if axes == spread.axes else None
    classes = spread.classes if is_complete else None
    if classes is not None:
        source = {target: source for source, target in pairs}
        classes = tuple(classes[source[device]] for device in range(len(classes)))
    return Spread(axes, dims, COMPUTED, spread.gathered & ~axes, gathers(spreads, axes), classes=classes)


COLLECTIVES: Mapping[str, Callable[[Operation, Sequence[Spread]], Spread]] = {
    "all-reduce": _all_reduce,
    "all-gather": _all_gather,
    "reduce-scatter": _reduce_scatter,
    "all-to-all": _exchange,
    "ragged-all-to-all": _exchange,
    "collective-permute": _permute,
    "collective-broadcast": _all_reduce,
}

_Rule = Callable[[Operation, Sequence[Spread]], Dims]
_KEPT = frozenset(["copy", "convert", "optimization-barrier", "domain", "reduce-precision", "bitcast-convert"])
_SAME = frozenset(["iota", "constant", "rng-get-and-update-state", "after-all"])


def spread_of(operation: Operation, spreads: Sequence[Spread]) -> Spread:
    """Return the spread of an operation's result: the axes along which it differs, its splits, and where it comes from.

    All results of one operation share the spread.
    """
    if operation.op in _SAME:
        return constant(operation)
    if operation.op in ("partition-id", "replica-id"):
        devices = np.arange(operation.mesh.count) if operation.op == "partition-id" else None
        return Spread(operation.mesh.full if devices is not None else 0, (), COMPUTED, values=devices)
    if operation.op in COLLECTIVES:
        return COLLECTIVES[operation.op](operation, spreads)
    axes = union(spreads)
    rule = _RULES.get(operation.op, _elementwise)
    try:
        dims = rule(operation, spreads)
    except (IndexError, KeyError, ValueError):  # unknown splits, a missing attribute, or another notation
        dims = None
    if operation.op in ("dynamic-slice", "dynamic-update-slice"):
        axes = _sliced_axes(operation, spreads)
    is_kept = operation.op in _LAYOUT
    source = spreads[0].source if is_kept and spreads else source_of(spreads)
    values = device_values(operation, spreads)
    if values is not None and operation.array.elements == 1:
        axes = operation.mesh.differing(values) if values.shape == (operation.mesh.count,) else 0
        dims = ((),) * len(operation.array.dims)
    dims = dims if dims is None or len(dims) == len(operation.array.dims) else None
    whole, by = gathered(spreads, axes), gathers(spreads, axes)
    marks, classes = _marks(operation, spreads, rule), classes_of(operation.mesh, spreads)
    return Spread(axes, known_dims(dims, axes), source, whole, by, values, marks, classes)


def _marks(operation: Operation, spreads: Sequence[Spread], rule: _Rule) -> tuple[Axes, ...] | None:
    if all(spread.marks is None for spread in spreads):
        return None
    marked = [
        replace(spread, dims=spread.marks or ((),) * len(type_.arrays[0].dims if type_.arrays else ()))
        for spread, type_ in zip(spreads, operation.operands, strict=False)
    ]
    # A rule maps marks as it maps splits, and fails for both alike.
    try:
        return rule(operation, marked)
    except (IndexError, KeyError, ValueError):
        return None


def _sliced_axes(operation: Operation, spreads: Sequence[Spread]) -> int:
    first, rest = (1, spreads[1:]) if operation.op == "dynamic-slice" else (2, spreads[2:])
    whole, part = operation.operand(0), operation.array if first == 1 else operation.operand(1)
    axes = union(spreads[:first])
    # An index counts only in a dimension where it can move the slice.
    for size, length, index in zip(whole.shape, part.shape, rest, strict=False):
        axes |= index.axes if length < size else 0
    return axes


def _elementwise(operation: Operation, spreads: Sequence[Spread]) -> Dims:
    shape = operation.array.dims
    if any(
        not type_.arrays or (type_.arrays[0].dims and type_.arrays[0].dims != shape) for type_ in operation.operands
    ):
        return None
    return merged_dims([spread.dims for spread in spreads if spread.dims != ()] or [((),) * len(shape)])


def _known(spread: Spread) -> tuple[Axes, ...]:
    if spread.dims is None:
        raise ValueError("how its dimensions are split is unknown")
    return spread.dims


def _transpose(operation: Operation, spreads: Sequence[Spread]) -> Dims:
    dims = _known(spreads[0])
    return tuple(dims[at] for at in operation.numbers("dimensions"))


def _broadcast(operation: Operation, spreads: Sequence[Spread]) -> Dims:
    dims: list[Axes] = [()] * len(operation.array.dims)
    for at, split in zip(operation.numbers("dimensions"), _known(spreads[0]), strict=True):
        dims[at] = split
    return tuple(dims)


def _reduce(operation: Operation, spreads: Sequence[Spread]) -> Dims:
    removed = operation.numbers("dimensions")
    merged = merged_dims([spread.dims for spread in spreads[: len(spreads) // 2]])
    return None if merged is None else tuple(split for at, split in enumerate(merged) if at not in removed)


def _dot(operation: Operation, spreads: Sequence[Spread]) -> Dims:
    left, right = _known(spreads[0]), _known(spreads[1])
    batch = list(zip(operation.numbers("lhs_batch_dims"), operation.numbers("rhs_batch_dims"), strict=True))
    shared = [left[one] or right[other] for one, other in batch]
    return distinct_dims((*shared, *_free(operation, left, "lhs"), *_free(operation, right, "rhs")))


def _free(operation: Operation, dims: tuple[Axes, ...], side: str) -> list[Axes]:
    gone = {*operation.numbers(f"{side}_contracting_dims"), *operation.numbers(f"{side}_batch_dims")}
    return [split for at, split in enumerate(dims) if at not in gone]


def _convolution(operation: Operation, spreads: Sequence[Spread]) -> Dims:
    """Return the axes that split each dimension of a convolution's result; None if unknown.

    TPU compilers write products as convolutions over a batch window.
    """
    left, right = _known(spreads[0]), _known(spreads[1])
    inputs, _, result = operation.attributes["dim_labels"].partition("->")
    lhs, _, rhs = inputs.partition("_")
    dims: list[Axes] = []
    for at, label in enumerate(result):
        if label in "bf":
            dims.append(left[lhs.index("b")] if label == "b" else right[rhs.index("o")])
            continue
        one, other = lhs.index(label), rhs.index(label)
        is_lefts = operation.array.shape[at] == operation.operand(0).shape[one]
        if not is_lefts and operation.array.shape[at] != operation.operand(1).shape[other]:
            return None
        dims.append(left[one] if is_lefts else right[other])
    return distinct_dims(tuple(dims))


def _window(operation: Operation, spreads: Sequence[Spread]) -> Dims:
    """Return the axes that split each dimension after a slice, pad or reverse; None if it changes a split dimension."""
    dims, before, after = _known(spreads[0]), operation.operand(0).shape, operation.array.shape
    turned = operation.numbers("dimensions") if operation.op == "reverse" else ()
    is_whole = (not split or (before[at] == after[at] and at not in turned) for at, split in enumerate(dims))
    return dims if all(is_whole) else None


def _concatenate(operation: Operation, spreads: Sequence[Spread]) -> Dims:
    merged = merged_dims([spread.dims for spread in spreads])
    (along,) = operation.numbers("dimensions")
    # Parts of a split dimension, one after another, are not a part of the whole.
    return None if merged is None or merged[along] else merged


def _dynamic_slice(operation: Operation, spreads: Sequence[Spread]) -> Dims:
    whole, *indices = spreads
    before, after = operation.operand(0).shape, operation.array.shape
    dims: list[Axes] = []
    for at, split in enumerate(_known(whole)):
        if before[at] == after[at]:
            dims.append(split)
            continue
        axes = indices[at].axes
        if split or (axes and not _is_part(indices[at], after[at], operation.mesh)):
            return None
        dims.append(tuple(axis for axis in range(len(operation.mesh.sizes)) if axes >> axis & 1))
    return tuple(dims)


def _is_part(index: Spread, length: int, mesh: DeviceMesh) -> bool:
    """Return True if an index is the start of each device's own part along its axes, the first axis slowest."""
    if index.values is None:
        return False
    axes = [axis for axis in range(len(mesh.sizes)) if index.axes >> axis & 1]
    along = index.values.reshape(mesh.sizes)[tuple(slice(None) if at in axes else 0 for at in range(len(mesh.sizes)))]
    return bool(np.array_equal(along.reshape(-1), np.arange(along.size) * length))


def _dynamic_update(operation: Operation, spreads: Sequence[Spread]) -> Dims:
    whole, part, *indices = spreads
    sizes, lengths = operation.operand(0).shape, operation.operand(1).shape
    merged = merged_dims([whole.dims, part.dims])
    if merged is None:
        return None
    # An update of a part of a split dimension, or at an index that differs between devices, may land anywhere.
    is_whole = (
        lengths[at] == sizes[at] or not (split or index.axes)
        for at, (split, index) in enumerate(zip(merged, indices, strict=True))
    )
    return merged if all(is_whole) else None


def _sort(operation: Operation, spreads: Sequence[Spread]) -> Dims:
    merged = merged_dims([spread.dims for spread in spreads])
    along = operation.numbers("dimensions")
    # Each device would sort only its own part.
    return None if merged is None or any(merged[at] for at in along) else merged


def _gather(operation: Operation, spreads: Sequence[Spread]) -> Dims:
    operand, indices = _known(spreads[0]), _known(spreads[1])
    offsets = operation.numbers("offset_dims")
    sizes, whole = operation.numbers("slice_sizes"), operation.operand(0).shape
    gone = {*operation.numbers("collapsed_slice_dims"), *operation.numbers("operand_batching_dims")}
    (vector,) = operation.numbers("index_vector_dim") or (len(indices),)
    if any(split and sizes[at] != whole[at] for at, split in enumerate(operand)):
        return None
    batch = iter([split for at, split in enumerate(indices) if at != vector])
    kept = iter([split for at, split in enumerate(operand) if at not in gone])
    return distinct_dims(tuple(next(kept if at in offsets else batch) for at in range(len(operation.array.dims))))


_RULES: Mapping[str, _Rule] = {
    "transpose": _transpose,
    "broadcast": _broadcast,
    "reduce": _reduce,
    "dot": _dot,
    "convolution": _convolution,
    "reshape": lambda operation, spreads: reshaped(
        _known(spreads[0]), operation.operand(0).shape, operation.array.shape
    ),
    "bitcast": lambda operation, spreads: bitcast(_known(spreads[0]), operation.operand(0), operation.array),
    "slice": _window,
    "pad": _window,
    "reverse": _window,
    "concatenate": _concatenate,
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update,
    "sort": _sort,
    "gather": _gather,
    "scatter": lambda _, spreads: None if any(spread.axes for spread in spreads[1:]) else spreads[0].dims,
    "reduce-window": _window,
}
_LAYOUT = _KEPT | {"transpose", "reshape", "bitcast", "slice", "dynamic-slice", "reverse"}
