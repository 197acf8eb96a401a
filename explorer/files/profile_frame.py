"""The rows of a profile as tables."""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

from explorer.errors import OptionError
from explorer.model.results.profile_rows import EquationTime, LineTime, OpTime

if TYPE_CHECKING:
    from explorer.model.results.profile import Kind, Profile

__all__ = ["to_frame"]


def to_frame(profile: Profile, kind: Kind) -> Any:
    """One row for each line, op, equation or thing that the host did; a stack is its innermost frame's place."""
    rows: dict[str, tuple[type, Any]] = {
        "lines": (LineTime, lambda: profile.lines),
        "ops": (OpTime, lambda: profile.ops),
        "equations": (EquationTime, lambda: profile.equations),
    }
    pandas: Any = import_module("pandas")
    if kind == "host":
        return pandas.DataFrame(list(profile.host.items()), columns=["name", "seconds"])
    if kind not in rows:
        raise OptionError(f"a profile has tables of lines, ops, equations and host; it got {kind!r}.")
    of, given = rows[kind]
    names = [field.name for field in fields(of)]
    table = [{name: getattr(row, name) for name in names} for row in given()]
    for row in table:
        if "stack" in row:
            row["stack"] = str(row["stack"][0]) if row["stack"] else ""
    return pandas.DataFrame(table, columns=names)
