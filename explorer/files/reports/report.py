"""A report of the shell as JSON: an object that names its schema, `"schema": "explorer/lint/1"`.

The schema itself is `schemas/lint-1.json` beside this package, as `python -m explorer schema lint` prints it. A field
that is added leaves the version as it is, so a reader passes over what it doesn't know; what is renamed, removed or
means something else gets the next version.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import numpy as np

from explorer.errors import UnknownNameError
from explorer.files.disk import read_text

_FOLDER = Path(__file__).parents[1] / "schemas"
_VERSIONS = {
    **{"explore": 1, "diff": 1, "recompiles": 1, "processes": 1, "lint": 1, "padding": 1, "time": 1, "profile": 1},
    **{"hot": 1, "timeline": 1, "targets": 1, "record": 1, "check": 1, "bisect": 1, "error": 1},
}
KINDS = tuple(_VERSIONS)


def schema_name(kind: str) -> str:
    """`explorer/lint/1`, as the field `schema` of a report has it.

    Raises:
        UnknownNameError: There is no such report.
    """
    if kind not in _VERSIONS:
        raise UnknownNameError(f"there is no report {kind!r}; there are: {', '.join(KINDS)}.")
    return f"explorer/{kind}/{_VERSIONS[kind]}"


def schema_text(kind: str) -> str:
    """The JSON Schema of a report, as text.

    Raises:
        UnknownNameError: There is no such report.
    """
    _, name, version = schema_name(kind).split("/")
    return read_text(_FOLDER / f"{name}-{version}.json")


def to_json(kind: str, body: Mapping[str, Any]) -> str:
    """A report as text.

    Args:
        kind: One of `KINDS`.
        body: What it has besides its schema's name; values of the model are objects of their fields.

    Example:
        >>> print(to_json("error", {"error": "OptionError", "message": "--runs is 0"}))
        {
         "schema": "explorer/error/1",
         "error": "OptionError",
         "message": "--runs is 0"
        }
    """
    # ASCII alone: names of files may hold what is no Unicode text.
    return json.dumps({"schema": schema_name(kind), **plain(body)}, indent=1, allow_nan=False)


def plain(value: object) -> Any:
    """A value in JSON's terms; NaN and infinities, for which it has no word, are null: not known."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, np.generic):
        return plain(cast("np.generic[Any]", value).item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in cast("Mapping[object, object]", value).items()}
    if isinstance(value, Sequence):
        return [plain(each) for each in cast("Sequence[object]", value)]
    if is_dataclass(value) and not isinstance(value, type):
        return fields_of(value, *(field.name for field in fields(value)))
    raise TypeError(f"a {type(value).__name__} is nothing that a report can hold")


def fields_of(value: object, *names: str) -> dict[str, Any]:
    """Some attributes of a value, by name."""
    return {name: plain(getattr(value, name)) for name in names}
