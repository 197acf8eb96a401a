"""Values out of a file, held against the types that they should have; a TypeError where they haven't.

A checksum says that a file is as it was written, not who wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeVar

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
