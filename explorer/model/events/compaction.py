"""Keys as they are held: what repeats is one object, and array arguments are bytes, so that 100,000 events fit.

A leaf is split into its sizes and everything else, its *form*. Forms repeat from call to call even where every size is
new, so a call's leaves are a few numbers each: that of the form, then the sizes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import chain
from sys import intern
from typing import Any, TypeVar, cast, overload

from explorer.model.events.event import Event, Reason
from explorer.model.events.key import Key, Leaf
from explorer.model.events.leaves import Contents, LeafColumns

_Value = TypeVar("_Value")
FORM = ("path", "dtype", "weak", "given", "committed", "sharding", "devices", "layout", "spread")
Form = tuple[Any, ...]  # what a leaf has of FORM; in a table all but the path
_Shape = tuple[int | str, ...]

_LARGEST = 1 << 63  # sizes that are stored are smaller
_RANKS = 8  # a form's number has room for the rank beside it
_MANY = (1 << 16) // _RANKS  # forms in one table, so that their numbers take two bytes


class _Numbers(dict[Form, int]):
    """Each new form gets the next number."""

    def __init__(self, forms: list[tuple[_Shape | None, Form]]) -> None:
        self.forms = forms

    def __missing__(self, form: Form) -> int:
        number = self[form] = len(self.forms) * _RANKS
        self.forms.append((None, form))
        return number


class _Table:
    """Forms by number. Whoever has a number holds the table, so a full one can be left for a new one.

    What has a size that is no number, or too large a one or too many of them, is a form with its shape, of rank 0.
    """

    __slots__ = ("forms", "numbers")

    def __init__(self) -> None:
        self.forms: list[tuple[_Shape | None, Form]] = []
        self.numbers = _Numbers(self.forms)

    def row(self, shape: _Shape, form: Form) -> tuple[int, ...]:
        """The numbers that stand for a leaf."""
        if len(shape) < _RANKS and all(isinstance(size, int) and size < _LARGEST for size in shape):
            return (self.numbers[form] + len(shape), *cast("tuple[int, ...]", shape))
        number = self.numbers.get((shape, form))
        if number is None:
            number = self.numbers[shape, form] = len(self.forms) * _RANKS
            self.forms.append((shape, form))
        return (number,)


class _Rows(dict[int, tuple[int, ...]]):
    """The numbers that stand for contents in a table, by the contents' number; a new one gets them when looked up."""

    def __init__(self, contents: Contents, table: _Table) -> None:
        self.contents = contents
        self._table = table

    def __missing__(self, number: int) -> tuple[int, ...]:
        content = self.contents.rows[number]
        row = self[number] = self._table.row(content.shape, content[1:])
        return row


class Leaves(Sequence[Leaf]):
    """The array arguments of one call, made when they are looked at; equal to the tuple of them."""

    __slots__ = ("_data", "_paths", "_table")

    def __init__(self, paths: tuple[str, ...], data: bytes, table: _Table) -> None:
        self._paths = paths
        self._data = data
        self._table = table

    def forms(self) -> Iterator[tuple[Form, _Shape]]:
        """Each leaf as its form and its shape."""
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
    """Each leaf as its form and its shape, without making a leaf where they are packed."""
    return leaves.forms() if isinstance(leaves, Leaves) else ((leaf[:1] + leaf[2:], leaf.shape) for leaf in leaves)


def _unpacked(data: bytes) -> array[int]:
    code = data[-1:]
    numbers = array("H") if code == b"H" else array("I") if code == b"I" else array("q")
    numbers.frombytes(data[:-1])
    return numbers


def _packed(rows: Sequence[Sequence[int]]) -> bytes:
    """Numbers in as few bytes each as the largest takes, and behind them which."""
    for code in "HI":
        try:
            return array(code, chain.from_iterable(rows)).tobytes() + code.encode()
        except OverflowError:
            continue
    return array("q", chain.from_iterable(rows)).tobytes() + b"q"


class Compactor:
    """Makes equal values one object. Not safe for threads: the ledger's lock is around it."""

    def __init__(self) -> None:
        self._table = _Table()
        self._rows = _Rows(Contents(), self._table)
        self._values: dict[object, Any] = {}
        self._context: tuple[tuple[Any, ...], tuple[Any, ...]] = ((), ())
        self._call: tuple[Key | None, Key | None, Reason, Reason] = (None, None, Reason("unknown"), Reason("unknown"))

    def event(self, event: Event, total: float) -> Event:
        """The same event, with `total` where it had none. Events of one call share a key and a reason."""
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
            share(key.guard),
        )  # fmt: skip

    def _leaves(self, leaves: Sequence[Leaf]) -> Leaves:
        if len(self._table.forms) >= _MANY:
            self._table = _Table()
            self._rows = _Rows(Contents(), self._table)
        if not isinstance(leaves, LeafColumns):
            return Leaves(self.share(tuple([leaf[0] for leaf in leaves])), self._packed(leaves), self._table)
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
        """The first value that was equal to this one, if that is not too long ago."""
        if not value:
            return value
        if len(self._values) > 4096:
            self._values.clear()
        return self._values.setdefault(value, value)


def _text(value: str) -> str:
    return intern(value) if type(value) is str else str(value)
