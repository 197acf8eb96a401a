"""One trace of a function with captured state, and the generated functions that read and write that state.

Traced values are placed into the user's own containers, the function runs, and everything is restored. A `Plan` holds
what the function changed.

A state is walked value by value only if its structure is new (`state.read`). For a structure that came before, a
generated function checks the same things in the same order, one line each: classes, labels, counts, constants, and
which container is which. It returns the arrays, or None on any difference, which sends the call to `state.read`.
Values are never compared by address or by a cached result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from types import FunctionType
from typing import Any, cast

import jax
import jax.core
import numpy as np

from explorer.jitted.state import (
    Attributes,
    Branch,
    Holder,
    Items,
    Labels,
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
_MAX_LINES = 50_000  # Python compiles about 200,000 lines per second
_PLAIN = (type(None), bool, FunctionType, int, str, bytes, float, complex)


class Structure:
    """All of a state except its arrays. Structures are compared by identity, which is fast in each call."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names  # paths of the arrays below their root, shown in the traced program
        self.reader: Reader = never  # until the structure repeats
        self.times_read = 0  # by `state.read`


@dataclass(eq=False)
class Plan:
    """Function that writes a call's outputs into the state, and the index and kind of each holder that it changes."""

    written: list[tuple[int, Holder]]
    write: Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], None]  # of holders, inputs and outputs


class Captured:
    __slots__ = ("arrays", "form")

    def __init__(self, form: Structure | Plan, arrays: Any) -> None:
        self.form, self.arrays = form, arrays


class _Path(str):
    """A key that JAX prints without quotes."""


def _with_names(captured: Captured) -> tuple[list[tuple[Any, Any]], Structure | Plan]:
    names = captured.form.names if isinstance(captured.form, Structure) else map(str, range(len(captured.arrays)))
    return [(_Path(name), array) for name, array in zip(names, captured.arrays, strict=True)], captured.form


# Each call flattens and unflattens one: `attrgetter` and the class itself run in C.
jax.tree_util.register_pytree_with_keys(Captured, _with_names, Captured, attrgetter("arrays", "form"))


@dataclass
class _Replaced:
    value: Any
    kind: Holder
    path: str
    labels: Labels
    before: tuple[Any, ...]
    placed: tuple[Any, ...] = ()

    def difference(self) -> tuple[tuple[int, ...], bool]:
        """Return the positions of items that the function replaced, and True if the labels are the same.

        If the labels differ, all positions are returned.
        """
        labels, items = self.kind.open(self.value)
        if tuple(labels) != tuple(self.labels):
            return tuple(range(len(labels))), False
        pairs = enumerate(zip(items, self.placed, strict=True))
        return tuple(i for i, (now, placed) in pairs if now is not placed), True


@dataclass
class Trial:
    """State with traced values in place of its arrays, until `restore`."""

    arrays: Iterator[Any]  # the traced values, in the order of `state.read`
    replaced: list[_Replaced] = field(default_factory=list[_Replaced])
    index: dict[int, int] = field(default_factory=dict[int, int])  # by address; `replaced` keeps each value alive
    leaves: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])  # path, and array or constant
    inputs: dict[int, int] = field(default_factory=dict[int, int])
    traced: list[Any] = field(default_factory=list[Any])

    def place(self, value: object, path: str) -> Any:
        kind = kind_of(value)
        if kind is None:
            return self.place_leaf(value, path)
        if isinstance(kind, Branch):
            form, items = kind.open(value)
            new = [self.place(item, f"{path}[{i}]") for i, item in enumerate(items)]
            same = all(old is traced for old, traced in zip(items, new, strict=True))
            return value if same else kind.build(type(value), form, new)
        if id(value) in self.index:
            return value
        # Before its items, which may contain it.
        self.index[id(value)] = len(self.replaced)
        labels, items = kind.open(value)
        replaced = _Replaced(value, kind, path, labels, tuple(items))
        self.replaced.append(replaced)
        replaced.placed = tuple(
            self.place(item, path + kind.path(label)) for label, item in zip(labels, replaced.before, strict=True)
        )
        kind.fill(value, labels, replaced.placed)
        return value

    def place_leaf(self, value: object, path: str) -> Any:
        if is_trace_state(type(value)):
            return type(value)()
        if not is_array(value):
            self.leaves.append((path, value))
            return value
        traced = next(self.arrays)
        self.inputs[id(traced)] = len(self.traced)
        self.traced.append(traced)
        self.leaves.append((path, traced))
        return traced

    def restore(self) -> None:
        for replaced in self.replaced:
            replaced.kind.fill(replaced.value, replaced.labels, replaced.before)

    def changes(self, roots: Sequence[Any]) -> tuple[Plan, list[Any], list[str]]:
        """Return the plan of the function's changes, its traced outputs, and the paths of changed holders outside the
        roots.
        """
        reached = self.reach(roots)
        writer = _PlanWriter(self)
        plan = writer.plan([i for i in range(len(self.replaced)) if i in reached])
        others = [replaced for i, replaced in enumerate(self.replaced) if i not in reached]
        return plan, writer.outputs, [other.path for other in others if other.difference() != ((), True)]

    def reach(self, roots: Sequence[Any]) -> set[int]:
        """Return the indices in `replaced` of holders that belong to the roots, before or after the function ran."""
        reached: set[int] = set()
        passed: set[int] = set()
        todo = list(roots)
        while todo:
            value = todo.pop()
            kind = kind_of(value)
            if kind is None or id(value) in passed:
                continue
            if isinstance(kind, Holder):
                # Only holders can contain themselves.
                passed.add(id(value))
                if id(value) in self.index:
                    reached.add(self.index[id(value)])
                    todo += self.replaced[self.index[id(value)]].placed
            todo += kind.open(value)[1]
        return reached


class _PlanWriter:
    """Generator of a plan's function: lines for each new value, then for each write."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.source = Generated()
        self.outputs: list[Any] = []
        self.numbers: dict[int, int] = {}  # index of each output, by address
        self.new: dict[int, tuple[str, Any]] = {}  # local of each holder that the function made, by address

    def plan(self, indices: Sequence[int]) -> Plan:
        changes = [(i, self.trial.replaced[i], *self.trial.replaced[i].difference()) for i in indices]
        changes = [change for change in changes if change[2] or not change[3]]
        # All new values are made before the first write, so that an error there changes nothing.
        made: list[list[str]] = []
        for _, replaced, positions, _ in changes:
            items = tuple(replaced.kind.open(replaced.value)[1])
            made.append([self.value(items[position]) for position in positions])
        for (index, replaced, positions, labels_stay), values in zip(changes, made, strict=True):
            holder = self.source.named(f"holders[{index}]")
            labels = _fixed(replaced.kind.open(replaced.value)[0])
            if labels_stay:
                self.write(holder, replaced, labels, positions, values)
            else:
                self.fill(holder, replaced.kind, labels, bulk(values))
        written = [(index, replaced.kind) for index, replaced, *_ in changes]
        return Plan(
            written, self.source.function("write_state", ["holders", "inputs", "outputs"]) if written else never
        )

    def value(self, value: object) -> str:
        """Return a source expression for a value, after adding the lines that make it in each call."""
        kind = kind_of(value)
        if kind is None:
            return self.leaf(value)
        if isinstance(kind, Branch):
            return self.made_branch(value, kind)
        if id(value) in self.trial.index:
            return f"holders[{self.trial.index[id(value)]}]"
        return self.new[id(value)][0] if id(value) in self.new else self.new_holder(value, kind)

    def leaf(self, value: object) -> str:
        if is_trace_state(type(value)):
            return self.source.named(f"{self.source.bind(type(value))}()")
        if not is_array(value):
            return self.source.bind(value)
        if id(value) in self.trial.inputs:
            return f"inputs[{self.trial.inputs[id(value)]}]"
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.outputs)
            self.outputs.append(value)
        return f"outputs[{self.numbers[id(value)]}]"

    def made_branch(self, value: object, kind: Branch) -> str:
        form, inside = kind.open(value)
        cls = cast("type[Any]", type(value))
        items = bulk([self.value(item) for item in inside])
        if cls is tuple:
            return self.source.named(items)
        bound = self.source.bind(cls)
        if isinstance(kind, Tuples):
            return self.source.named(f"{self.source.bind(tuple.__new__)}({bound}, {items})")
        return self.source.named(f"{self.source.bind(kind.build)}({bound}, {self.source.bind(form)}, {items})")

    def new_holder(self, value: object, kind: Holder) -> str:
        labels, items = kind.open(value)
        holder = self.source.named(f"{self.source.bind(kind.empty)}({self.source.bind(kind.empty(value))})")
        # Its name is stored before its items are written, because they may contain it.
        self.new[id(value)] = holder, value
        self.fill(holder, kind, _fixed(labels), bulk([self.value(item) for item in items]))
        return holder

    def fill(self, holder: str, kind: Holder, labels: Labels, items: str) -> None:
        self.source.add(f"{self.source.bind(kind.fill)}({holder}, {self.source.bind(labels)}, {items})")

    def write(
        self, holder: str, replaced: _Replaced, labels: Labels, positions: Sequence[int], values: Sequence[str]
    ) -> None:
        """Add lines that write values into a holder at these positions. Its class and labels are those of the trace."""
        kind, cls = replaced.kind, cast("type[Any]", type(replaced.value))
        if cls is list and len(values) == len(labels):
            outputs = [f"outputs[{i}]" for i in range(len(self.outputs))]
            self.source.add(f"{holder}[:] = {'outputs' if values == outputs else bulk(values)}")
        elif cls in (list, dict):
            for position, value in zip(positions, values, strict=True):
                self.source.add(f"{holder}[{self.source.key(labels[position])}] = {value}")
        elif isinstance(kind, Attributes):
            self.write_attributes(holder, kind, [labels[i] for i in positions], values)
        else:
            items = self.source.named(f"[*{self.source.bind(kind.open)}({holder})[1]]")
            for position, value in zip(positions, values, strict=True):
                self.source.add(f"{items}[{position}] = {value}")
            self.fill(holder, kind, labels, items)

    def write_attributes(self, holder: str, kind: Attributes, names: Sequence[str], values: Sequence[str]) -> None:
        attributes = self.source.named(f"{holder}.__dict__") if set(names) - set(kind.slots) else ""
        for name, value in zip(names, values, strict=True):
            slot = kind.slots.get(name)
            if slot is None:
                self.source.add(f"{attributes}[{self.source.key(name)}] = {value}")
            else:
                self.source.add(f"{self.source.bind(slot.__set__)}({holder}, {value})")


def _fixed(labels: Labels) -> Labels:
    return labels if isinstance(labels, range) else tuple(labels)


def make_reader(roots: Sequence[object]) -> Reader:
    """Return a function of the roots that returns arrays and holders as `read` does, or None for another structure."""
    writer = _ReaderWriter()
    names = [writer.source.local() for _ in roots]
    for name, root in zip(names, roots, strict=True):
        writer.write(root, name)
    # A reader requires the arrays' classes, and a trace's tracers come once.
    if len(writer.source.lines) > _MAX_LINES or any(isinstance(array, jax.core.Tracer) for array in writer.found):
        return never
    writer.finish()
    return writer.source.function("read_state", names, or_none=True)


class _ReaderWriter:
    def __init__(self) -> None:
        self.source = Generated()
        self.arrays: list[str] = []  # expressions, some of several: `*local`
        self.found: list[Any] = []
        self.holders: list[str] = []
        self.seen: dict[int, str] = {}  # by address; `alive` keeps each value alive
        self.alive: list[Any] = []

    def write(self, value: object, local: str) -> None:
        """Add lines that check that a local variable's value has the structure of `value`, and note its arrays and
        holders.
        """
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
            # Also if it is the same object: a set or an object of the user's may have changed.
            self.source.require(f"{self.source.bind(_same_as(type(value), same))}({local})")

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
            got = f"{attributes}[{self.source.key(label)}]"
            if label in in_slots:
                got = f"{self.source.bind(in_slots[label].__get__)}({local})"
            self.write(item, self.source.named(got))

    def write_entries(self, entries: Any, local: str, labels: Sequence[Any], items: Collection[Any]) -> None:
        """Add checks of a dict's entries. The number of keys is already checked, so no other key can exist."""
        if len(labels) > 1 and all(map(is_array, items)):
            self.arrays.append(f"*{self.source.bind(itemgetter(*labels))}({local})")
            self.found += items
            return
        for label, item in zip(labels, items, strict=True):
            self.write(item, self.source.named(f"{local}[{self.source.key(label)}]"))

    def write_items(self, items: Collection[Any], local: str) -> None:
        """Add checks of an iterable's items. Its length is already checked."""
        if items and all(map(is_array, items)):
            self.arrays.append(f"*{local}")
            self.found += items
        elif items:
            for item, name in zip(items, self.source.elements(local, len(items)), strict=True):
                self.write(item, name)

    def finish(self) -> None:
        classes = Counter(map(type, self.alive))
        # The checks compare classes: only containers of one class could have become one.
        twins = [name for name, value in zip(self.holders, self.alive, strict=True) if classes[type(value)] > 1]
        if twins:  # containers that were distinct must still be distinct
            self.source.require(f"len({{*map(id, {bulk(twins)})}}) == {len(twins)}")
        self.source.add(f"arrays = [{', '.join(self.arrays)}]")
        types = frozenset(map(type, self.found))
        if any(issubclass(cls, np.ndarray) for cls in types):  # a NumPy array of texts isn't an array to JAX
            self.source.require(f"all(map({self.source.bind(is_array)}, arrays))")
        elif types:
            self.source.require(f"{self.source.bind(types)}.issuperset(map(type, arrays))")
        self.source.add(f"return arrays, {bulk(self.holders)}")


def _same_as(cls: type[object], same: Any) -> Callable[[object], bool]:
    """Return a predicate: True for a value of class `cls` whose key (`state.constant`) equals `same`."""
    hashed = hash(same)

    def is_same(value: object) -> bool:
        now = constant(value) if type(value) is cls else None
        return now is not None and now == same and hash(now) == hashed

    return is_same
