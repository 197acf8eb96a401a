"""Results as rows: a result is its rows, by position or by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Generic, Protocol, TypeVar

from explorer.errors import UnknownNameError
from explorer.model.declared import Displayable
from explorer.model.text import did_you_mean


class Named(Protocol):
    """Object with a name."""

    @property
    def name(self) -> str: ...


RowT = TypeVar("RowT")
NamedT = TypeVar("NamedT", bound=Named)


class Rows(Generic[RowT]):
    """A result that has `rows`; its length and its iteration are theirs."""

    __slots__ = ()
    rows: Any  # a sequence of RowT: each class has its own field

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[RowT]:
        return iter(self.rows)


class RowSequence(Rows[RowT], Displayable, Sequence[RowT]):  # pyright: ignore[reportUnsafeMultipleInheritance]
    """A result that is the sequence of its rows."""

    __slots__ = ()

    def __getitem__(self, at: int) -> RowT:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.rows[at]


def row_named(rows: Iterable[NamedT], name: str, kind: str) -> NamedT:
    """Return the first row of a name; an UnknownNameError lists existing or similar names."""
    rows = list(rows)
    row = next((row for row in rows if row.name == name), None)
    if row is None:
        names = [row.name for row in rows]
        raise UnknownNameError(f"there is no {kind} {name!r}." + (did_you_mean(name, names) or f" There are {names}."))
    return row


def row_at(rows: Sequence[RowT], at: int | str, key: str, missing: str) -> RowT:
    """Return the row at a position, or with attribute `key` equal to `at`; an UnknownNameError lists existing ones."""
    if not isinstance(at, str):
        return rows[at]
    # Reversed, so that the first of several rows with one name stays.
    by_name = {attrgetter(key)(row): row for row in reversed(rows)}
    if at not in by_name:
        raise UnknownNameError(f"{missing} {at!r}; there are: {', '.join(attrgetter(key)(row) for row in rows)}")
    return by_name[at]
