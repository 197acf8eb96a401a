"""Values out of a file, held against the types that they should have; a TypeError where they haven't.

A checksum says that a file is as it was written, not who wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from explorer.model.graph import Frame, Ints

_LONGEST_STACKS = 5_000_000  # frames of all stacks together: a minute of work; 24 layers, written plainly, have 69

_Row = TypeVar("_Row")


def text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text was expected, not {type(value).__name__}")
    return value


def boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"true or false was expected, not {type(value).__name__}")
    return value


def integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"an integer was expected, not {type(value).__name__}")
    return value


def number(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"a number was expected, not {type(value).__name__}")
    return value


def texts(values: Sequence[Any]) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError("a list of texts was expected")
    return values


def texts_by_name(values: dict[str, Any]) -> dict[str, str]:
    return {name: text(value) for name, value in values.items()}


def integers(values: dict[str, Any]) -> dict[str, int]:
    return {name: integer(value) for name, value in values.items()}


def floats(values: dict[str, Any]) -> dict[str, float]:
    return {name: number(value) for name, value in values.items()}


def dataclass_from(kind: type[_Row], values: dict[str, Any]) -> _Row:
    """A dataclass of texts and numbers with these values for its fields; TypeError if one is of another type."""
    checks = {"str": text, "int": integer, "float": number}
    for field in fields(kind):  # pyright: ignore[reportArgumentType]
        if field.name in values and str(field.type) in checks:
            checks[str(field.type)](values[field.name])
    return kind(**values)


def check_frames(frames: Sequence[Frame]) -> None:
    """Raise ValueError if the stacks of a graph are too long to be walked; one in a circle is as long as the table."""
    parent = np.asarray([frame.parent for frame in frames], np.int64)
    if len(parent) and not -1 <= parent.min() <= parent.max() < len(parent):
        raise ValueError("a frame leads out of its table")
    if (total := int(_stack_sizes(parent).sum())) > _LONGEST_STACKS:
        raise ValueError(f"its stacks have {total:,} frames; at most {_LONGEST_STACKS:,} are read")


def _stack_sizes(parent: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """How many frames are around each, by looking twice as far out in each turn; all of them, where it has no end."""
    size, outer = (parent >= 0).astype(np.int64), parent.copy()
    for _ in range(len(parent).bit_length() + 1):
        inner = np.flatnonzero(outer >= 0)
        if not len(inner):
            break
        at = outer[inner]
        size[inner], outer[inner] = np.minimum(size[inner] + size[at], len(parent)), outer[at]
    return size


def are_row_starts(starts: Ints, rows: int, entries: int) -> bool:
    """Are these the starts of compressed rows that share out all entries?"""
    is_whole = len(starts) == rows + 1 and starts[0] == 0 and starts[-1] == entries
    return is_whole and bool((np.diff(starts) >= 0).all())
