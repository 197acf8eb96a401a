"""How a call writes its outputs into the captured state: recorded by a trace, followed by each later call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from explorer.jitted.kinds import Branch, Holder, Labels


@dataclass(eq=False)
class Write:
    """One holder, and what it will hold.

    Args:
        holder: Which, in the order of reading.
        labels: Of all that it will hold.
        items: Templates, of the positions that changed.
        positions: Those, or None for all.
        labels_stay: Whether it has these labels already.
    """

    holder: int
    kind: Holder
    labels: Labels
    items: tuple[Any, ...]
    positions: tuple[int, ...] | None
    labels_stay: bool

    def apply(self, holders: Sequence[Any], items: Sequence[Any]) -> None:
        holder = holders[self.holder]
        if self.positions is not None:
            new = list(self.kind.open(holder)[1])
            for position, item in zip(self.positions, items, strict=True):
                new[position] = item
            items = new
        self.kind.fill(holder, self.labels, items)


class Plan:
    """How to write a call's outputs into the state it was read from."""

    def __init__(self, writes: Sequence[Write], size: int) -> None:
        self.writes = writes
        # The usual case, kept short: one container, and all the outputs are what it holds, in order.
        is_whole = len(writes) == 1 and writes[0].positions is None
        self.only = writes[0] if is_whole and writes[0].items == tuple(map(Output, range(size))) else None

    def write(self, holders: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        if self.only is not None:
            write = self.only
            (write.kind.put if write.labels_stay else write.kind.fill)(holders[write.holder], write.labels, outputs)
            return
        instantiation = _Instantiation(inputs, outputs, holders)
        # All is made before the first is written: what fails then has changed nothing.
        instances = [[instantiation.value(item) for item in write.items] for write in self.writes]
        for write, items in zip(self.writes, instances, strict=True):
            write.apply(holders, items)


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


class _Instantiation:
    """Templates into values, for one call."""

    def __init__(self, inputs: Sequence[Any], outputs: Sequence[Any], holders: Sequence[Any]) -> None:
        self.inputs, self.outputs, self.holders = inputs, outputs, holders
        self.new: dict[int, Any] = {}

    def value(self, template: Any) -> Any:
        match template:
            case Output():
                return self.outputs[template.index]
            case Input():
                return self.inputs[template.index]
            case Old():
                return self.holders[template.index]
            case RebuiltBranch():
                return template.kind.build(template.cls, template.form, map(self.value, template.items))
            case Mark():
                return template.cls()
            case New():
                if template.number not in self.new:
                    self.new[template.number] = holder = template.kind.empty(template.hollow)
                    template.kind.fill(holder, template.labels, [self.value(item) for item in template.items])
                return self.new[template.number]
            case _:
                return template
