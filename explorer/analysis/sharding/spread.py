"""Terms of the sharding rules: axes along which a value differs, dimensions they split, and reshapes of splits.

Every device runs the partitioned program on its part. The shardings of arguments are propagated along instructions: a
value is equal on all devices of an axis if its operands are, or if a collective made it equal. So `axes` may name too
many axes, never too few: equality along an axis is proven.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer.model.shardings import COMPUTED, CONSTANT, Axes, DeviceMesh, Spread, is_same
from explorer.model.types import ArrayType, Type


def replicated(rank: int, source: int = CONSTANT) -> Spread:
    return Spread(0, ((),) * rank, source)


def unknown(mesh: DeviceMesh, of: Sequence[Spread]) -> Spread:
    """Return the spread of a value that may differ along each axis."""
    return Spread(union(of) | mesh.full)


def union(spreads: Sequence[Spread]) -> int:
    axes = 0
    for spread in spreads:
        axes |= spread.axes
    return axes


def gathered(spreads: Sequence[Spread], axes: int) -> int:
    """Return the axes, as bits, along which any of the values was gathered, without those in `axes`."""
    whole = 0
    for spread in spreads:
        whole |= spread.gathered
    return whole & ~axes


def gathers(spreads: Sequence[Spread], axes: int) -> frozenset[int]:
    """Return the nodes of the all-gathers behind the axes of `gathered`; empty if it has no axes."""
    if not gathered(spreads, axes):
        return frozenset()
    sets = [spread.gathers for spread in spreads if spread.gathers]
    return sets[0] if len(sets) == 1 else frozenset[int]().union(*sets)


def classes_of(mesh: DeviceMesh, spreads: Sequence[Spread]) -> tuple[int, ...] | None:
    """Return each device's class of equal results; None if the axes of `spreads` already determine it."""
    if all(spread.classes is None for spread in spreads):
        return None
    return numbered(list(zip(*(spread.classes or mesh.places(spread.axes) for spread in spreads), strict=True)))


def numbered(values: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the index of each value among the distinct values."""
    numbers: dict[tuple[int, ...], int] = {}
    return tuple(numbers.setdefault(value, len(numbers)) for value in values)


def source_of(spreads: Sequence[Spread]) -> int:
    """Return the source of a computed result: `CONSTANT` if all operands are constants, else `COMPUTED`."""
    sources = {spread.source for spread in spreads} - {CONSTANT}
    return CONSTANT if not sources else COMPUTED


def joined(one: Spread, other: Spread) -> Spread:
    """Return the spread of a value that may have either: it may differ along the axes of both.

    All else is known only if both agree.
    """
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
    """Return the splits of an elementwise result: each dimension as in the operand that splits it.

    None if the splits of an operand are unknown, or if two operands disagree.
    """
    all_known = [dims for dims in several if dims is not None]
    if not several or len(all_known) < len(several):
        return None
    splits = zip(*all_known, strict=False)
    distinct = [{axes for axes in each if axes} for each in splits]
    if any(len(each) > 1 for each in distinct):
        return None
    return distinct_dims(tuple(next(iter(each), ()) for each in distinct))


def distinct_dims(dims: tuple[Axes, ...]) -> tuple[Axes, ...] | None:
    """Return `dims`, or None if one axis would split two dimensions."""
    axes = [axis for split in dims for axis in split]
    return dims if len(axes) == len(set(axes)) else None


Dims = tuple[Axes, ...] | None  # the axes that split each dimension; None if unknown


@dataclass(frozen=True)
class Operation:
    """One instruction: result type, operand types, attributes as printed, and the program's mesh."""

    op: str
    type: Type
    operands: Sequence[Type]
    attributes: Mapping[str, str]
    mesh: DeviceMesh

    def numbers(self, key: str) -> tuple[int, ...]:
        return tuple(int(part) for part in self.attributes.get(key, "").strip("{}").split(",") if part.strip())

    @property
    def array(self) -> ArrayType:
        return self.type.arrays[0]

    def operand(self, at: int) -> ArrayType:
        return self.operands[at].arrays[0]


def known_dims(dims: Dims, axes: int) -> Dims:
    """Return `dims` without axes along which the value doesn't differ."""
    return None if dims is None else tuple(tuple(axis for axis in split if axes >> axis & 1) for split in dims)


def reshaped(dims: tuple[Axes, ...], before: Sequence[int], after: Sequence[int]) -> tuple[Axes, ...] | None:
    """Return the splits after a reshape of one device's part; None if a split dimension doesn't stay whole or slowest.

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
    """Return the new dimension to which a reshape moves the only split one; None if several are split or it is torn."""
    (at, *others) = axes
    if others:
        return None
    if before[at] == 1:  # each device has one element of the dimension
        return next((place for place in new if after[place] == 1), None if any(before[i] > 1 for i in old) else new[0])
    is_slowest = all(before[earlier] == 1 for earlier in old if earlier < at)
    return next((place for place in new if after[place] > 1), None) if is_slowest else None


def bitcast(dims: tuple[Axes, ...], before: ArrayType, after: ArrayType) -> tuple[Axes, ...] | None:
    """Return the splits after a bitcast, which keeps the order of elements in memory; None as for `reshaped`."""
    order, later = _order(before), _order(after)
    if len(order) != len(before.shape) or len(later) != len(after.shape) or before.elements != after.elements:
        return None
    sizes = [before.shape[at] for at in order], [after.shape[at] for at in later]
    physical = reshaped(tuple(dims[at] for at in order), *sizes)
    return None if physical is None else tuple(physical[later.index(at)] for at in range(len(later)))


def _order(array: ArrayType) -> tuple[int, ...]:
    return array.minor_to_major[::-1] or tuple(range(len(array.dims)))


def _blocks(before: Sequence[int], after: Sequence[int]) -> Iterator[tuple[range, range]]:
    """Yield the smallest runs of dimensions that hold the same elements before and after."""
    left: list[int] = list(accumulate(before, mul))
    right: list[int] = list(accumulate(after, mul))
    # A block ends where both products are equal; dimensions of size 1 belong to the block before.
    shared = sorted({*left} & {*right})
    ends = [(len(left) - left[::-1].index(size), len(right) - right[::-1].index(size)) for size in shared]
    i = j = 0
    for end, other in ends:
        yield range(i, end), range(j, other)
        i, j = end, other
    if i < len(before) or j < len(after):
        yield range(i, len(before)), range(j, len(after))


Values = NDArray[np.int64]

_ARITHMETIC: Mapping[str, Callable[..., Any]] = {  # pyright: ignore[reportUnknownVariableType]
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    # A division by zero has a value in HLO; NumPy would warn.
    "divide": lambda a, b: a // np.where(b == 0, 1, b),  # pyright: ignore
    "remainder": lambda a, b: a % np.where(b == 0, 1, b),  # pyright: ignore
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "shift-right-logical": operator.rshift,
    "shift-left": operator.lshift,
    "negate": operator.neg,
    "clamp": lambda low, x, high: np.minimum(np.maximum(low, x), high),  # pyright: ignore
    "select": lambda which, a, b: np.where(which, a, b),  # pyright: ignore
}
_COMPARISONS = {"EQ": "__eq__", "NE": "__ne__", "LT": "__lt__", "LE": "__le__", "GT": "__gt__", "GE": "__ge__"}
_SAME = ("reshape", "bitcast", "copy", "convert", "broadcast")
_INTEGERS = "usp"  # first letters of the dtypes u…, s… and pred


def constant(operation: Operation) -> Spread:
    """Return the spread of a constant, with its integer values if known."""
    rank = len(operation.array.dims) if operation.type.arrays else 0
    numbers = _literal(operation) if operation.op == "constant" and rank <= 1 else None
    if numbers is None or numbers.size != operation.array.elements:
        return replicated(rank)
    return replace(replicated(rank), values=np.full(operation.mesh.count, numbers[0]) if rank == 0 else numbers)


def _literal(operation: Operation) -> Values | None:
    literal = operation.attributes.get("literal", "")
    if not literal or operation.array.dtype[0] not in _INTEGERS:
        return None
    words = literal.strip("{} ").replace("true", "1").replace("false", "0").split(",")
    try:
        return np.array([int(word) for word in words if word.strip()], np.int64)
    except ValueError:  # shortened, or not a number
        return None


def device_values(operation: Operation, spreads: Sequence[Spread]) -> Values | None:
    """Return the integer scalar that each device computes, if it follows from the device's number; else None."""
    values = [spread.values for spread in spreads if spread.values is not None]
    if not spreads or len(values) < len(spreads) or operation.type.elements != 1:
        return None
    if operation.op == "dynamic-slice" and len(values) == 2:
        table, index = values
        return table[np.clip(index, 0, len(table) - 1)]
    is_of_devices = {len(each) for each in values} == {operation.mesh.count}
    return _computed(operation, values) if is_of_devices else None


def _computed(operation: Operation, values: Sequence[Values]) -> Values | None:
    if operation.op in _SAME and operation.array.dtype[0] in _INTEGERS:
        return values[0]
    if operation.op == "compare":
        return getattr(values[0], _COMPARISONS[operation.attributes["direction"]])(values[1]).astype(np.int64)
    arithmetic = _ARITHMETIC.get(operation.op)
    return None if arithmetic is None else np.asarray(arithmetic(*values), np.int64)
