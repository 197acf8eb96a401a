"""Pieces of a pass: a removed value with everything that went with it, and what was made for its replacement."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from explorer.analysis.hlo_operations import MOVERS
from explorer.analysis.pass_changes import Change, Program

_INDEX = re.compile(r"\bindex=(\d+)")
_STEM = re.compile(r"[.\d]*(?:\.clone[.\d]*)*$")
_MAX_STEPS = 16  # views and tuples between a copy and its source
_MAX_DEPTH = 100  # calls inside of calls


@dataclass(eq=False)
class Piece:
    """A removed value, and the value read in its place.

    Args:
        old, new: Their rows.
        gone: Rows removed with `old`, itself first.
        made: Rows made for `new`, itself first.
        pairs: For rows of `gone` or their operands, rows that do the same after the pass.
    """

    old: int
    new: int
    gone: list[int] = field(default_factory=list[int])
    made: list[int] = field(default_factory=list[int])
    pairs: dict[int, list[int]] = field(default_factory=dict[int, list[int]])


class Named:
    """Table of removed rows' codes in `of` by operation, type, and name without its counter, which a copy shares."""

    def __init__(self, change: Change, of: Sequence[int]) -> None:
        self._change, self._of = change, of
        self._codes: dict[tuple[str, int, int], int] | None = None

    def find(self, row: int) -> int:
        if self._codes is None:
            self._codes = {}
            for gone in self._change.dead.values():
                key = self._key(gone)
                # An ambiguous name identifies no equations.
                self._codes[key] = self._of[gone] if self._codes.get(key, self._of[gone]) == self._of[gone] else 0
        return self._codes.get(self._key(row), 0)

    def _key(self, row: int) -> tuple[str, int, int]:
        program = self._change.program
        name = program.versions.names[program.key[row]]
        return _STEM.sub("", name), program.op[row], program.type[row]


def pieces_of(change: Change) -> list[Piece]:
    """Return the pieces of a pass: each replaced row with its replacement, and the rows that went and came with it."""
    program = change.program
    replaced: dict[int, int] = {}
    for key, row in change.dead.items():
        for link in change.links.get(key, ()):
            if link.kind in ("rewritten", "merged", "replaced") or (link.kind == "fused" and not link.inferred):
                new = change.row_after[link.new]
                if new >= 0:
                    replaced[row] = new
                break
    dead, born = ({row: None for row in rows.values()} for rows in (change.dead, change.born))
    roots = change.dead_roots, change.born_roots
    gone, made = set(replaced), set(replaced.values())
    pieces = [Piece(old, new) for old, new in replaced.items()]
    for piece in pieces:
        piece.gone = _reach(piece.old, gone, lambda row: _inside(program, row, change.row_before, dead, roots[0]))
        if piece.new in born:
            piece.made = _reach(piece.new, made, lambda row: _inside(program, row, change.row_after, born, roots[1]))
    # Pairs may multiply in a large pass, so their number is bounded by that of its rows.
    budget = 4 * (len(dead) + len(born))
    for piece in pieces:
        budget -= _pair(change, piece, roots, budget)
    return pieces


def _inside(
    program: Program, row: int, row_of: Sequence[int], members: Mapping[int, None], roots: Mapping[int, int]
) -> Iterator[int]:
    """Yield the members that a row reads or whose computation it calls; for a tuple element, only that element."""
    index = _INDEX.search(program.versions.lines[row]) if program.op_name[row] == "get-tuple-element" else None
    if index is not None:
        at = row_of[program.operands[row][0]]
        for _ in range(_MAX_DEPTH):
            if at not in members or program.op_name[at] != "call" or (root := program.called_root(at, roots)) < 0:
                break
            at = root
        if at in members and program.op_name[at] == "tuple" and int(index[1]) < len(program.operands[at]):
            part = row_of[program.operands[at][int(index[1])]]
            yield from [part] if part in members else []
            return
    for key in program.operands[row]:
        if (at := row_of[key]) in members:
            yield at
    for computation in program.called(row):
        if computation in roots:
            yield roots[computation]


def _reach(start: int, taken: set[int], inside: Callable[[int], Iterator[int]]) -> list[int]:
    """Return `start` and the rows reachable from it that aren't taken, readers first; add these to `taken`."""
    reached = [start]
    for row in reached:  # grows during iteration
        for at in inside(row):
            if at not in taken:
                taken.add(at)
                reached.append(at)
    return reached


def below(change: Change, row: int) -> list[int]:
    program = change.program
    rows = [change.row_after[key] for key in program.operands[row]]
    return rows + [change.born_roots[at] for at in program.called(row) if at in change.born_roots]


def beneath(change: Change, piece: Piece) -> list[int]:
    """Return the rows before a pass that a piece's removed value was computed from.

    Behind removed rows that only move elements, the rows that they read are included.
    """
    program, reached = change.program, list[int]()
    todo = [piece.old]
    if program.op_name[piece.old] == "get-tuple-element":
        reached = piece.gone[1:2]
        todo = [row for row in reached if program.op_name[row] in MOVERS]
    while todo and len(reached) < _MAX_STEPS:
        for key in program.operands[todo.pop()]:
            at = change.row_before[key]
            if at >= 0:
                reached.append(at)
                if program.op_name[at] in MOVERS and key in change.dead:
                    todo.append(at)
    return reached


def _pair(change: Change, piece: Piece, roots: tuple[Mapping[int, int], Mapping[int, int]], budget: int) -> int:
    """Add to `piece.pairs` the rows that do the same after the pass; return the number of pairs examined."""
    program = change.program
    callers: tuple[dict[int, int], dict[int, int]] = {}, {}

    def inner(row: int, side: int) -> int:
        for _ in range(_MAX_DEPTH):  # in a damaged file a computation may call itself
            is_call = program.op_name[row] in ("fusion", "call")
            root = program.called_root(row, roots[side]) if is_call else -1
            if root < 0:
                break
            callers[side][program.home(root)] = row
            row = root
        return row

    def outer(row: int, side: int) -> int:
        """Return the row that gives a parameter its value, -1 if that row is missing.

        A row that is no parameter, or one of a computation without a known caller, is returned unchanged.
        """
        for _ in range(_MAX_DEPTH):
            if row < 0 or program.op_name[row] != "parameter" or program.home(row) not in callers[side]:
                break
            caller = callers[side][program.home(row)]
            index = program.versions.lines[row].partition(" parameter(")[2].partition(")")[0]
            operands = program.operands[caller]
            if not index.isdigit() or int(index) >= len(operands):
                return -1
            row = (change.row_before, change.row_after)[side][operands[int(index)]]
        return row

    todo = [(inner(piece.old, 0), inner(piece.new, 1))]
    seen: set[tuple[int, int]] = set()
    while todo and len(seen) <= budget:
        pair = todo.pop()
        row, other = pair
        if pair in seen or program.op[row] != program.op[other]:
            continue
        seen.add(pair)
        piece.pairs.setdefault(row, []).append(other)
        olds, news = program.operands[row], program.operands[other]
        if len(olds) != len(news) or (not change.is_new(other) and program.key[row] not in change.dead):
            continue
        for old, new in zip(olds, news, strict=True):
            pair = outer(change.row_before[old], 0), outer(change.row_after[new], 1)
            if min(pair) >= 0 and pair[0] != pair[1]:
                todo.append((inner(pair[0], 0), inner(pair[1], 1)))
    return len(seen)


def source(change: Change, row: int) -> int:
    """Return the row that a copy copies, through views and tuples, or -1."""
    program = change.program
    for _ in range(_MAX_STEPS):
        operands = program.operands[row]
        if not operands:
            return -1
        line, row = program.versions.lines[row], change.row_after[operands[0]]
        if row < 0:
            return -1
        index = _INDEX.search(line) if program.op_name[row] == "tuple" else None
        if index is not None and int(index[1]) < len(program.operands[row]):
            row = change.row_after[program.operands[row][int(index[1])]]
        if row < 0 or program.op_name[row] not in ("get-tuple-element", "tuple"):
            return row
    return -1


def worker(change: Change, row: int, op: int) -> int:
    """Return the new row of operation `op` behind transposes and other movers of `row`, else the last row on the way.

    On a CPU, a convolution is a transpose of another convolution.
    """
    program, at = change.program, row
    for _ in range(_MAX_STEPS):
        if program.op_name[at] == "fusion" and (root := program.called_root(at, change.born_roots)) >= 0:
            at = root
        if program.op[at] == op or program.op_name[at] not in ("transpose", "reshape", "bitcast", "copy", "broadcast"):
            return at
        read = [change.row_after[key] for key in program.operands[at]]
        if (
            not read
            or read[0] < 0
            or not (program.key[read[0]] in change.born or program.op_name[read[0]] == "constant")
        ):
            return at
        at = read[0]
    return row
