"""The life of each line that the recorded passes have: its last snapshot, and what took its place there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from explorer.analysis.fates.operations import HELPERS
from explorer.model.cached import cached_property
from explorer.model.equation_sets import EXACT
from explorer.model.graph import Ints
from explorer.model.pass_history import PassLink
from explorer.model.passes import Pass, Passes
from explorer.model.text_versions import Versions

if TYPE_CHECKING:
    from explorer.analysis.fates.endings import Ending


def last_snapshots(snapshots: Sequence[Ints], count: int) -> Ints:
    """The last snapshot that has each of `count` rows, shape `[count]`; a row that left never comes back."""
    last = np.full(count, -1, np.int32)
    for snapshot, rows in enumerate(snapshots):
        last[rows] = snapshot
    return last


@dataclass(frozen=True, eq=False)
class Change:
    """What one pass did between two snapshots.

    Args:
        step: The pass.
        position: Its place among those that changed something; -1 if it did no more than count names anew.
        before, after: The rows of the snapshots.
        same: By row before, the row that the same instruction has after, where it was rewritten in place.
        heirs: By row before, what has its name after it and is another instruction, which was there too.
        links: By key, what became of each instruction that died.
        readers_of: By key, the rows of all snapshots that read the instruction.
        endings: By row, what became of it, where that is known already: readers of readers are few, paths many.
    """

    versions: Versions
    step: Pass
    position: int
    before: Ints
    after: Ints
    same: Mapping[int, int]
    heirs: Mapping[int, int]
    links: Mapping[int, Sequence[PassLink]]
    readers_of: Callable[[int], list[int]]
    endings: dict[int, Ending] = field(default_factory=dict[int, "Ending"])

    @cached_property
    def row_before(self) -> Mapping[int, int]:
        return self._rows(self.before)

    @cached_property
    def row_after(self) -> Mapping[int, int]:
        return self._rows(self.after)

    def _rows(self, rows: Ints) -> dict[int, int]:
        rows = rows[self.versions.key[rows] >= 0]
        return dict(zip(self.versions.key[rows].tolist(), rows.tolist(), strict=True))

    def key(self, row: int) -> int:
        return int(self.versions.key[row])

    def op(self, row: int) -> str:
        return self.versions.ops[int(self.versions.op[row])]

    @cached_property
    def _new(self) -> frozenset[int]:
        return frozenset(np.setdiff1d(self.after, self.before).tolist())

    def operands(self, row: int) -> list[int]:
        """The keys of what a row reads."""
        start = self.versions.operand_start
        return self.versions.operand[start[row] : start[row + 1]].tolist()

    def is_new(self, row: int) -> bool:
        """Whether a row is there after it and was not before."""
        return row in self._new

    @cached_property
    def makes_fusions(self) -> bool:
        return any(self.op(row) == "fusion" for row in self._new if self.key(row) >= 0)

    def successor(self, row: int) -> int:
        """The only new row that is of the same equations as one that is gone; -1 if there is none, or several."""
        equations = self.versions.equations
        if equations is None or equations.code[row] < 0:
            return -1
        alike = self.after[equations.code[self.after] == equations.code[row]]
        new = [at for at in alike.tolist() if self.op(at) not in HELPERS and self.key(at) not in self.row_before]
        return new[0] if len(new) == 1 else -1

    def readers(self, key: int) -> list[int]:
        """The rows before it that read an instruction."""
        return [row for row in self.readers_of(key) if row in self._old]

    @cached_property
    def _old(self) -> frozenset[int]:
        return frozenset(self.before.tolist())


def _readers(versions: Versions) -> Callable[[int], list[int]]:
    """By key, the rows of all snapshots that read the instruction."""
    order = np.argsort(versions.operand, kind="stable")
    rows = np.repeat(np.arange(len(versions.lines)), np.diff(versions.operand_start))[order]
    start = np.searchsorted(versions.operand[order], np.arange(len(versions.names) + 1))
    return lambda key: rows[start[key] : start[key + 1]].tolist()


def changes(passes: Passes, snapshots: Sequence[Ints]) -> Iterator[Change]:
    """Every change from snapshot to snapshot, in order: of the passes that did something, and of those that renamed.

    Args:
        passes: What was recorded.
        snapshots: The rows of each.
    """
    versions = passes.versions
    links: dict[int, dict[int, list[PassLink]]] = {}
    for link in passes.links:
        links.setdefault(link.position, {}).setdefault(link.old, []).append(link)
    effects = passes.effects
    position_of = {step.index: position for position, step in enumerate(passes)}
    readers = _readers(versions)
    for step in passes.all:
        if step.first == step.snapshot:
            continue
        before, after = snapshots[step.first], snapshots[step.snapshot]
        if (position := position_of.get(step.index, -1)) >= 0:
            same, heirs = _apart(versions, dict(effects[position].changed), effects[position].died)
            yield Change(versions, step, position, before, after, same, heirs, links.get(position, {}), readers)
        else:
            # Only the numbers in names differ: line follows line.
            same = dict(zip(before.tolist(), after.tolist(), strict=len(before) == len(after)))
            yield Change(versions, step, -1, before, after, same, {}, {}, readers)


def _apart(
    versions: Versions, changed: Mapping[int, int], died: Sequence[int]
) -> tuple[dict[int, int], dict[int, int]]:
    """What a pass rewrote in place, and by row before it what only took over its name.

    XLA gives an instruction the name of the one that it replaces if both are the same operation: of `abs(abs(x))` the
    inner one is left, with the outer one's name and its own metadata.
    """
    equations = versions.equations
    if equations is None:
        return dict(changed), {}
    is_sure = (equations.grade == EXACT) & (equations.code >= 0)

    def kind(row: int) -> tuple[int, int] | None:
        """The equations and the operation of a row; None where they are not known."""
        return (int(equations.code[row]), int(versions.op[row])) if is_sure[row] else None

    gone: dict[tuple[int, int] | None, list[int]] = {}
    for row in died:
        gone.setdefault(kind(row), []).append(row)
    gone.pop(None, None)
    same, heirs = dict(changed), dict[int, int]()
    for old, new in changed.items():
        before, others = kind(old), gone.get(kind(new), ())
        is_another = before is not None and before != kind(new) and versions.op[old] == versions.op[new]
        if is_another and len(others) == 1:
            del same[old]
            same[others[0]] = heirs[old] = new
    return same, heirs
