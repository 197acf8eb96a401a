"""One trace of a function with captured state, and how later calls write what it left there.

Traced values go into the user's own containers, the function runs, and all is put back. What it changed is a `Plan`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, cast

import jax

from explorer.jitted.readers import Reader
from explorer.jitted.state import Attributes, Branch, Holder, Labels, Tuples, is_array, is_trace_state, kind_of
from explorer.runtime.generated import Generated, bulk


@dataclass
class _Replaced:
    """A holder as it was, and as the trace found it."""

    value: Any
    kind: Holder
    path: str
    labels: Labels
    before: tuple[Any, ...]
    placed: tuple[Any, ...] = ()


@dataclass
class Trial:
    """State with traced values in place of its arrays, until `restore`."""

    arrays: Iterator[Any]  # the traced values, in the order of a `Reading`
    replaced: list[_Replaced] = field(default_factory=list[_Replaced])
    index: dict[int, int] = field(default_factory=dict[int, int])  # by address: `replaced` keeps each one alive
    leaves: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])  # by path: an array or a constant
    inputs: dict[int, int] = field(default_factory=dict[int, int])
    traced: list[Any] = field(default_factory=list[Any])

    def place(self, value: object, path: str) -> Any:
        """The value with traced arrays: itself, if it can be changed."""
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
        """What the function did: how to write it, the traced values for that, and what it changed outside the roots."""
        survey = _Survey(self)
        reached = survey.reach(roots)
        writes = [w for i, replaced in enumerate(self.replaced) if i in reached and (w := survey.write(i, replaced))]
        outside = [
            h.path for i, h in enumerate(self.replaced) if i not in reached and survey.difference(h) != ((), True)
        ]
        return Plan(writes, len(survey.outputs)), survey.outputs, outside


class _Survey:
    """Values into templates, at the end of a trace."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.outputs: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.new: dict[int, tuple[New, Any]] = {}

    def reach(self, roots: Sequence[Any]) -> set[int]:
        """The holders that belong to the roots, before or after."""
        reached: set[int] = set()
        passed: set[int] = set()
        todo = list(roots)
        while todo:
            value = todo.pop()
            kind = kind_of(value)
            if kind is None or id(value) in passed:
                continue
            if isinstance(kind, Holder):
                passed.add(id(value))
                if id(value) in self.trial.index:
                    reached.add(self.trial.index[id(value)])
                    todo += self.trial.replaced[self.trial.index[id(value)]].placed
            todo += kind.open(value)[1]
        return reached

    def difference(self, replaced: _Replaced) -> tuple[tuple[int, ...], bool]:
        """The positions of what changed, and whether the labels are as they were."""
        labels, items = replaced.kind.open(replaced.value)
        if tuple(labels) != tuple(replaced.labels):
            return tuple(range(len(labels))), False
        pairs = enumerate(zip(items, replaced.placed, strict=True))
        return tuple(i for i, (now, placed) in pairs if now is not placed), True

    def write(self, index: int, replaced: _Replaced) -> Write | None:
        changed, same_labels = self.difference(replaced)
        if not changed and same_labels:
            return None
        labels, items = replaced.kind.open(replaced.value)
        items = tuple(items)
        return Write(
            index,
            replaced.kind,
            cast("type[Any]", type(replaced.value)),
            labels if isinstance(labels, range) else tuple(labels),
            tuple(self.template(items[i]) for i in changed),
            changed,
            same_labels,
        )

    def template(self, value: object) -> Any:
        kind = kind_of(value)
        if kind is None:
            return self.leaf(value)
        if isinstance(kind, Branch):
            form, items = kind.open(value)
            return RebuiltBranch(kind, type(value), form, tuple(map(self.template, items)))
        if id(value) in self.trial.index:
            return Old(self.trial.index[id(value)])
        if id(value) not in self.new:
            labels, items = kind.open(value)
            hollow, labels = kind.empty(value), labels if isinstance(labels, range) else tuple(labels)
            new = New(len(self.new), kind, hollow, labels)
            self.new[id(value)] = new, value
            new.items = tuple(map(self.template, items))
        return self.new[id(value)][0]

    def leaf(self, value: object) -> Any:
        if is_trace_state(type(value)):
            return Mark(type(value))
        if not is_array(value):
            return value
        if id(value) in self.trial.inputs:
            return Input(self.trial.inputs[id(value)])
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.outputs)
            self.outputs.append(value)
        return Output(self.numbers[id(value)])


@dataclass(eq=False)
class Write:
    """One holder, and what it will hold."""

    holder: int  # which, in the order of reading
    kind: Holder  # (kind, cls) of that holder
    cls: type[Any]
    labels: Labels  # of all that it will hold
    items: tuple[Any, ...]  # templates, of the positions that changed
    positions: tuple[int, ...]  # those
    labels_stay: bool  # whether it has these labels already


class Plan:
    """How to write a call's outputs into the state it was read from."""

    def __init__(self, writes: Sequence[Write], size: int) -> None:
        self.writes = writes
        self.size = size  # how many outputs
        self._write: Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], None] | None = None

    def write(self, holders: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Write. All that is new is made before the first is written: what fails then has changed nothing."""
        if self._write is None:
            self._write = _PlanWriter(self).function()
        self._write(holders, inputs, outputs)


# Templates: what stands for a value in a plan. Anything that is none of these stands for itself.


@dataclass(frozen=True)
class Input:
    index: int


@dataclass(frozen=True)
class Output:
    index: int


@dataclass(frozen=True)
class Old:
    """A holder that was there before the call."""

    index: int


@dataclass(eq=False)
class New:
    """A holder that the function made; each call makes another."""

    number: int
    kind: Holder
    hollow: Any
    labels: Labels = ()
    items: tuple[Any, ...] = ()


@dataclass(frozen=True)
class RebuiltBranch:
    kind: Branch
    cls: type[Any]
    form: Any
    items: tuple[Any, ...]


@dataclass(frozen=True)
class Mark:
    cls: type[Any]


class _PlanWriter:
    """A plan as a Python function: a line for each value that is made, then one for each that is written."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.source = Generated()
        self.new: dict[int, str] = {}

    def function(self) -> Callable[..., None]:
        made = [[self.value(item) for item in write.items] for write in self.plan.writes]
        for write, values in zip(self.plan.writes, made, strict=True):
            holder = self.source.local()
            self.source.add(f"{holder} = holders[{write.holder}]")
            self.write(holder, write, values)
        return self.source.function("write_state", ["holders", "inputs", "outputs"])

    def value(self, template: Any) -> str:
        """An expression for what stands for a template; what it needs is made before."""
        match template:
            case Output():
                return f"outputs[{template.index}]"
            case Input():
                return f"inputs[{template.index}]"
            case Old():
                return f"holders[{template.index}]"
            case RebuiltBranch():
                return self.made(self.rebuilt(template))
            case Mark():
                return self.made(f"{self.source.bind(template.cls)}()")
            case New():
                return self.new.get(template.number) or self.new_holder(template)
            case _:
                return self.source.bind(template)

    def made(self, expression: str) -> str:
        local = self.source.local()
        self.source.add(f"{local} = {expression}")
        return local

    def rebuilt(self, template: RebuiltBranch) -> str:
        items, cls = bulk([self.value(item) for item in template.items]), self.source.bind(template.cls)
        if template.cls is tuple:
            return items
        if isinstance(template.kind, Tuples):
            return f"{self.source.bind(tuple.__new__)}({cls}, {items})"
        return f"{self.source.bind(template.kind.build)}({cls}, {self.source.bind(template.form)}, {items})"

    def new_holder(self, template: New) -> str:
        empty, hollow = self.source.bind(template.kind.empty), self.source.bind(template.hollow)
        # Known by its name before its items are: they may hold it.
        self.new[template.number] = holder = self.made(f"{empty}({hollow})")
        values = [self.value(item) for item in template.items]
        self.fill(holder, template.kind, template.labels, values)
        return holder

    def fill(self, holder: str, kind: Holder, labels: Labels, values: Sequence[str]) -> None:
        self.source.add(f"{self.source.bind(kind.fill)}({holder}, {self.source.bind(labels)}, {bulk(values)})")

    def write(self, holder: str, write: Write, values: Sequence[str]) -> None:
        """Put some values into a holder. The structure was compared with the trace's: it is of the class it was."""
        outputs = [f"outputs[{i}]" for i in range(self.plan.size)]
        if not write.labels_stay:
            self.fill(holder, write.kind, write.labels, values)
        elif write.cls is list and len(values) == len(write.labels):
            self.source.add(f"{holder}[:] = {'outputs' if values == outputs else bulk(values)}")
        elif write.cls in (list, dict):
            for position, value in zip(write.positions, values, strict=True):
                self.source.add(f"{holder}[{self.source.key(write.labels[position])}] = {value}")
        elif isinstance(write.kind, Attributes):
            self.write_attributes(holder, write.kind, [write.labels[i] for i in write.positions], values)
        else:
            self.write_some(holder, write, values)

    def write_attributes(self, holder: str, kind: Attributes, names: Sequence[str], values: Sequence[str]) -> None:
        attributes = self.source.local()
        if set(names) - set(kind.slots):
            self.source.add(f"{attributes} = {holder}.__dict__")
        for name, value in zip(names, values, strict=True):
            slot = kind.slots.get(name)
            is_slot = slot is not None
            place = f"{attributes}[{self.source.key(name)}]"
            self.source.add(f"{self.source.bind(slot.__set__)}({holder}, {value})" if is_slot else f"{place} = {value}")

    def write_some(self, holder: str, write: Write, values: Sequence[str]) -> None:
        items = self.made(f"[*{self.source.bind(write.kind.open)}({holder})[1]]")
        for position, value in zip(write.positions, values, strict=True):
            self.source.add(f"{items}[{position}] = {value}")
        put, labels = self.source.bind(write.kind.put), self.source.bind(write.labels)
        self.source.add(f"{put}({holder}, {labels}, {items})")


class Structure:
    """All of a state but its arrays. Two are equal if they are one, which makes it short to compare at each call."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names  # the arrays' paths below their root, for who looks at the traced program
        self.reader: Reader | None = None
        self.times_read = 0  # the long way


class Captured:
    """A pytree node."""

    __slots__ = ("arrays", "form")

    def __init__(self, form: Structure | Plan, arrays: Any) -> None:
        self.form, self.arrays = form, arrays


class _Path(str):
    """A key that JAX prints as it is."""


def _with_names(captured: Captured) -> tuple[list[tuple[Any, Any]], Structure | Plan]:
    names = captured.form.names if isinstance(captured.form, Structure) else map(str, range(len(captured.arrays)))
    return [(_Path(name), array) for name, array in zip(names, captured.arrays, strict=True)], captured.form


# Each call comes by here twice: what C can do isn't Python.
jax.tree_util.register_pytree_with_keys(Captured, _with_names, Captured, attrgetter("arrays", "form"))
