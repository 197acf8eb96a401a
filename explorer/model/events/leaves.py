"""The array arguments of a call as columns: of hundreds no object is made for each, and numpy compares many calls'."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, count
from operator import ne
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
        hashes: Theirs, by number: what equal contents have in common that another `Contents` numbers.
        shapes, types, places: By number, and longer than `rows`: numbers of what is compared alone, which are its
            shape, its type (dtype and weakness), and where it lies (commitment, sharding, devices and layout).
    """

    __slots__ = ("_lock", "_numbers", "_parts", "hashes", "places", "rows", "shapes", "types")

    def __init__(self) -> None:
        self.rows: list[Content] = []
        self.hashes: list[int] = []
        self.shapes, self.types, self.places = (np.zeros(64, np.int32) for _ in range(3))
        self._numbers: dict[Content, int] = {}
        self._parts: tuple[dict[object, int], ...] = ({}, {}, {})
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self.rows)

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
        self.hashes.append(hash(content))
        return number


class _Arrays(NamedTuple):
    """What is compared of many calls at once, of one; `of` are the numbers that it was made of."""

    of: tuple[int, ...]
    numbers: Numbers
    shapes: Numbers
    place: int


class LeafColumns(Sequence[Leaf]):
    """The array arguments of one call: their paths, and the number of each one's content. Equal to the tuple of them.

    Args:
        paths: As Python would write each.
        numbers: Of their contents.
        contents: What the numbers stand for.
    """

    __slots__ = ("_arrays", "_columns", "_mark", "paths")

    def __init__(self, paths: tuple[str, ...], numbers: tuple[int, ...], contents: Contents) -> None:
        self.paths = paths
        self._columns = numbers, contents  # in one, for another thread may read while `rebase` writes
        self._arrays: _Arrays | None = None
        self._mark = 0

    @classmethod
    def of(cls, leaves: Sequence[Leaf], contents: Contents) -> LeafColumns:
        paths = tuple(leaf.path for leaf in leaves)
        return cls(paths, tuple([contents.number(_make(Content, leaf[1:])) for leaf in leaves]), contents)

    @property
    def numbers(self) -> tuple[int, ...]:
        return self._columns[0]

    @property
    def array(self) -> Numbers:
        """The numbers, for comparing many calls at once; those of two are sooner compared than numpy begins with it."""
        return self._in_arrays().numbers

    @property
    def shapes(self) -> Numbers:
        """The numbers of their shapes, as in `Contents.shapes`."""
        return self._in_arrays().shapes

    @property
    def place(self) -> int:
        """The number of the place where all of them lie; -1 if there are several."""
        return self._in_arrays().place

    def _in_arrays(self) -> _Arrays:
        (numbers, contents), arrays = self._columns, self._arrays
        if arrays is None or arrays.of is not numbers:
            array = np.array(numbers, np.int32)
            places = contents.places[array]
            place = int(places[0]) if len(places) and (places == places[0]).all() else -1
            arrays = self._arrays = _Arrays(numbers, array, contents.shapes[array], place)
        return arrays

    @property
    def contents(self) -> Contents:
        return self._columns[1]

    def rebase(self, contents: Contents) -> None:
        """Let the same leaves be numbered by other contents."""
        numbers, old = self._columns
        if old is not contents:
            self._columns = tuple([contents.number(old.rows[number]) for number in numbers]), contents

    def take(self, places: Sequence[int]) -> LeafColumns:
        """Some of them, in an order of their own."""
        numbers, contents = self._columns
        paths = tuple(map(self.paths.__getitem__, places))
        return LeafColumns(paths, tuple(map(numbers.__getitem__, places)), contents)

    def numbers_at(self, paths: tuple[str, ...]) -> tuple[int, ...]:
        """The content of each path; -1 of one that is none of these."""
        if paths is self.paths or paths == self.paths:
            return self.numbers
        there = dict(zip(self.paths, self.numbers, strict=True))
        return tuple([there.get(path, -1) for path in paths])

    def array_at(self, paths: tuple[str, ...]) -> Numbers:
        """The same, for comparing many calls at once."""
        is_same = paths is self.paths or paths == self.paths
        return self.array if is_same else np.array(self.numbers_at(paths), np.int32)

    @staticmethod
    def contents_at(at: int, path: str, calls: Iterable[Sequence[Leaf]]) -> list[Content]:
        """The content of a path in each of the calls that have it, which is looked for first at one place."""
        there: list[Content] = []
        for leaves in calls:  # dozens, in the user's time
            columns = leaves if isinstance(leaves, LeafColumns) else in_columns(leaves)[0]
            (numbers, contents), paths = columns._columns, columns.paths
            if at < len(paths) and paths[at] == path:
                there.append(contents.rows[numbers[at]])
            elif path in paths:
                there.append(contents.rows[numbers[paths.index(path)]])
        return there

    def distinct(self) -> list[Content]:
        """The contents that there are, each once."""
        numbers, contents = self._columns
        return [contents.rows[number] for number in {*numbers}]

    def mark(self) -> int:
        """Equal for equal leaves, however they are numbered."""
        if not self._mark:
            numbers, contents = self._columns
            self._mark = hash((self.paths, tuple(map(contents.hashes.__getitem__, numbers))))
        return self._mark

    def __iter__(self) -> Iterator[Leaf]:
        numbers, contents = self._columns
        rows = contents.rows
        return (_make(Leaf, (path, *rows[n])) for path, n in zip(self.paths, numbers, strict=True))

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
            return self.paths == other.paths and self.numbers == other.numbers
        return tuple(self) == tuple(cast("Sequence[Leaf]", other)) if isinstance(other, Sequence) else False

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)

    def __repr__(self) -> str:
        return repr(tuple(self))


def changed_places(numbers: tuple[int, ...], before: tuple[int, ...]) -> list[int]:
    """Where two calls' numbers differ, as far as both go."""
    return [*compress(count(), map(ne, numbers, before))]


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
