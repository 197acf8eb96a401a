"""Recorded passes one after the other, each with the rows of the module before and after it.

The rows by key are kept once and updated with each pass, so a walk over all passes costs only what they changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np

from explorer.model.declared import cached_property
from explorer.model.graph import Ints
from explorer.model.passes import Effect, Passes, PassLink
from explorer.model.text_versions import Versions

_NAMES = re.compile(r"%[\w.\-]+|^\s*(?:ROOT )?|/\*index=\d+\*/")
_CALLED = re.compile(r"\b(?:to_apply|calls|body|condition|true_computation|false_computation)=%?([\w.\-]+)")
_SHAPE = re.compile(r"\[([\d,]*)\]")
_BRANCHES = re.compile(r"\b(?:branch_computations|called_computations)=\{([^}]*)\}")


class Program:
    """The rows of all snapshots, as lists.

    Args:
        versions: The recorded lines.
    """

    def __init__(self, versions: Versions) -> None:
        self.versions, self._lines = versions, versions.lines
        self.key: list[int] = versions.key.tolist()
        self.op: list[int] = versions.op.tolist()
        self.op_name = [*map([*versions.ops, ""].__getitem__, self.op)]  # empty for a line without an instruction
        self.type: list[int] = versions.type.tolist()
        self._start: list[int] = versions.operand_start.tolist()
        self._operand: list[int] = versions.operand.tolist()
        self._home: list[int] = versions.computation.tolist()
        self.computation = {name: number for number, name in enumerate(versions.computations)}

    def operands(self, row: int) -> list[int]:
        return self._operand[self._start[row] : self._start[row + 1]]

    def home(self, row: int) -> int:
        return self._home[self.key[row]]

    def attributes(self, row: int) -> str:
        return self._lines[row].partition("), ")[2]

    def called(self, row: int) -> list[int]:
        line = self._lines[row].partition("), ")[2]
        if "=" not in line:
            return []
        names = _CALLED.findall(line)
        for branches in _BRANCHES.findall(line):
            names += (name.strip().lstrip("%") for name in branches.split(","))
        return [self.computation[name] for name in names if name in self.computation]

    @cached_property
    def root_of(self) -> dict[int, int]:
        """Return the row of each computation's root, by computation number.

        If a computation had several roots, the last recorded row counts. A reducer's root never changes.
        """
        return self.roots(row for row, key in enumerate(self.key) if key >= 0)

    def elements(self, row: int) -> int:
        """Return the number of elements of a row's array; 1 if it isn't an array."""
        shape = _SHAPE.search(self.versions.types[self.type[row]])
        return prod(map(int, filter(None, shape[1].split(",")))) if shape else 1

    def roots(self, rows: Iterable[int]) -> dict[int, int]:
        """Return those of `rows` that are the root of a computation, by computation number."""
        roots: dict[int, int] = {}
        for row in rows:
            if self._lines[row].lstrip().startswith("ROOT "):
                roots[self._home[self.key[row]]] = row
        return roots

    def called_root(self, row: int, roots: Mapping[int, int]) -> int:
        """Return the root's row of the first computation that a row calls, or -1 if it isn't in `roots`."""
        called = self.called(row)
        return roots.get(called[0], -1) if called else -1

    def alike(self, row: int, other: int) -> bool:
        """Return True if two rows have the same operation, type and attributes."""
        lines = self.versions.lines
        return self.op[row] == self.op[other] and _NAMES.sub("", lines[row]) == _NAMES.sub("", lines[other])


class RowOfKey:
    """The row of each key in a module: those of a base module, with differences."""

    def __init__(self, base: list[int], different: Mapping[int, int]) -> None:
        self._base, self._different = base, different

    def get(self, key: int, default: int = -1) -> int:
        row = self._different.get(key, self._base[key])
        return row if row >= 0 else default

    def __contains__(self, key: int) -> bool:
        return self.get(key) >= 0


@dataclass(frozen=True, eq=False)
class Change:
    """The effect of one pass, and the links found so far.

    Args:
        program: The rows.
        position: Index among the passes that changed something; -1 for a pass that only renumbered names.
        first, snapshot: Snapshots before and after the pass.
        changed: Rows rewritten in place, before and after.
        dead, born: Rows of removed and new instructions, by key.
        row_before, row_after: Row of every instruction before and after the pass, by key.
        links: Links by the key of the dead or copied instruction.
    """

    program: Program
    position: int
    first: int
    snapshot: int
    changed: tuple[tuple[int, int], ...]
    dead: dict[int, int]
    born: dict[int, int]
    row_before: RowOfKey
    row_after: RowOfKey
    links: dict[int, list[PassLink]] = field(default_factory=dict[int, list[PassLink]])

    @cached_property
    def dead_roots(self) -> Mapping[int, int]:
        return self.program.roots(self.dead.values())

    @cached_property
    def born_roots(self) -> Mapping[int, int]:
        return self.program.roots(self.born.values())

    def add(self, old: int, kind: str, new: int, *, inferred: bool = False) -> None:
        link = PassLink(self.position, old, kind, new, inferred)
        if link not in self.links.setdefault(old, []):
            self.links[old].append(link)

    @cached_property
    def dead_readers(self) -> Mapping[int, list[int]]:
        readers: dict[int, list[int]] = {}
        for row in self.dead.values():
            for key in dict.fromkeys(self.program.operands(row)):
                if key in self.dead:
                    readers.setdefault(key, []).append(row)
        return readers

    @cached_property
    def rewired(self) -> Mapping[int, list[tuple[int, int]]]:
        """Return pairs (row before, row after) of rows rewritten in place, by the dead key that the old row read."""
        readers: dict[int, list[tuple[int, int]]] = {}
        for old, new in self.changed:
            for key in dict.fromkeys(self.program.operands(old)):
                if key in self.dead:
                    readers.setdefault(key, []).append((old, new))
        return readers

    def is_new(self, row: int) -> bool:
        return self.row_before.get(self.program.key[row]) != row


def changes(passes: Passes) -> Iterator[Change]:
    """Yield each pass's change in order, including passes that only renumbered names.

    A change is valid until the next one is requested.
    """
    first, effects = passes.versions.ends[0], passes.effect_at
    program = Program(passes.versions)
    key, base = program.key, [-1] * len(passes.versions.names)
    for row in first.tolist():
        if key[row] >= 0:
            base[key[row]] = row
    for step in passes.all:
        if step.first == step.snapshot:
            continue
        position, effect = effects.get(step.index, (-1, None))
        if effect is None:
            effect = _renamed(program, passes.versions.rows(step.first), passes.versions.rows(step.snapshot))
        dead, born = {key[row]: row for row in effect.died}, {key[row]: row for row in effect.born}
        different = dict.fromkeys([*dead, *[key[old] for old, _ in effect.changed]], -1)
        different |= born | {key[new]: new for _, new in effect.changed}
        yield Change(
            program,
            position,
            step.first,
            step.snapshot,
            effect.changed,
            dead,
            born,
            RowOfKey(base, {}),
            RowOfKey(base, different),
        )
        # After the yield: until the next change, `row_before` reads from `base`.
        for at, row in different.items():
            base[at] = row


def _renamed(program: Program, before: Ints, after: Ints) -> Effect:
    """Return the effect of a pass that only renumbered names or reordered lines: new lines follow old ones.

    A dump that no compiler wrote may have duplicate names and unannounced lines; then no lines are paired.
    """
    gone, came = (np.isin(one, other, invert=True) for one, other in ((before, after), (after, before)))
    if gone.sum() != came.sum():
        return Effect()
    pairs = zip(before[gone].tolist(), after[came].tolist(), strict=True)
    return Effect(changed=tuple((old, new) for old, new in pairs if program.key[old] >= 0))
