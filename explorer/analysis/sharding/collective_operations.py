"""What each collective does to how an array lies on the devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from explorer.analysis.sharding.operation import Operation, known_dims
from explorer.analysis.sharding.spread import gathered, gathers, numbered, union
from explorer.model.shardings import COMPUTED, DeviceMesh, Groups, Spread, axes_of_pairs, parse_groups


def _groups(operation: Operation) -> Groups:
    return parse_groups(operation.attributes.get("replica_groups", ""))


def _groups_axes(operation: Operation) -> int:
    return _axes_of_groups(operation.mesh, operation.attributes.get("replica_groups", ""))


@lru_cache(maxsize=256)  # a program has a few kinds of groups, each of them of all its devices
def _axes_of_groups(mesh: DeviceMesh, text: str) -> int:
    groups = parse_groups(text)
    # `{}` is all devices; of groups in a notation that isn't read nothing is proven.
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
    """The axes along which a gather makes a value the same; where its groups are parts of axes, which devices have it.

    Two gathers, along both parts of an axis, make a value the same along all of it, though neither does alone.
    """
    mesh, groups = operation.mesh, _groups(operation)
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
    """An all-to-all: every device of a group has other parts of what they had before."""
    axes = union(spreads) | _groups_axes(operation)
    return Spread(axes, None, COMPUTED, gathered(spreads, axes), gathers(spreads, axes))


def _permute(operation: Operation, spreads: Sequence[Spread]) -> Spread:
    """Along an axis where all had the same, all have it afterwards; who is sent nothing has zeros."""
    spread, mesh = spreads[0], operation.mesh
    pairs = parse_groups(operation.attributes.get("source_target_pairs", ""))
    names = axes_of_pairs(pairs, list(zip(mesh.names, mesh.sizes, strict=True)))
    along = sum(1 << mesh.names.index(name) for name in names) if names else mesh.full
    is_complete = len({pair[1] for pair in pairs if len(pair) == 2}) == mesh.count
    axes = spread.axes if is_complete and not spread.axes & along else spread.axes | along
    dims = spread.dims if axes == spread.axes else None
    classes = _sent_classes(spread, pairs) if is_complete else None
    return Spread(axes, dims, COMPUTED, spread.gathered & ~axes, gathers(spreads, axes), classes=classes)


def _sent_classes(spread: Spread, pairs: Groups) -> tuple[int, ...] | None:
    if spread.classes is None:
        return None
    source_of = {target: source for source, target in pairs}
    return tuple(spread.classes[source_of[device]] for device in range(len(spread.classes)))


COLLECTIVES: Mapping[str, Callable[[Operation, Sequence[Spread]], Spread]] = {
    "all-reduce": _all_reduce,
    "all-gather": _all_gather,
    "reduce-scatter": _reduce_scatter,
    "all-to-all": _exchange,
    "ragged-all-to-all": _exchange,
    "collective-permute": _permute,
    "collective-broadcast": _all_reduce,
}
