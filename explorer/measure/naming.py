"""Names of swept values, and their numbers on an axis."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

import jax
import numpy as np

from explorer.capture.explore import Described
from explorer.capture.readers.jaxpr import short_type
from explorer.model.results.statistics import Axis

_ARRAYS = (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct, Described)
_LONGEST = 40  # characters of a label
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def axis_of(name: str, values: Sequence[Any], labels: Sequence[str] | None = None) -> Axis:
    """Return the axis of these values; `labels` are the user's names for them.

    Example:
        >>> axis_of("n", [128, 1024])
        Axis(name='n', labels=('128', '1,024'), numbers=(128.0, 1024.0), unit='')
        >>> axis_of("x", [np.zeros((2, 3), np.int8), np.zeros(9, np.int8)])
        Axis(name='x', labels=('i8[2,3]', 'i8[9]'), numbers=(6.0, 9.0), unit='elements')
    """
    if labels is not None:
        return Axis(name, distinct_labels(labels))
    numbers, unit = _numbers(values)
    return Axis(name, distinct_labels([value_text(value) for value in values]), numbers, unit)


def value_text(value: Any) -> str:
    """Return a short text for a value, without addresses."""
    if value is None or isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    if is_array(value):
        leaves = _leaves(value)
        return short_type(struct_of(leaves[0])) if len(leaves) == 1 else f"{len(leaves):,} arrays"
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        return _short(", ".join(f"{key}={value_text(one)}" for key, one in pairs)) or "none"
    if isinstance(value, (tuple, list)):
        return _short(f"({', '.join(map(value_text, cast('Sequence[Any]', value)))})")
    named = getattr(value, "__name__", None) or getattr(value, "name", None)  # functions and classes, dtypes and enums
    return str(named) if isinstance(named, str) else _short(_ADDRESS.sub("", repr(value)))


def is_array(value: Any) -> bool:
    """Return True for an array, a description of one, or a non-empty tree of these."""
    leaves = _leaves(value)
    return bool(leaves) and all(isinstance(leaf, _ARRAYS) for leaf in leaves)


def struct_of(leaf: Any) -> Any:
    """Return the `jax.ShapeDtypeStruct` of a description of an array; other leaves unchanged."""
    return leaf.to_struct() if isinstance(leaf, Described) else leaf


def _leaves(value: Any) -> list[Any]:
    return jax.tree.leaves(value, is_leaf=lambda leaf: isinstance(leaf, Described))


def _numbers(values: Sequence[Any]) -> tuple[tuple[float, ...] | None, str]:
    """Return numbers and their unit: of arrays and shapes, the element counts if all differ."""
    if all(isinstance(value, (int, float, np.number)) and not isinstance(value, bool) for value in values):
        numbers = tuple(map(float, values))
        return (numbers, "") if all(map(math.isfinite, numbers)) else (None, "")
    counts = [_elements(value) for value in values]
    sizes = tuple(float(count) for count in counts if count is not None)
    return (sizes, "elements") if len(sizes) == len(values) == len(set(sizes)) else (None, "")


def _elements(value: Any) -> int | None:
    if is_array(value):
        return sum(math.prod(struct_of(leaf).shape) for leaf in _leaves(value))
    is_shape = isinstance(value, (tuple, list)) and bool(cast("Sequence[Any]", value))
    if is_shape and all(type(size) is int and size > 0 for size in cast("Sequence[Any]", value)):
        return math.prod(cast("Sequence[int]", value))
    return None


def distinct_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the labels, numbered where two are equal.

    Example:
        >>> distinct_labels(["f32[8]", "f32[9]", "f32[8]"])
        ('f32[8]', 'f32[9]', 'f32[8] #2')
    """
    seen: Counter[str] = Counter()
    taken = set(labels)
    all_distinct: list[str] = []
    for label in labels:
        seen[label] += 1
        distinct = label
        while seen[label] > 1 and distinct in taken:
            distinct = f"{label} #{seen[label]}"
            seen[label] += distinct in taken
        taken.add(distinct)
        all_distinct.append(distinct)
    return tuple(all_distinct)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
