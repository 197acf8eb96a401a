"""Along which axes of the mesh each value of a partitioned program differs, and which of its dimensions they split.

A partitioned program is one that every device runs on its own part. What its arguments' shardings say is carried along
the instructions: a value is the same on all devices of an axis if whatever it is computed from is, or a collective made
it so. So `axes` may name too many axes, never too few: that a value is *the same* along an axis is proven.
"""

from __future__ import annotations

from collections.abc import Sequence

from explorer.model.shardings import COMPUTED, CONSTANT, Axes, DeviceMesh, Spread, is_same


def replicated(rank: int, source: int = CONSTANT) -> Spread:
    """What every device has alike."""
    return Spread(0, ((),) * rank, source)


def unknown(mesh: DeviceMesh, of: Sequence[Spread]) -> Spread:
    """What may be anything: it differs along each axis."""
    return Spread(mesh.full if not of else union(of) | mesh.full)


def union(spreads: Sequence[Spread]) -> int:
    """The axes along which any of them differs."""
    axes = 0
    for spread in spreads:
        axes |= spread.axes
    return axes


def gathered(spreads: Sequence[Spread], axes: int) -> int:
    """The axes along which any was gathered, for a result that differs along `axes`."""
    whole = 0
    for spread in spreads:
        whole |= spread.gathered
    return whole & ~axes


def gathers(spreads: Sequence[Spread], axes: int) -> frozenset[int]:
    """The all-gathers that `gathered` speaks of."""
    if not gathered(spreads, axes):
        return frozenset()
    sets = [spread.gathers for spread in spreads if spread.gathers]
    return sets[0] if len(sets) == 1 else frozenset[int]().union(*sets)


def classes_of(mesh: DeviceMesh, spreads: Sequence[Spread]) -> tuple[int, ...] | None:
    """Which devices have the same of what is computed from values; None where their axes say as much."""
    if all(spread.classes is None for spread in spreads):
        return None
    return numbered(list(zip(*(spread.classes or mesh.places(spread.axes) for spread in spreads), strict=True)))


def numbered(values: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """A number for each value, the same for equal ones."""
    numbers: dict[tuple[int, ...], int] = {}
    return tuple(numbers.setdefault(value, len(numbers)) for value in values)


def source_of(spreads: Sequence[Spread]) -> int:
    """A result's source where it is made of several: constants count for nothing."""
    sources = {spread.source for spread in spreads} - {CONSTANT}
    return CONSTANT if not sources else COMPUTED


def joined(one: Spread, other: Spread) -> Spread:
    """What holds of a value that may be either."""
    if one is other or one == other:
        return one
    return Spread(
        one.axes | other.axes,
        one.dims if one.dims == other.dims else None,
        one.source if one.source == other.source else COMPUTED,
        (one.gathered | other.gathered) & ~(one.axes | other.axes),
        one.gathers | other.gathers,
        one.values if is_same(one.values, other.values) else None,
        one.marks if one.marks == other.marks else None,
        one.classes if one.classes == other.classes and one.axes == other.axes else None,
    )


def merged_dims(several: Sequence[tuple[Axes, ...] | None]) -> tuple[Axes, ...] | None:
    """Of what is computed element by element: each dimension is split as in the operand where it is."""
    all_known = [dims for dims in several if dims is not None]
    if not several or len(all_known) < len(several):
        return None
    splits = zip(*all_known, strict=False)
    distinct = [{axes for axes in each if axes} for each in splits]
    if any(len(each) > 1 for each in distinct):
        return None
    return distinct_dims(tuple(next(iter(each), ()) for each in distinct))


def distinct_dims(dims: tuple[Axes, ...]) -> tuple[Axes, ...] | None:
    """None where one axis would split two dimensions: nobody knows how that lies."""
    axes = [axis for split in dims for axis in split]
    return dims if len(axes) == len(set(axes)) else None
