"""The array arguments of a call as columns: of hundreds no object is made for each, and numpy compares those of two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any, NamedTuple, cast, overload

import numpy as np
from numpy.typing import NDArray

from explorer.model.events.key import Leaf

Numbers = NDArray[np.int32]
_make = cast("Any", tuple.__new__)  # without the names: a fifth of the time


class Content(NamedTuple):
    """All that a `Leaf` is but its path."""

    shape: tuple[int | str, ...]
    dtype: str
    weak: bool = False
    given: str = "jax"
    committed: bool | None = None
    sharding: str = ""
    devices: tuple[str, ...] = ()
    layout: str = ""
    spread: tuple[str, str, str] | tuple[()] = ()


class Contents:
    """What leaves are made of, by number: equal contents have one.

    Args (all to be read only):
        rows: The contents, by number.
        shapes, types, places: By number, and longer than `rows`: numbers of what is compared alone, which are its
            shape, its type (dtype and weakness), and where it lies (commitment, sharding, devices and layout).
    """

    __slots__ = ("_lock", "_numbers", "_parts", "places", "rows", "shapes", "types")

    def __init__(self) -> None:
        self.rows: list[Content] = []
        self.shapes, self.types, self.places = (np.zeros(64, np.int32) for _ in range(3))
        self._numbers: dict[Content, int] = {}
        self._parts: tuple[dict[object, int], ...] = ({}, {}, {})
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def is_one_place(self) -> bool:
        """All of them lie in one place."""
        return len(self._parts[2]) == 1

    def number(self, content: Content) -> int:
        number = self._numbers.get(content)
        if number is None:
            with self._lock:
                number = self._numbers.get(content)
                if number is None:
                    number = self._numbers[content] = self._add(content)
        return number

    def _add(self, content: Content) -> int:
        number = len(self.rows)
        if number == len(self.shapes):  # twice as long, so that adding many takes time in their number
            self.shapes, self.types, self.places = (np.tile(c, 2) for c in (self.shapes, self.types, self.places))
        place = content.committed, content.sharding, content.devices, content.layout
        parts = content.shape, (content.dtype, content.weak), place
        for column, numbers, part in zip((self.shapes, self.types, self.places), self._parts, parts, strict=True):
            column[number] = numbers.setdefault(part, len(numbers))
        self.rows.append(content)
        return number


class LeafColumns(Sequence[Leaf]):
    """The array arguments of one call: their paths, and the number of each one's content. Equal to the tuple of them.

    Args:
        paths: As Python would write each.
        numbers: Of their contents.
        contents: What the numbers stand for.
    """

    __slots__ = ("_columns", "_mark", "paths")

    def __init__(self, paths: tuple[str, ...], numbers: Numbers, contents: Contents) -> None:
        self.paths = paths
        self._columns = numbers, contents  # in one, for another thread may read while `rebase` writes
        self._mark = 0

    @classmethod
    def of(cls, leaves: Sequence[Leaf], contents: Contents) -> LeafColumns:
        paths = tuple(leaf.path for leaf in leaves)
        return cls(paths, _numbers([contents.number(_make(Content, leaf[1:])) for leaf in leaves]), contents)

    @property
    def numbers(self) -> Numbers:
        return self._columns[0]

    @property
    def contents(self) -> Contents:
        return self._columns[1]

    def rebase(self, contents: Contents) -> None:
        """Let the same leaves be numbered by other contents."""
        numbers, old = self._columns
        if old is not contents:
            at: list[int] = numbers.tolist()
            self._columns = _numbers([contents.number(old.rows[number]) for number in at]), contents

    def take(self, places: Sequence[int]) -> LeafColumns:
        """Some of them, in an order of their own."""
        numbers, contents = self._columns
        return LeafColumns(tuple([self.paths[at] for at in places]), numbers[np.asarray(places, np.intp)], contents)

    def numbers_at(self, paths: tuple[str, ...]) -> Numbers:
        """The content of each path; -1 of one that is none of these."""
        if paths is self.paths or paths == self.paths:
            return self.numbers
        there = dict(zip(self.paths, self.numbers.tolist(), strict=True))
        return _numbers([there.get(path, -1) for path in paths])

    def content_at(self, at: int, path: str) -> Content | None:
        """The content of a path, which is looked for first where it was in another call."""
        (numbers, contents), paths = self._columns, self.paths
        if at >= len(paths) or paths[at] != path:
            if path not in paths:
                return None
            at = paths.index(path)
        return contents.rows[numbers.item(at)]

    def distinct(self) -> list[Content]:
        """The contents that there are, each once."""
        numbers, contents = self._columns
        at: list[int] = numbers.tolist()
        return [contents.rows[number] for number in {*at}]

    def mark(self) -> int:
        """Equal for equal leaves that were numbered alike when it was asked for first."""
        self._mark = self._mark or hash((self.paths, self.numbers.tobytes()))
        return self._mark

    def __iter__(self) -> Iterator[Leaf]:
        numbers, contents = self._columns
        rows = contents.rows
        return (_make(Leaf, (path, *rows[n])) for path, n in zip(self.paths, numbers.tolist(), strict=True))

    def __len__(self) -> int:
        return len(self.paths)

    @overload
    def __getitem__(self, index: int) -> Leaf: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Leaf, ...]: ...
    def __getitem__(self, index: int | slice) -> Leaf | tuple[Leaf, ...]:
        numbers, contents = self._columns
        if isinstance(index, slice):
            return tuple(self.take(range(len(self))[index]))
        return _make(Leaf, (self.paths[index], *contents.rows[numbers[index]]))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LeafColumns) and other.contents is self.contents:
            return self.paths == other.paths and np.array_equal(self.numbers, other.numbers)
        return tuple(self) == tuple(cast("Sequence[Leaf]", other)) if isinstance(other, Sequence) else False

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)

    def __repr__(self) -> str:
        return repr(tuple(self))


def _numbers(numbers: Sequence[int]) -> Numbers:
    return np.array(numbers, np.int32)


def in_columns(leaves: Sequence[Leaf], *others: Sequence[Leaf]) -> list[LeafColumns]:
    """The leaves of several calls, by numbers that mean the same in all."""
    contents = leaves.contents if isinstance(leaves, LeafColumns) else Contents()
    columns: list[LeafColumns] = []
    for of_call in (leaves, *others):
        if not isinstance(of_call, LeafColumns):
            of_call = LeafColumns.of(of_call, contents)
        elif of_call.contents is not contents:
            of_call.rebase(contents)
        columns.append(of_call)
    return columns
