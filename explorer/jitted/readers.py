"""Short ways to read a state that is built as it was: Python written for one structure, and compiled.

A state is walked value by value only where its structure is new (`state.read`). For one that came before there is a
function that looks at the same things in the same order and compares each with what it was, in a line apiece: classes,
labels, how many, constants, which container is which. It gives the arrays, or None where anything is another, which
sends the call the long way. It never decides that something is equal by an address or a memory of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from operator import itemgetter
from types import FunctionType
from typing import Any, cast

import jax.core
import numpy as np

from explorer.jitted.state import (
    Attributes,
    Branch,
    Holder,
    Items,
    Same,
    Tuples,
    constant,
    is_array,
    is_set,
    is_trace_state,
    kind_of,
)
from explorer.runtime.generated import Generated, bulk, never

Reader = Callable[..., tuple[list[Any], Sequence[Any]] | None]
_LARGEST = 50_000  # lines; Python compiles some 200,000 in a second
_PLAIN = (type(None), bool, FunctionType, int, str, bytes, float, complex)


def make_reader(roots: Sequence[object]) -> Reader:
    """A function of the roots that gives the arrays and the holders, as `read` does, if the structure is still this."""
    writer = _ReaderWriter()
    names = [writer.source.local() for _ in roots]
    for name, root in zip(names, roots, strict=True):
        writer.write(root, name)
    if len(writer.source.lines) > _LARGEST or any(isinstance(array, jax.core.Tracer) for array in writer.found):
        return never
    writer.finish()
    return writer.source.function("read_state", names, or_none=True)


class _ReaderWriter:
    def __init__(self) -> None:
        self.source = Generated()
        self.arrays: list[str] = []  # expressions, some of several: `*local`
        self.found: list[Any] = []
        self.holders: list[str] = []
        self.seen: dict[int, str] = {}  # by address, while `alive` keeps each one alive
        self.alive: list[Any] = []

    def write(self, value: object, local: str) -> None:
        """What finds out that the value of a local is built as this one is."""
        kind = kind_of(value)
        if type(value) in _PLAIN:
            self.source.require(self.source.same(local, value))
        elif kind is None:
            self.write_leaf(value, local)
        elif id(value) in self.seen:
            self.source.require(f"{local} is {self.seen[id(value)]}")
        else:
            self.source.require(f"type({local}) is {self.source.bind(type(value))}")
            self.write_container(value, local, kind)

    def write_leaf(self, value: object, local: str) -> None:
        if is_array(value):
            self.arrays.append(local)
            self.found.append(value)
            return
        cls = self.source.bind(type(value))
        same = constant(value)
        if is_trace_state(type(value)):
            self.source.require(f"type({local}) is {cls}")
        elif isinstance(same, Same) or (
            type(value).__eq__ is object.__eq__ and type(value).__hash__ is object.__hash__
        ):
            self.source.require(f"{local} is {self.source.bind(value)}")
        else:
            # Also where it is the same object: a set or an object of the user's may have changed.
            self.source.require(f"{self.source.bind(_SameAs(type(value), same))}({local})")

    def write_container(self, value: Any, local: str, kind: Holder | Branch) -> None:
        if isinstance(kind, Holder):
            self.seen[id(value)] = local
            self.alive.append(value)
            self.holders.append(local)
        cls = cast("type[object]", type(value))
        if isinstance(kind, Attributes):
            self.write_attributes(value, local, kind)
        elif cls is dict:
            self.source.require(f"len({local}) == {len(value)}")
            self.write_entries(value, local, *kind.open(value))
        elif cls is list or isinstance(kind, Tuples):
            self.source.require(f"len({local}) == {len(value)}")
            self.write_items(value, local)
        else:
            form, items = kind.open(value)
            now, inner = self.source.local(), self.source.local()
            self.source.add(f"{now}, {inner} = {self.source.bind(kind.open)}({local})")
            is_range = isinstance(kind, Items)
            self.source.require(f"len({inner}) == {len(items)}" if is_range else f"{now} == {self.source.bind(form)}")
            self.write_items(items, inner)

    def write_attributes(self, value: object, local: str, kind: Attributes) -> None:
        labels, items = kind.open(value)
        entries = vars(value) if kind.has_dict else {}
        in_slots = {name: slot for name, slot in kind.slots.items() if name not in entries}
        attributes = self.source.local()
        if kind.has_dict:
            self.source.add(f"{attributes} = {local}.__dict__")
            self.source.require(f"len({attributes}) == {len(entries)}")
        for name, slot in in_slots.items():
            if name not in labels:
                self.source.require(f"not {self.source.bind(is_set)}({self.source.bind(slot)}, {local})")
        if not set(in_slots) & set(labels):
            self.write_entries(entries, attributes, labels, items)
            return
        for label, item in zip(labels, items, strict=True):
            inner = self.source.local()
            slot = in_slots.get(label)
            got = (
                f"{attributes}[{self.source.key(label)}]"
                if slot is None
                else f"{self.source.bind(slot.__get__)}({local})"
            )
            self.source.add(f"{inner} = {got}")
            self.write(item, inner)

    def write_entries(self, entries: Any, local: str, labels: Sequence[Any], items: Collection[Any]) -> None:
        """Of a dict that is known to have as many keys: if each of these is there, there is no other."""
        if len(labels) > 1 and all(map(is_array, items)):
            self.arrays.append(f"*{self.source.bind(itemgetter(*labels))}({local})")
            self.found += items
            return
        for label, item in zip(labels, items, strict=True):
            inner = self.source.local()
            self.source.add(f"{inner} = {local}[{self.source.key(label)}]")
            self.write(item, inner)

    def write_items(self, items: Collection[Any], local: str) -> None:
        """Of what is iterable, and known to have as many."""
        if items and all(map(is_array, items)):
            self.arrays.append(f"*{local}")
            self.found += items
        elif items:
            inner = [self.source.local() for _ in items]
            self.source.add(f"{bulk(inner)} = {local}")
            for item, name in zip(items, inner, strict=True):
                self.write(item, name)

    def finish(self) -> None:
        classes = Counter(map(type, self.alive))
        twins = [name for name, value in zip(self.holders, self.alive, strict=True) if classes[type(value)] > 1]
        if twins:  # containers that were two are two
            self.source.require(f"len({{*map(id, {bulk(twins)})}}) == {len(twins)}")
        self.source.add(f"arrays = [{', '.join(self.arrays)}]")
        types = frozenset(map(type, self.found))
        if any(issubclass(cls, np.ndarray) for cls in types):  # of texts it would be no array
            self.source.require(f"all(map({self.source.bind(is_array)}, arrays))")
        elif types:
            self.source.require(f"{self.source.bind(types)}.issuperset(map(type, arrays))")
        self.source.add(f"return arrays, {bulk(self.holders)}")


class _SameAs:
    """Whether a value equals the constant that was there, as the key of a structure would."""

    def __init__(self, cls: type[object], same: Any) -> None:
        self.cls, self.same, self.hash = cls, same, hash(same)

    def __call__(self, value: object) -> bool:
        now = constant(value) if type(value) is self.cls else None
        return now is not None and now == self.same and hash(now) == self.hash
