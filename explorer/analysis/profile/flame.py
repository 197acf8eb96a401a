"""Where the device's time went, as a tree: by named scope, or by the Python stack that made each instruction.

A flame graph draws it: each box is as wide as the time of all that is inside it (Gregg: The Flame Graph, CACM 59/6,
2016). A loop's body hangs below the line that made the loop, as its stack says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os.path import basename
from typing import Literal, NamedTuple

from explorer.analysis.profile.pieces import Piece
from explorer.errors import OptionError
from explorer.model.graph import Frame
from explorer.model.results.profile_rows import OpTime

__all__ = ["By", "Flame", "FlameNode", "flame"]

By = Literal["scope", "stack"]
_LIBRARY = re.compile(r".*[/\\](?:(?:site|dist)-packages|lib[/\\]python[\d.]*)[/\\]([^/\\]+)")
_NO_SCOPE, _NO_LINE = "no named scope", "no line is known"
_NANO = 1e9


@dataclass(frozen=True, slots=True)
class FlameNode:
    """One box: a scope, a line of the source, a library, or a kernel.

    Args:
        name: `attention`, `block (model.py:12)`, `flax`, `fusion.3`.
        kind: `root`, `module`, `scope`, `frame`, `package`, `none`, `kernel`, or `more` for small ones put together.
        seconds: With all below, a call.
        own: Without what is below.
        parent: The index of the box around it; -1 for the root.
        op: Of a kernel, its index in the profile's `ops`; else -1.
        frame: Of a `frame`, its place in the source.
        count: Of `more`, how many boxes it stands for.
    """

    name: str
    kind: str
    seconds: float
    own: float = 0.0
    parent: int = -1
    op: int = -1
    frame: Frame | None = None
    count: int = 1


@dataclass(frozen=True, eq=False)
class Flame:
    """A flame graph: boxes, each before those inside it; of one box the longest first.

    Example:
        >>> from explorer.model.results.profile_rows import OpTime
        >>> dot = OpTime("dot.1", "dot", "jit_f", 1, 3e-3, 0.75, 3e-3, 1, 0.0, 0.0, None, (), "layer/attention")
        >>> add = OpTime("add.2", "add", "jit_f", 1, 1e-3, 0.25, 1e-3, 1, 0.0, 0.0, None, (), "layer")
        >>> made = flame([dot, add], "scope", "f")
        >>> made
        Flame(f by scope: 2 kernels, 4 deep)
        >>> print(made.to_folded())
        f;layer;attention;dot.1 3000000
        f;layer;add.2 1000000
    """

    nodes: Sequence[FlameNode]
    by: By

    @property
    def seconds(self) -> float:
        """Of the whole: the device's time, a call."""
        return self.nodes[0].seconds

    @cached_property
    def depths(self) -> Sequence[int]:
        """How many boxes are around each."""
        found: list[int] = []
        for node in self.nodes:
            found.append(found[node.parent] + 1 if node.parent >= 0 else 0)
        return found

    @cached_property
    def children(self) -> Sequence[Sequence[int]]:
        """For each box, the indices of those directly inside it."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for i, node in enumerate(self.nodes):
            if node.parent >= 0:
                found[node.parent].append(i)
        return found

    def path(self, index: int) -> tuple[str, ...]:
        """The names from the root to a box."""
        return tuple(reversed([node.name for node in self._outwards(index)]))

    def to_folded(self) -> str:
        """Collapsed stacks, a line for each box that has time of its own: the names to it, and nanoseconds a call.

        What flamegraph.pl, speedscope, inferno and others open (Gregg: github.com/brendangregg/FlameGraph).
        """
        rows = ((self.path(i), round(node.own * _NANO)) for i, node in enumerate(self.nodes) if node.own > 0)
        return "\n".join(f"{';'.join(map(_plain, path))} {nanoseconds}" for path, nanoseconds in rows if nanoseconds)

    def pruned(self, most: int) -> Flame:
        """The same with its longest boxes, about `most`; what is less is put together, box by box."""
        if len(self.nodes) <= most:
            return self
        # Of equally long ones the outer one is first, so what is kept hangs together.
        nodes = self.nodes
        longest = sorted(range(len(nodes)), key=lambda i: (-nodes[i].seconds, i))[: max(most, 1)]
        place = {index: i for i, index in enumerate(sorted(longest))}
        shown = (nodes[index] for index in place)
        kept = [_Row(one.name, one.kind, one.own, one.op, one.frame, one.count) for one in shown]
        seconds = [nodes[index].seconds for index in place]
        parents = [place.get(nodes[index].parent, -1) for index in place]
        small: dict[int, list[float]] = {}
        for i, node in enumerate(nodes):
            if i not in place and node.parent in place:
                small.setdefault(node.parent, []).append(node.seconds)
        for parent, inside in small.items():
            kept.append(_Row(f"{len(inside):,} more", "more", sum(inside), stands_for=len(inside)))
            seconds.append(sum(inside))
            parents.append(place[parent])
        return Flame(_ordered(kept, seconds, parents), self.by)

    def _outwards(self, index: int) -> Iterator[FlameNode]:
        while index >= 0:
            yield self.nodes[index]
            index = self.nodes[index].parent

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        kernels = sum(node.kind == "kernel" for node in self.nodes)
        deep = max(self.depths) + 1
        name = self.nodes[0].name
        return f"Flame({name} by {self.by}: {kernels:,} kernel{'' if kernels == 1 else 's'}, {deep:,} deep)"


def flame(
    ops: Sequence[OpTime],
    by: By,
    function: str,
    labels: Mapping[str, str] | None = None,
    pieces: Sequence[Piece] | None = None,
) -> Flame:
    """The flame graph of a profile's operations.

    Args:
        ops: What ran; each is a box of its own, inside those that it comes from.
        by: `scope` for named scopes and modules; `stack` for the user's Python, from the outermost call inwards, where
            what a library does is one box.
        function: What the root is called.
        labels: What a person calls each file: `cell [4]`; its name where that isn't said.
        pieces: The ops in pieces, each with a place of its own; if None, each op is where its stack and scope say.

    Raises:
        OptionError: `by` is neither.
    """
    if by not in ("scope", "stack"):
        raise OptionError(f"a flame graph goes by 'scope' or 'stack', not {by!r}.")
    parts = [Piece(i, op.seconds, op.stack, op.scope) for i, op in enumerate(ops)] if pieces is None else pieces
    return _Growing(by, function, labels or {}).of(ops, parts)


class _Row(NamedTuple):
    """A box whose place is not known yet."""

    name: str
    kind: str
    own: float = 0.0
    op: int = -1
    frame: Frame | None = None
    stands_for: int = 1


class _Growing:
    """A tree that grows: boxes by what they are in and what they are."""

    def __init__(self, by: By, function: str, labels: Mapping[str, str]) -> None:
        self.by: By = by
        self.labels = labels
        self.rows = [_Row(function, "root")]
        self.parents: list[int] = [-1]
        self.own: list[float] = [0.0]
        self.known: dict[tuple[int, object], int] = {}
        self.places: dict[tuple[int, object], int] = {}

    def of(self, ops: Sequence[OpTime], pieces: Sequence[Piece]) -> Flame:
        programs = _programs(ops)
        for piece in pieces:
            if piece.seconds > 0:
                at = self._place(piece, ops[piece.op].program, programs)
                kernel = self._grow(at, piece.op, _Row(ops[piece.op].name, "kernel", op=piece.op))
                self.own[kernel] += piece.seconds
        seconds = list(self.own)
        for i in range(len(seconds) - 1, 0, -1):
            seconds[self.parents[i]] += seconds[i]
        rows = [row._replace(own=own) if own else row for row, own in zip(self.rows, self.own, strict=True)]
        return Flame(_ordered(rows, seconds, self.parents), self.by)

    def _place(self, piece: Piece, program: int, programs: Mapping[int, str]) -> int:
        """The box that a kernel is in. Kernels of one place share their stack: it is walked once."""
        key = (program, piece.scope if self.by == "scope" else id(piece.stack))
        if key not in self.places:
            at = 0
            if len(programs) > 1:
                at = self._grow(0, programs[program], _Row(programs[program], "module"))
            for step in self._scopes(piece.scope) if self.by == "scope" else self._frames(piece.stack):
                at = self._grow(at, (step.kind, step.name, step.frame and step.frame.file), step)
            self.places[key] = at
        return self.places[key]

    def _grow(self, at: int, key: object, made: _Row) -> int:
        if (at, key) not in self.known:
            self.known[at, key] = self._add(at, made)
        return self.known[at, key]

    def _add(self, at: int, made: _Row) -> int:
        self.rows.append(made)
        self.parents.append(at)
        self.own.append(0.0)
        return len(self.rows) - 1

    def _scopes(self, scope: str) -> Iterator[_Row]:
        names = [part for part in scope.split("/") if part]
        if not names:
            yield _Row(_NO_SCOPE, "none")
        for name in names:
            yield _Row(name, "scope")

    def _frames(self, stack: Sequence[Frame]) -> Iterator[_Row]:
        frames = [(frame, _package(frame.file)) for frame in reversed(stack)]
        # What is around the user's outermost frame only runs the user's program: a notebook's kernel, a test runner.
        first = next((i for i, (_, package) in enumerate(frames) if not package), 0)
        if not frames:
            yield _Row(_NO_LINE, "none")
        around = ""
        for frame, package in frames[first:]:
            label = self.labels.get(frame.file) or basename(frame.file)
            name = package or f"{frame.function or '?'} ({label}:{frame.line})"
            if name != around:  # a call within another on one line is the same place; a library is one box
                yield _Row(name, "package") if package else _Row(name, "frame", frame=frame)
            around = name


def _package(file: str) -> str:
    """The library that a file belongs to: `flax`; empty for the user's own."""
    found = _LIBRARY.match(file)
    return found[1].removesuffix(".py") if found else ""


def _programs(ops: Sequence[OpTime]) -> dict[int, str]:
    """What each program is called; those of one name are numbered."""
    found = {op.program: op.module for op in ops}
    names = list(found.values())
    numbered: dict[int, str] = {}
    for program, name in found.items():
        twins = [other for other, its in found.items() if its == name]
        numbered[program] = f"{name} #{twins.index(program) + 1}" if names.count(name) > 1 else name
    return numbered


def _ordered(rows: Sequence[_Row], seconds: Sequence[float], parents: Sequence[int]) -> list[FlameNode]:
    """Each before those inside it, the longest first; what was put together comes last."""
    inside: dict[int, list[int]] = {}
    for i, parent in enumerate(parents):
        inside.setdefault(parent, []).append(i)
    made: list[FlameNode] = []
    waiting = [(0, -1)]
    while waiting:
        index, parent = waiting.pop()
        name, kind, own, op, frame, count = rows[index]
        made.append(FlameNode(name, kind, seconds[index], own, parent, op, frame, count))
        if index in inside:
            below = sorted(inside[index], key=lambda i: (rows[i].kind == "more", -seconds[i], rows[i].name))
            waiting += [(i, len(made) - 1) for i in reversed(below)]
    return made


def _plain(name: str) -> str:
    """A name as one step of a collapsed stack: `;` is between steps, a line is one stack."""
    return " ".join(name.replace(";", ",").split()) or "?"
