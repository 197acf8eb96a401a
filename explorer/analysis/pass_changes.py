"""Recorded passes one after the other, and links from each removed or copied instruction to its replacement.

The rows by key are kept once and updated with each pass, so a walk over all passes costs only what they changed.

A pass records no links, so they are inferred from the modules before and after it. A link is certain if the text shows
it: the name was kept, a reader of the dead instruction reads the new one in the same place, or there was no reader. A
link from equal structure is marked as inferred: the root of a new fusion is the instruction that the fusion replaces,
and so on up its operands. The rest is `unknown`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
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
        operand: list[int] = versions.operand.tolist()
        self.operands = [operand[start:end] for start, end in pairwise(versions.operand_start.tolist())]
        self._is_root = [line.lstrip().startswith("ROOT ") for line in versions.lines]
        self._home: list[int] = versions.computation.tolist()
        self.computation = {name: number for number, name in enumerate(versions.computations)}
        self._called: dict[str, list[int]] = {}  # by attributes: hundreds of rows have the same

    def home(self, row: int) -> int:
        return self._home[self.key[row]]

    def attributes(self, row: int) -> str:
        return self._lines[row].partition("), ")[2]

    def called(self, row: int) -> list[int]:
        attributes = self._lines[row].partition("), ")[2]
        called = self._called.get(attributes)
        if called is None:
            names = _CALLED.findall(attributes)
            for branches in _BRANCHES.findall(attributes):
                names += (name.strip().lstrip("%") for name in branches.split(","))
            called = [self.computation[name] for name in names if name in self.computation]
            self._called[attributes] = called
        return called

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
        return {self._home[self.key[row]]: row for row in rows if self._is_root[row]}

    def called_root(self, row: int, roots: Mapping[int, int]) -> int:
        """Return the root's row of the first computation that a row calls, or -1 if it isn't in `roots`."""
        called = self.called(row)
        return roots.get(called[0], -1) if called else -1

    def alike(self, row: int, other: int) -> bool:
        """Return True if two rows have the same operation, type and attributes."""
        lines = self.versions.lines
        return self.op[row] == self.op[other] and _NAMES.sub("", lines[row]) == _NAMES.sub("", lines[other])


@dataclass(frozen=True, eq=False)
class Change:
    """The effect of one pass, and the links found so far.

    Args:
        program: The rows.
        position: Index among the passes that changed something; -1 for a pass that only renumbered names.
        first, snapshot: Snapshots before and after the pass.
        changed: Rows rewritten in place, before and after.
        dead, born: Rows of removed and new instructions, by key.
        row_before, row_after: Row of every instruction before and after the pass, by key; -1 for none.
        links: Links by the key of the dead or copied instruction.
    """

    program: Program
    position: int
    first: int
    snapshot: int
    changed: tuple[tuple[int, int], ...]
    dead: dict[int, int]
    born: dict[int, int]
    row_before: Sequence[int]
    row_after: Sequence[int]
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
            for key in dict.fromkeys(self.program.operands[row]):
                if key in self.dead:
                    readers.setdefault(key, []).append(row)
        return readers

    @cached_property
    def rewired(self) -> Mapping[int, list[tuple[int, int]]]:
        """Return (row before, row after) of rewritten instructions by the key of a removed operand."""
        readers: dict[int, list[tuple[int, int]]] = {}
        for old, new in self.changed:
            for key in dict.fromkeys(self.program.operands[old]):
                if key in self.dead:
                    readers.setdefault(key, []).append((old, new))
        return readers

    def is_new(self, row: int) -> bool:
        return self.row_before[self.program.key[row]] != row


def changes(passes: Passes) -> Iterator[Change]:
    """Yield each pass's change in order, including passes that only renumbered names."""
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
        after = base.copy()
        for at, row in different.items():
            after[at] = row
        yield Change(program, position, step.first, step.snapshot, effect.changed, dead, born, base, after)
        base = after


def _renamed(program: Program, before: Ints, after: Ints) -> Effect:
    """Return the effect of a pass that only renumbered names or reordered lines: new lines follow old ones.

    A dump that no compiler wrote may have duplicate names and unannounced lines; then no lines are paired.
    """
    gone, came = (np.isin(one, other, invert=True) for one, other in ((before, after), (after, before)))
    if gone.sum() != came.sum():
        return Effect()
    pairs = zip(before[gone].tolist(), after[came].tolist(), strict=True)
    return Effect(changed=tuple((old, new) for old, new in pairs if program.key[old] >= 0))


def pass_links(passes: Passes) -> list[PassLink]:
    """Return the links of every instruction that died or was copied to what replaced it, pass by pass."""
    return [link for change in changes(passes) for link in links_of_pass(change)]


def links_of_pass(change: Change) -> list[PassLink]:
    """Return the links of one pass, from dead or copied instructions to replacements; store them in `change.links`."""
    # The order matters: fusions are identified by what they replaced, and only the rest can be unread.
    _link_replaced(change)
    _link_fused(change)
    _link_inlined(change)
    _link_unread(change)
    return [link for links in change.links.values() for link in links]


def _link_replaced(change: Change) -> None:
    """Link instructions whose readers all read one other instruction now, or that were results."""
    program = change.program
    instead = _read_instead(change)
    roots = program.roots([*change.born.values(), *(new for _, new in change.changed)])
    for home, row in program.roots(change.dead.values()).items():
        # A root has no readers: the new root of its computation is its replacement.
        if home in roots:
            instead.setdefault(program.key[row], set()).add(program.key[roots[home]])
    for old, replacements in instead.items():
        # Readers that disagree show no single replacement.
        if len(replacements) > 1:
            continue
        (new,) = replacements
        row = change.row_after[new]
        is_alike = row >= 0 and program.op[change.dead[old]] == program.op[row]
        change.add(old, "rewritten" if new in change.born else "merged" if is_alike else "replaced", new)


def _read_instead(change: Change) -> dict[int, set[int]]:
    """Return the keys that rewritten instructions read now, by the dead key that they read there before.

    A key is the number of an instruction over all passes.
    """
    program = change.program
    instead: dict[int, set[int]] = {}
    for old_row, new_row in change.changed:
        olds, news = program.operands[old_row], program.operands[new_row]
        if program.op[old_row] != program.op[new_row] or len(olds) != len(news):
            continue
        for old, new in zip(olds, news, strict=True):
            # A key that was among the operands before may only have moved.
            if old != new and old in change.dead and news.count(new) > olds.count(new):
                instead.setdefault(old, set()).add(new)
    return instead


def _link_fused(change: Change) -> None:
    """Link removed instructions to their copies inside a new fusion, from its root up the operands."""
    program = change.program
    roots = program.roots(change.born.values())
    replaced = {link.new: old for old, links in change.links.items() for link in links if link.kind == "rewritten"}
    for key, row in change.born.items():
        root = program.called_root(row, roots) if program.op_name[row] == "fusion" else -1
        if root < 0 or key not in replaced:
            continue
        old = replaced[key]
        if program.alike(change.dead[old], root):
            # "Fused" is more specific than "rewritten".
            change.links.pop(old)
            change.add(old, "fused", program.key[root])
            _link_operands(change, change.dead[old], root, "fused")


def _link_inlined(change: Change) -> None:
    """Link the contents of an inlined computation to the instructions that replaced the call."""
    program = change.program
    roots = program.roots(change.dead.values())
    for key, row in change.dead.items():
        root = program.called_root(row, roots) if program.op_name[row] == "call" else -1
        for link in change.links.get(key, ()) if root >= 0 else ():
            new = change.born.get(link.new, -1)
            if link.kind == "rewritten" and new >= 0 and program.alike(root, new):
                change.add(program.key[root], "inlined", link.new)
                _link_operands(change, root, new, "inlined")


def _link_operands(change: Change, old_row: int, new_row: int, kind: str) -> None:
    """Link the operands of two rows that stand for each other, and theirs, as long as they are alike."""
    program = change.program
    todo = [(old_row, new_row)]
    seen: set[tuple[int, int]] = set()
    while todo:
        pair = todo.pop()
        olds, news = program.operands[pair[0]], program.operands[pair[1]]
        if pair in seen or len(olds) != len(news):
            continue
        seen.add(pair)
        for old, new in zip(olds, news, strict=True):
            above = change.row_before[old], change.born.get(new, -1)
            if min(above) >= 0 and program.alike(*above):
                if not any(link.new == new for link in change.links.get(old, ())):
                    change.add(old, kind if old in change.dead else "duplicated", new, inferred=True)
                todo.append(above)


def _readers_of_dead(change: Change) -> dict[int, set[int]]:
    program = change.program
    readers: dict[int, set[int]] = {}
    for row in (*change.dead.values(), *(old for old, _ in change.changed)):
        for operand in program.operands[row]:
            if operand in change.dead:
                readers.setdefault(operand, set()).add(program.key[row])
    return readers


def _link_unread(change: Change) -> None:
    """Link instructions that died with their reader or had none; mark the rest as unknown."""
    readers = _readers_of_dead(change)
    for key, row in change.dead.items():
        if key in change.links:
            continue
        read_by = readers.get(key, set())
        if not read_by:
            change.add(key, "unknown" if change.program.roots([row]) else "unused", -1)
        elif len(read_by) == 1 and read_by <= change.dead.keys():
            change.add(key, "with", next(iter(read_by)))
        else:
            change.add(key, "unknown", -1)
