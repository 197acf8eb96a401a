"""Array arguments of calls in little space: as columns while calls are compared, as bytes in a ledger.

Of hundreds of leaves no object is made for each, and numpy compares many calls at once. A ledger splits a leaf into its
sizes and everything else, its *form*. Forms repeat from call to call even where every size is new, so a call's leaves
are a few numbers each: that of the form, then the sizes. So 100,000 events fit.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, compress, count
from operator import ne
from sys import intern
from threading import Lock
from typing import Any, NamedTuple, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from explorer.model.events.event import Event, Reason
from explorer.model.events.key import Key, Leaf

Numbers = NDArray[np.int32]
_make = cast("Any", tuple.__new__)  # without the names: a fifth of the time


class Content(NamedTuple):
    """Fields of a leaf, without its path."""

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
    """Table of leaf contents; equal contents have one number.

    Args (all to be read only):
        rows: Contents by number.
        hashes: Hashes by number, equal for equal contents of another `Contents`.
        shapes, types, places: By number, in arrays longer than `rows`: numbers of the shape, of the type (dtype and
            weakness), and of the placement (commitment, sharding, devices and layout), which are compared separately.
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
                # Another thread may have added it since the lookup without the lock.
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
    """Arrays of one call for comparing many calls at once, made of the numbers `of`."""

    of: tuple[int, ...]
    numbers: Numbers
    shapes: Numbers
    place: int


class LeafColumns(Sequence[Leaf]):
    """Array arguments of one call as paths and content numbers; equal to the tuple of leaves.

    Args:
        paths: Python expression of each.
        numbers: Numbers of their contents.
        contents: Table of the numbers.
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
        """Return `numbers` (each leaf's row in `contents`) as an array, for comparing many calls.

        For two calls, comparing `numbers` is faster.
        """
        return self._in_arrays().numbers

    @property
    def shapes(self) -> Numbers:
        """Return a number for each leaf's shape, equal for equal shapes; numbered by `Contents.shapes`."""
        return self._in_arrays().shapes

    @property
    def place(self) -> int:
        """Return the number in `Contents.places` that all leaves share; -1 if they differ, or without leaves."""
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
        """Replace the leaves' numbers and their table in place, so that the numbers are rows of `contents`."""
        numbers, old = self._columns
        if old is not contents:
            self._columns = tuple([contents.number(old.rows[number]) for number in numbers]), contents

    def take(self, places: Sequence[int]) -> LeafColumns:
        """Return the leaves at these positions, in the order of `places`."""
        numbers, contents = self._columns
        paths = tuple(map(self.paths.__getitem__, places))
        return LeafColumns(paths, tuple(map(numbers.__getitem__, places)), contents)

    def numbers_at(self, paths: tuple[str, ...]) -> tuple[int, ...]:
        """Return the row in `contents` of the leaf at each path; -1 for a path that the call lacks."""
        if paths is self.paths or paths == self.paths:
            return self.numbers
        there = dict(zip(self.paths, self.numbers, strict=True))
        return tuple([there.get(path, -1) for path in paths])

    def array_at(self, paths: tuple[str, ...]) -> Numbers:
        """Return the row in `contents` of the leaf at each path, as an array; -1 for a path that the call lacks."""
        is_same = paths is self.paths or paths == self.paths
        return self.array if is_same else np.array(self.numbers_at(paths), np.int32)

    @staticmethod
    def contents_at(at: int, path: str, calls: Iterable[Sequence[Leaf]]) -> list[Content]:
        """Return the fields of the leaf at `path` in each call that has the path, in the order of the calls.

        Args:
            at: Position to look at first.
            path: Path of the leaf.
            calls: Leaves of each call.
        """
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
        """Return the distinct contents of the leaves (all fields but the path), in any order."""
        numbers, contents = self._columns
        return [contents.rows[number] for number in {*numbers}]

    def mark(self) -> int:
        """Return a hash of paths and contents; equal for equal leaves, even with different Contents tables."""
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
        # Pickled as plain leaves: the numbers mean nothing without their table.
        return tuple, (tuple(self),)

    def __repr__(self) -> str:
        return repr(tuple(self))


def changed_places(numbers: tuple[int, ...], before: tuple[int, ...]) -> list[int]:
    """Return the positions at which two tuples of numbers differ, up to the end of the shorter tuple."""
    return [*compress(count(), map(ne, numbers, before))]


def in_columns(leaves: Sequence[Leaf], *others: Sequence[Leaf]) -> list[LeafColumns]:
    """Return one LeafColumns per call, all numbered by the same Contents table.

    The table is that of `leaves` if there is one. Other LeafColumns are renumbered in place.
    """
    contents = leaves.contents if isinstance(leaves, LeafColumns) else Contents()
    columns: list[LeafColumns] = []
    for of_call in (leaves, *others):
        if not isinstance(of_call, LeafColumns):
            of_call = LeafColumns.of(of_call, contents)
        elif of_call.contents is not contents:
            of_call.rebase(contents)
        columns.append(of_call)
    return columns


_Value = TypeVar("_Value")
FORM = ("path", "dtype", "weak", "given", "committed", "sharding", "devices", "layout", "spread")
Form = tuple[Any, ...]  # what a leaf has of FORM; in a table all but the path
_Shape = tuple[int | str, ...]

_LARGEST = 1 << 63  # sizes that are stored are smaller
_RANKS = 8  # a form's number includes the rank
_MANY = (1 << 16) // _RANKS  # forms in one table, so that their numbers take two bytes


class _Numbers(dict[Form, int]):
    """Numbers of forms. A lookup of a new form gives it the next free number."""

    def __init__(self, forms: list[tuple[_Shape | None, Form]]) -> None:
        self.forms = forms

    def __missing__(self, form: Form) -> int:
        number = self[form] = len(self.forms) * _RANKS
        self.forms.append((None, form))
        return number


class _Table:
    """Table of forms by number. A holder of a number keeps the table alive, so a full table can be replaced.

    A shape with a symbolic size, a very large size or very many sizes is one form of rank 0.
    """

    __slots__ = ("forms", "numbers")

    def __init__(self) -> None:
        self.forms: list[tuple[_Shape | None, Form]] = []
        self.numbers = _Numbers(self.forms)

    def row(self, shape: _Shape, form: Form) -> tuple[int, ...]:
        """Return the numbers that encode one leaf: one number for its form and rank, then its sizes.

        If the form includes the shape, return only the form's number.
        """
        if len(shape) < _RANKS and all(isinstance(size, int) and size < _LARGEST for size in shape):
            return (self.numbers[form] + len(shape), *cast("tuple[int, ...]", shape))
        number = self.numbers.get((shape, form))
        if number is None:
            number = self.numbers[shape, form] = len(self.forms) * _RANKS
            self.forms.append((shape, form))
        return (number,)


class _Rows(dict[int, tuple[int, ...]]):
    """Packed numbers of each content, by content number; computed from a `_Table` at the first lookup."""

    def __init__(self, contents: Contents, table: _Table) -> None:
        self.contents = contents
        self._table = table

    def __missing__(self, number: int) -> tuple[int, ...]:
        content = self.contents.rows[number]
        row = self[number] = self._table.row(content.shape, content[1:])
        return row


class Leaves(Sequence[Leaf]):
    """Array arguments of one call, created on access from packed bytes; equal to the tuple of leaves."""

    __slots__ = ("_data", "_paths", "_table")

    def __init__(self, paths: tuple[str, ...], data: bytes, table: _Table) -> None:
        self._paths = paths
        self._data = data
        self._table = table

    def forms(self) -> Iterator[tuple[Form, _Shape]]:
        """Yield each leaf as (form, shape). A form is a tuple of all fields but the shape."""
        numbers = _unpacked(self._data)
        forms, at = self._table.forms, 0
        for path in self._paths:
            number = numbers[at]
            shape, form = forms[number // _RANKS]
            rank = number % _RANKS
            at += 1
            yield (path, *form), tuple(numbers[at : at + rank]) if shape is None else shape
            at += rank

    def __iter__(self) -> Iterator[Leaf]:
        for (path, *rest), shape in self.forms():
            yield Leaf(path, shape, *rest)

    def __len__(self) -> int:
        return len(self._paths)

    @overload
    def __getitem__(self, index: int) -> Leaf: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Leaf, ...]: ...
    def __getitem__(self, index: int | slice) -> Leaf | tuple[Leaf, ...]:
        return tuple(self)[index]

    def __eq__(self, other: object) -> bool:
        # Numbers of one table are equal only for equal leaves.
        if isinstance(other, Leaves) and other._table is self._table:
            return other._paths == self._paths and other._data == self._data
        return tuple(self) == tuple(cast("Sequence[Leaf]", other)) if isinstance(other, tuple | Leaves) else False

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __add__(self, other: Sequence[Leaf]) -> tuple[Leaf, ...]:
        return (*self, *other)

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)

    def __repr__(self) -> str:
        return repr(tuple(self))


def forms_of(leaves: Sequence[Leaf]) -> Iterator[tuple[Form, _Shape]]:
    """Yield each leaf as (form, shape), without creating a Leaf for packed leaves."""
    return leaves.forms() if isinstance(leaves, Leaves) else ((leaf[:1] + leaf[2:], leaf.shape) for leaf in leaves)


def _unpacked(data: bytes) -> array[int]:
    code = data[-1:]
    numbers = array("H") if code == b"H" else array("I") if code == b"I" else array("q")
    numbers.frombytes(data[:-1])
    return numbers


def _packed(rows: Sequence[Sequence[int]]) -> bytes:
    """Return the numbers of all rows as bytes, in the smallest sufficient integer type; the last byte is its code."""
    for code in "HI":
        try:
            return array(code, chain.from_iterable(rows)).tobytes() + code.encode()
        except OverflowError:
            continue
    return array("q", chain.from_iterable(rows)).tobytes() + b"q"


class Compactor:
    """Compactor that makes equal values one object. It is not thread-safe: the ledger's lock protects it."""

    def __init__(self) -> None:
        self._table = _Table()
        self._rows = _Rows(Contents(), self._table)
        self._values: dict[object, Any] = {}
        self._context: tuple[tuple[Any, ...], tuple[Any, ...]] = ((), ())
        self._call: tuple[Key | None, Key | None, Reason, Reason] = (None, None, Reason("unknown"), Reason("unknown"))

    def event(self, event: Event, total: float) -> Event:
        """Return a copy of an event that shares its values; its `total` becomes `total` if it is 0.

        Consecutive events with one key and one reason share them in their copies.
        """
        # The events of a call follow each other with one key, which is compacted once.
        last, key, last_reason, reason = self._call
        if event.key is not last or event.reason is not last_reason:
            key = event.key if event.key is None else self.key(event.key)
            reason = self.reason(event.reason)
            self._call = (event.key, key, event.reason, reason)
        return Event(
            _text(event.kind), _text(event.function), self.share(event.call_site), event.seconds, reason, event.id,
            event.call, event.start, self.share(event.stack), key, _text(event.thread), _text(event.device),
            event.saved, event.total or total, _text(event.error), _text(event.process), event.count,
            _text(event.program),
        )  # fmt: skip

    def key(self, key: Key) -> Key:
        leaves = key.leaves
        if leaves and not isinstance(leaves, Leaves):
            leaves = self._leaves(leaves)
        share = self.share
        if key.context is not self._context[0]:  # long, and mostly the same object
            self._context = key.context, share(key.context)
        return Key(
            share(key.function), leaves, key.tree, share(key.statics), share(key.donated), self._context[1],
            share(key.options), share(key.wrapping), key.structure, share(key.grown),
            share(key.guard), share(key.transformations), key.losses,
        )  # fmt: skip

    def _leaves(self, leaves: Sequence[Leaf]) -> Leaves:
        if len(self._table.forms) >= _MANY:
            self._table = _Table()
            self._rows = _Rows(Contents(), self._table)
        if not isinstance(leaves, LeafColumns):
            return Leaves(self.share(tuple([leaf[0] for leaf in leaves])), self._packed(leaves), self._table)
        # Bounded, because new shapes may come without end.
        if leaves.contents is not self._rows.contents or len(self._rows) > _MANY:
            self._rows = _Rows(leaves.contents, self._table)
        rows = [*map(self._rows.__getitem__, leaves.numbers)]
        return Leaves(self.share(leaves.paths), _packed(rows), self._table)

    def _packed(self, leaves: Sequence[Leaf]) -> bytes:
        numbers = self._table.numbers
        try:
            if max([len(leaf[1]) for leaf in leaves]) < _RANKS:
                return _packed([(numbers[leaf[2:]] + len(leaf[1]), *cast("Any", leaf[1])) for leaf in leaves])
        except (TypeError, OverflowError):  # a symbolic dimension, a size that no array can have
            pass
        return _packed([self._table.row(leaf.shape, leaf[2:]) for leaf in leaves])

    def reason(self, reason: Reason) -> Reason:
        return Reason(
            _text(reason.kind), self.share(reason.leaf), self.share(reason.before), self.share(reason.after),
            self.share(reason.fix), self.share(reason.text),
        )  # fmt: skip

    def share(self, value: _Value) -> _Value:
        """Return an equal value seen earlier, or `value` itself if there is none.

        The known values are cleared once they exceed 4096.
        """
        if not value:
            return value
        # Bounded, because texts may differ in each call.
        if len(self._values) > 4096:
            self._values.clear()
        return self._values.setdefault(value, value)


def _text(value: str) -> str:
    # `intern` refuses subclasses of str.
    return intern(value) if type(value) is str else str(value)
