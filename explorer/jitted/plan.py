"""How a call writes its outputs into the captured state: recorded by a trace, followed by each later call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from explorer.jitted.generated import Generated, bulk
from explorer.jitted.kinds import Attributes, Branch, Holder, Labels, Tuples


@dataclass(eq=False)
class Write:
    """One holder, and what it will hold.

    Args:
        holder: Which, in the order of reading.
        kind, cls: Of that holder.
        labels: Of all that it will hold.
        items: Templates, of the positions that changed.
        positions: Those.
        labels_stay: Whether it has these labels already.
    """

    holder: int
    kind: Holder
    cls: type[Any]
    labels: Labels
    items: tuple[Any, ...]
    positions: tuple[int, ...]
    labels_stay: bool


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
