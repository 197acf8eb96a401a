"""A row of a result, by its name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from explorer.errors import UnknownNameError
from explorer.model.text import did_you_mean


class Named(Protocol):
    """What has a name."""

    @property
    def name(self) -> str: ...


RowT = TypeVar("RowT", bound=Named)


def row_named(rows: Iterable[RowT], name: str, kind: str) -> RowT:
    """The first row of a name.

    Args:
        rows: All of them.
        name: Its.
        kind: What a row is, for the message.

    Raises:
        UnknownNameError: There is none; with those that there are, or near ones.
    """
    rows = list(rows)
    row = next((row for row in rows if row.name == name), None)
    if row is None:
        names = [row.name for row in rows]
        raise UnknownNameError(f"there is no {kind} {name!r}." + (did_you_mean(name, names) or f" There are {names}."))
    return row
