"""Numbers that each device works out of its own: where its part begins. They say along which axes parts differ."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.sharding.operation import Operation
from explorer.analysis.sharding.spread import replicated
from explorer.model.shardings import Spread

Values = NDArray[np.int64]

_ARITHMETIC: Mapping[str, Callable[..., Any]] = {  # pyright: ignore[reportUnknownVariableType]
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
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
_WHOLE = "usp"  # how the dtypes of whole numbers begin


def constant(operation: Operation) -> Spread:
    """What all devices have alike, with its numbers where they are known."""
    rank = len(operation.array.dims) if operation.type.arrays else 0
    numbers = _literal(operation) if operation.op == "constant" and rank <= 1 else None
    if numbers is None or numbers.size != operation.array.elements:
        return replicated(rank)
    return replace(replicated(rank), values=np.full(operation.mesh.count, numbers[0]) if rank == 0 else numbers)


def _literal(operation: Operation) -> Values | None:
    literal = operation.attributes.get("literal", "")
    if not literal or operation.array.dtype[0] not in _WHOLE:
        return None
    words = literal.strip("{} ").replace("true", "1").replace("false", "0").split(",")
    try:
        return np.array([int(word) for word in words if word.strip()], np.int64)
    except ValueError:  # cut, or no number
        return None


def device_values(operation: Operation, spreads: Sequence[Spread]) -> Values | None:
    """What each device computes, where that is one whole number that follows from its own number."""
    values = [spread.values for spread in spreads if spread.values is not None]
    if not spreads or len(values) < len(spreads) or operation.type.elements != 1:
        return None
    if operation.op == "dynamic-slice" and len(values) == 2:
        table, index = values
        return table[np.clip(index, 0, len(table) - 1)]
    is_of_devices = {len(each) for each in values} == {operation.mesh.count}
    return _computed(operation, values) if is_of_devices else None


def _computed(operation: Operation, values: Sequence[Values]) -> Values | None:
    if operation.op in _SAME and operation.array.dtype[0] in _WHOLE:
        return values[0]
    if operation.op == "compare":
        return getattr(values[0], _COMPARISONS[operation.attributes["direction"]])(values[1]).astype(np.int64)
    arithmetic = _ARITHMETIC.get(operation.op)
    return None if arithmetic is None else np.asarray(arithmetic(*values), np.int64)
