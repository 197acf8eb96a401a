"""One trace: traced values go into the user's own containers, the function runs, and all is put back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from explorer.jitted.kinds import Branch, Holder, Labels, is_array, is_trace_state, kind_of
from explorer.jitted.plan import Input, Mark, New, Old, Output, Plan, RebuiltBranch, Write


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
    """State with traced values in place of its arrays, until `restore`.

    Args:
        arrays: The traced values, in the order of a `Reading`.
    """

    arrays: Iterator[Any]
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
