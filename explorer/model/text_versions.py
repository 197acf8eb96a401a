"""The texts of a module from snapshot to snapshot, kept as the lines that changed.

A pass leaves most of a module as it was. So each distinct line is one row, kept once, and each snapshot of the module
is a list of runs: stretches of the snapshot before it, and rows that are new.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from explorer.errors import UnreadableTextError
from explorer.model.declared import cached_property
from explorer.model.graph import Frame, Ints
from explorer.model.links import EquationSets


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A module at one moment: `runs` are (start, length) in the snapshot before; a start of -1 takes the next new rows.

    Args:
        runs: Flat, shape `[2 * runs]`.
        first: The first row that is new here.
    """

    runs: Ints
    first: int


@dataclass(frozen=True, eq=False)
class Versions:
    """Distinct lines of all snapshots of a module, and the snapshots.

    Columns have one row per line (shape `[n]`, int32); a line without an instruction has `key` -1.

    Args:
        lines: The text, without metadata.
        key: Index into `names`: an instruction keeps its key when a pass rewrites it in place.
        op, type: Codes into `ops`, `types`.
        frame: Index into `frames` of the innermost frame, -1 for none.
        operand_start, operand: Compressed rows, as in a graph; an operand is a key.
        names, computation: Instruction name of each key, and its computation as an index into `computations`.
        snapshots: Snapshots; the first is the module before all passes.
        equations: Equations in the metadata of each line, if the recording numbered them; after the lines come later
            states of lines whose metadata alone changed.
        relabelled: First snapshot and line of each such state, shape `[2 * states]`, in order.
    """

    lines: Sequence[str]
    key: Ints
    op: Ints
    type: Ints
    frame: Ints
    operand_start: Ints
    operand: Ints
    names: Sequence[str]
    computation: Ints
    computations: Sequence[str]
    ops: Sequence[str]
    types: Sequence[str]
    frames: Sequence[Frame]
    snapshots: Sequence[Snapshot]
    equations: EquationSets | None = None
    relabelled: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    # Cache of the latest snapshot: passes are walked in order, and each snapshot follows from the previous one.
    _last: list[tuple[int, Ints]] = field(default_factory=list[tuple[int, Ints]], init=False, repr=False)

    def rows(self, snapshot: int) -> Ints:
        """Return the text of a snapshot as indices into `lines`, in order; empty for -1.

        Raises:
            UnreadableTextError: The runs of a snapshot are damaged.
        """
        last, rows = self._last[0] if self._last and self._last[0][0] <= snapshot else (-1, np.zeros(0, np.int32))
        for at in range(last + 1, min(snapshot + 1, len(self.snapshots))):
            end = self.snapshots[at + 1].first if at + 1 < len(self.snapshots) else len(self.lines)
            rows = _replayed(rows, self.snapshots[at], end)
        self._last[:] = [(snapshot, rows)]
        return rows

    @cached_property
    def ends(self) -> tuple[Ints, Ints]:
        """Return the first and the last snapshot as indices into `lines`; both are empty without snapshots."""
        return self.rows(0), self.rows(len(self.snapshots) - 1)

    def replay(self) -> list[Ints]:
        """Return each snapshot, in order, as indices into `lines`.

        Use this for a walk through all snapshots, and release the list afterwards: it is large and not cached.
        """
        return [*map(self.rows, range(len(self.snapshots)))]

    def equation_rows(self, snapshot: int) -> Ints:
        """Return for each line of a snapshot the row of `equations` that has its equations at that time.

        Return an empty array if the equations were not recorded.
        """
        if self.equations is None:
            return np.zeros(0, np.int32)
        at = np.arange(len(self.lines), dtype=np.int32)
        began, line = self.relabelled.reshape(-1, 2).T
        past = np.flatnonzero(began <= snapshot)
        at[line[past]] = (len(self.lines) + past).astype(np.int32)  # of several the last: they are in order
        return at[self.rows(snapshot)]

    def present(self, snapshot: int) -> Ints:
        """Return the equations, as rows of the first stage, that instructions of a snapshot come from, ascending.

        Return an empty array if the equations were not recorded.
        """
        if self.equations is None:
            return np.zeros(0, np.int32)
        codes = np.unique(self.equations.code[self.equation_rows(snapshot)])
        start, node = self.equations.start, self.equations.node
        sets = [node[start[code] : start[code + 1]] for code in codes.tolist() if code >= 0]
        return np.unique(np.concatenate(sets)) if sets else np.zeros(0, np.int32)

    def text(self, snapshot: int) -> str:
        rows: list[int] = self.rows(snapshot).tolist()
        return "\n".join(self.lines[row] for row in rows) + "\n"

    def operands(self, row: int) -> list[int]:
        """Return the keys (indices into `names`) of the operands of the instruction on line `row`."""
        return self.operand[self.operand_start[row] : self.operand_start[row + 1]].tolist()

    def title(self, key: int) -> str:
        return self.names[key]


def _replayed(before: Ints, shot: Snapshot, end: int) -> Ints:
    parts: list[Ints] = []
    new, count = shot.first, 0
    for start, length in shot.runs.reshape(-1, 2).tolist():
        if length < 0 or (new + length > end if start < 0 else start + length > len(before)):
            raise UnreadableTextError("a run has an index outside of its snapshot")
        count += length
        if count > end:  # each row occurs at most once in a snapshot: damaged runs must not fill the memory
            raise UnreadableTextError("a snapshot has more rows than there are: a line is in it more than once")
        if start < 0:
            parts.append(np.arange(new, new + length, dtype=np.int32))
            new += length
        else:
            parts.append(before[start : start + length])
    return np.concatenate(parts) if parts else np.zeros(0, np.int32)


def follow(before: Sequence[int], snapshots: Iterable[tuple[Sequence[int], int]]) -> list[Snapshot]:
    """Return a `Snapshot` for each (rows, first new row), as runs of the rows before; the first follows `before`."""
    result: list[Snapshot] = []
    for rows, first in snapshots:
        result.append(Snapshot(runs_between(before, rows, first), first))
        before = rows
    return result


def runs_between(before: Sequence[int], after: Sequence[int], first: int) -> Ints:
    """Return `after` as runs, flat: position in `before`, length, position, length, ….

    A run of new rows, those from `first` on, has position -1.
    """
    place = {row: at for at, row in enumerate(before)}
    runs: list[int] = []
    start, length, is_new = -1, 0, False
    for row in after:
        at = -1 if row >= first else place[row]
        if length and (is_new if at < 0 else not is_new and at == start + length):
            length += 1
            continue
        if length:
            runs += (start, length)
        start, length, is_new = at, 1, at < 0
    if length:
        runs += (start, length)
    return np.asarray(runs, np.int32)


def aligned(before: Ints, after: Ints) -> Iterator[tuple[int, int]]:
    """Yield (row before, row after) for the lines of two snapshots side by side; -1 for a line missing on one side.

    The longest increasing sequence of shared rows is paired. Rows that a pass moved appear as removed and added.
    """
    place: Mapping[int, int] = {row: at for at, row in enumerate(before.tolist())}
    kept = _increasing([(place[row], at) for at, row in enumerate(after.tolist()) if row in place])
    i = j = 0
    for at, to in (*kept, (len(before), len(after))):
        yield from ((int(row), -1) for row in before[i:at])
        yield from ((-1, int(row)) for row in after[j:to])
        if at < len(before):  # the last pair is the ends
            yield int(before[at]), int(after[to])
        i, j = at + 1, to + 1


def _increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of `pairs` whose first numbers increase.

    Args:
        pairs: Pairs sorted by their second number.
    """
    # Patience sorting: n log n steps, as a module has 100,000 lines.
    ends: list[int] = []  # the least first that a subsequence of each length ends in
    last: list[int] = []
    previous = [-1] * len(pairs)
    for i, (first, _) in enumerate(pairs):
        at = bisect_left(ends, first)
        previous[i] = last[at - 1] if at else -1
        if at == len(ends):
            ends.append(first)
            last.append(i)
        else:
            ends[at], last[at] = first, i
    chain: list[tuple[int, int]] = []
    at = last[-1] if last else -1
    while at >= 0:
        chain.append(pairs[at])
        at = previous[at]
    return chain[::-1]


def unified(before: Ints, after: Ints, lines: Sequence[str], names: tuple[str, str], context: int) -> str:
    """Return the difference of two texts, given as indices into `lines`, in the format of `diff -u`; empty if equal."""
    pairs = list(aligned(before, after))
    shown = bytearray(len(pairs))
    for i, (old, new) in enumerate(pairs):
        if old < 0 or new < 0:
            start, end = max(i - context, 0), min(i + context + 1, len(pairs))
            shown[start:end] = b"\1" * (end - start)
    if not any(shown):
        return ""
    out = [f"--- {names[0]}", f"+++ {names[1]}"]
    i, old_line, new_line = 0, 1, 1
    while i < len(pairs):
        end = i
        while end < len(pairs) and shown[end] == shown[i]:
            end += 1
        hunk = pairs[i:end]
        old_count, new_count = sum(old >= 0 for old, _ in hunk), sum(new >= 0 for _, new in hunk)
        if shown[i]:
            out.append(f"@@ -{old_line},{old_count} +{new_line},{new_count} @@")
            out += [f"{' ' if old == new else '-' if new < 0 else '+'}{lines[max(old, new)]}" for old, new in hunk]
        old_line, new_line, i = old_line + old_count, new_line + new_count, end
    return "\n".join(out) + "\n"
