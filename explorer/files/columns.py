"""Columns of rows: one description yields a data frame, a JSON object and its schema.

Most columns are fields or properties of the row's class; their type is its annotation, their meaning its documentation.
"""

from __future__ import annotations

import math
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime
from functools import cache
from inspect import cleandoc
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from explorer.errors import MissingPackageError
from explorer.model.text import install_hint

if TYPE_CHECKING:
    import pandas as pd

_SIMPLE: Mapping[Any, Mapping[str, Any]] = {
    str: {"type": "string"}, int: {"type": "integer"}, bool: {"type": "boolean"}, datetime: {"type": "string"},
    float: {"type": ["number", "null"]},  # what isn't known is null
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """Column of a data frame, or key of a JSON object.

    Args:
        name: Name of the column.
        value: Function from a row to its value.
        type: Annotation of the value; `Columns` for an object, a list of `Columns` for a list of objects.
        meaning: Description for the schema.
        is_optional: Whether an object may be missing (null).
    """

    name: str
    value: Callable[[Any], Any]
    type: Any = str
    meaning: str = ""
    is_optional: bool = False


Columns = Sequence[Column]


def own(kind: type, *names: str, **named: str) -> tuple[Column, ...]:
    """Return columns for attributes of a class: the named ones, or else all fields of a dataclass.

    Args:
        kind: The class of the rows.
        names: Fields and properties.
        named: Columns named differently than their attribute, as `column="attribute"`.
    """
    attributes = {name: name for name in names} | named
    attributes = attributes or {field.name: field.name for field in fields(kind)}
    return tuple(Column(name, attrgetter(of), _Attribute(kind, of)) for name, of in attributes.items())


def of_part(part: Callable[[Any], Any], columns: Columns) -> tuple[Column, ...]:
    """Return copies of `columns` whose value function takes a whole row and reads `part(row)`."""

    def value_of(column: Column) -> Callable[[Any], Any]:
        return lambda row: column.value(part(row))

    return tuple(replace(column, value=value_of(column)) for column in columns)


def record(row: object, columns: Columns) -> dict[str, Any]:
    """Return a dict from the name of each column to the row's value, in JSON's types."""
    return {column.name: _cell(column.value(row), column.type) for column in columns}


def _cell(value: Any, kind: Any) -> Any:
    if isinstance(kind, list):
        return [record(row, cast("list[Columns]", kind)[0]) for row in value]
    if isinstance(kind, tuple) and value is not None:
        return record(value, cast("Columns", kind))
    return plain(value)


def plain(value: object) -> Any:
    """Return a value in JSON's types; NaN and infinities become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return as_json(value, plain)


def as_json(value: object, inner: Callable[[object], Any]) -> Any:
    """Return a value in JSON's types: scalars, ISO dates, lists, and objects of mappings and dataclass fields.

    Args:
        value: Anything but a float.
        inner: Converts the parts of `value`.
    """
    if isinstance(value, str | bool | int | None):
        return value
    if isinstance(value, np.generic):
        return inner(cast("np.generic[Any]", value).item())
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): inner(each) for key, each in cast("Mapping[object, object]", value).items()}
    if isinstance(value, Sequence):
        return list(map(inner, cast("Sequence[object]", value)))
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: inner(getattr(value, field.name)) for field in fields(value)}
    raise TypeError(f"a {type(value).__name__} is nothing that a report can hold")


# Data frames --------------------------------------------------------------------------------------------------------


def frame_of(rows: Iterable[object], columns: Sequence[Column | str] | None = None) -> pd.DataFrame:
    """Return a DataFrame with one row for each of `rows`.

    Args:
        rows: Mappings from column to value, or objects that have an attribute for each column.
        columns: Columns in order, also those of an empty table. None takes those of the mappings.

    Raises:
        MissingPackageError: pandas is not installed.

    Example:
        >>> frame_of([{"line": 3, "seconds": 0.5}, {"line": 4, "seconds": 0.25}])["seconds"].sum().item()
        0.75
    """
    pandas = import_pandas()
    named = [each if isinstance(each, Column) else Column(each, attrgetter(each)) for each in columns or ()]
    records: list[Any] = [
        row if isinstance(row, Mapping) else {each.name: each.value(row) for each in named} for row in rows
    ]
    return pandas.DataFrame(records, columns=None if columns is None else [each.name for each in named])


def import_pandas() -> Any:
    """Return the module pandas, an optional dependency; MissingPackageError if it is not installed."""
    try:
        import pandas
    except ImportError:
        raise MissingPackageError(
            "to_frame() makes a DataFrame of pandas, which is not installed.\n"
            f"  Hint: {install_hint('pandas', 'lab')}; the rows themselves need no package."
        ) from None
    return pandas


# Schemas ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Attribute:
    """Type and meaning of a class attribute, looked up when a schema is made."""

    kind: type
    name: str

    @property
    def type(self) -> Any:
        member = getattr(self.kind, self.name, None)
        # `fget` is the function of a property, `func` that of a cached one.
        function = getattr(member, "fget", None) or getattr(member, "func", None)
        return get_type_hints(function)["return"] if function else get_type_hints(self.kind)[self.name]

    @property
    def meaning(self) -> str:
        member = getattr(self.kind, self.name, None)
        is_property = hasattr(member, "fget") or hasattr(member, "func")
        return (member.__doc__ or "").partition("\n")[0] if is_property else _meanings(self.kind).get(self.name, "")


@cache
def _meanings(kind: type) -> Mapping[str, str]:
    """Return the descriptions of the arguments in a class's docstring, by argument name."""
    arguments = cleandoc(kind.__doc__ or "").partition("Args:\n")[2].partition("\n\n")[0]
    # Lines that are indented deeper than an argument's name continue its description.
    entries = re.findall(r"^    (\w[\w, ]*): ((?:.|\n(?!    \S))*)", arguments, re.MULTILINE)
    return {name: " ".join(text.split()) for names, text in entries for name in names.split(", ")}


def object_schema(columns: Columns) -> dict[str, Any]:
    """Return the JSON Schema of an object with these columns."""
    properties: dict[str, Any] = {}
    for column in columns:
        is_attribute = isinstance(column.type, _Attribute)
        kind, meaning = (column.type.type, column.type.meaning) if is_attribute else (column.type, "")
        meaning = column.meaning or meaning
        described = {"description": meaning} if meaning else {}
        schema = type_schema(kind)
        properties[column.name] = (_nullable(schema) if column.is_optional else schema) | described
    return {
        "type": "object", "properties": properties, "required": list(properties), "additionalProperties": False,
    }  # fmt: skip


def type_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of an annotated type, of an object's columns, or of a list of objects."""
    if isinstance(kind, list):
        return {"type": "array", "items": object_schema(cast("list[Columns]", kind)[0])}
    if isinstance(kind, tuple):
        return object_schema(cast("Columns", kind))
    if is_dataclass(kind):
        return object_schema(own(cast("type", kind)))
    if kind in _SIMPLE:
        return dict(_SIMPLE[kind])
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"type": "string", "enum": list(arguments)}
    if origin in (Union, types.UnionType):  # of a type and None
        return _nullable(type_schema(arguments[0]))
    if issubclass(cast("type", origin), Mapping):
        return {"type": "object", "additionalProperties": type_schema(arguments[1])}
    return {"type": "array", "items": type_schema(arguments[0])}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return schema if isinstance(schema["type"], list) else schema | {"type": [schema["type"], "null"]}
