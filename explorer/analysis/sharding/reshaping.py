"""Which dimensions of a reshaped array are split, from those of the array before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from operator import mul

from explorer.model.shardings import Axes
from explorer.model.types import ArrayType


def reshaped(dims: tuple[Axes, ...], before: Sequence[int], after: Sequence[int]) -> tuple[Axes, ...] | None:
    """The splits after a reshape of one device's part; None where a split dimension isn't whole or slowest any more.

    Example:
        >>> reshaped(((0,), ()), (8, 4), (32,)), reshaped(((), (0,)), (8, 4), (32,)), reshaped(((0,),), (32,), (8, 4))
        (((0,),), None, ((0,), ()))
    """
    split: list[Axes] = [()] * len(after)
    for old, new in _blocks(before, after):
        axes = [at for at in old if dims[at]]
        if axes:
            target = _target(axes, old, new, before, after)
            if target is None:
                return None
            split[target] = dims[axes[0]]
    return tuple(split)


def _target(
    axes: Sequence[int], old: Sequence[int], new: Sequence[int], before: Sequence[int], after: Sequence[int]
) -> int | None:
    """Where the one split dimension of a block goes; None if that is nowhere, or there are several."""
    (at, *others) = axes
    if others:
        return None
    if before[at] == 1:  # of which each device has one element: where there is such a place
        return next((place for place in new if after[place] == 1), None if any(before[i] > 1 for i in old) else new[0])
    is_slowest = all(before[earlier] == 1 for earlier in old if earlier < at)
    return next((place for place in new if after[place] > 1), None) if is_slowest else None


def bitcast(dims: tuple[Axes, ...], before: ArrayType, after: ArrayType) -> tuple[Axes, ...] | None:
    """The same for a bitcast, which keeps the order of the elements in memory."""
    order, later = _order(before), _order(after)
    if len(order) != len(before.shape) or len(later) != len(after.shape) or before.elements != after.elements:
        return None
    sizes = [before.shape[at] for at in order], [after.shape[at] for at in later]
    physical = reshaped(tuple(dims[at] for at in order), *sizes)
    return None if physical is None else tuple(physical[later.index(at)] for at in range(len(later)))


def _order(array: ArrayType) -> tuple[int, ...]:
    """Its dimensions as they lie in memory, the slowest first."""
    return array.minor_to_major[::-1] or tuple(range(len(array.dims)))


def _blocks(before: Sequence[int], after: Sequence[int]) -> Iterator[tuple[range, range]]:
    """The smallest runs of dimensions that hold the same elements before and after."""
    left: list[int] = list(accumulate(before, mul))
    right: list[int] = list(accumulate(after, mul))
    # After each of these both have gone through as many elements; of dimensions of one element, after the last.
    shared = sorted({*left} & {*right})
    ends = [(len(left) - left[::-1].index(size), len(right) - right[::-1].index(size)) for size in shared]
    i = j = 0
    for end, other in ends:
        yield range(i, end), range(j, other)
        i, j = end, other
    if i < len(before) or j < len(after):
        yield range(i, len(before)), range(j, len(after))
