"""What a kernel does for several places of the program, piece by piece: each with its stack and its scope."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from explorer.analysis.cost.lines import splitting
from explorer.analysis.links.provenance import phase
from explorer.analysis.links.source_paths import named_scopes
from explorer.model.capture import Capture
from explorer.model.graph import Frame, Graph
from explorer.model.results.profile_rows import OpTime

__all__ = ["Piece", "pieces_of"]


class Piece(NamedTuple):
    """The part of an op's seconds that comes from one stack and one scope; `op` is its index.

    Where a program computes gradients, the scope begins with its phase: `forward`, `backward` or `update`.
    """

    op: int
    seconds: float
    stack: tuple[Frame, ...]
    scope: str


def pieces_of(ops: Sequence[OpTime], captures: Mapping[int, Capture]) -> list[Piece]:
    """The ops in pieces, split as their lines are; what no capture tells more of is one piece. They sum to the ops."""
    by_program = {program: _Places(capture) for program, capture in captures.items()}
    found: list[Piece] = []
    for index, op in enumerate(ops):
        places = by_program.get(op.program)
        parts = places.of(op.name) if places is not None else ()
        whole = sum(seconds for seconds, _, _ in parts)
        if not whole > 0:
            found.append(Piece(index, op.seconds, op.stack, op.scope))
        for seconds, stack, scope in parts if whole > 0 else ():
            found.append(Piece(index, op.seconds * seconds / whole, stack or op.stack, scope if stack else op.scope))
    return found


class _Places:
    """Where the instructions inside each kernel of one program come from."""

    def __init__(self, capture: Capture) -> None:
        self.split = split = splitting(capture)
        self.graph = graph = split.graph
        self.jaxpr = capture.jaxpr.graph if split.lost else graph
        self.stacks: dict[tuple[int, int], tuple[Frame, ...]] = {}
        self.scopes: dict[str, str] = {}
        self.differentiates = any(phase(scope) == "backward" for scope in graph.scopes)
        self.parts: dict[str, list[tuple[float, int]]] = defaultdict(list)
        times = split.times()
        if times is None:
            return
        pairs, at = np.unique(times[0].astype(np.int64) * len(graph) + times[1], return_inverse=True)
        seconds = np.bincount(at, times[2], len(pairs))
        for pair, part in zip(pairs.tolist(), seconds.tolist(), strict=True):
            if part > 0:
                kernel, node = divmod(int(pair), len(graph))
                self.parts[graph.names[kernel]].append((part, node))

    def of(self, kernel: str) -> list[tuple[float, tuple[Frame, ...], str]]:
        """Of a kernel, seconds with stack and scope, those of one place together."""
        found: dict[tuple[int, str], list[float]] = {}
        stacks: dict[tuple[int, str], tuple[Frame, ...]] = {}
        for seconds, node in self.parts.get(kernel, ()):
            stack, scope = self.place(node)
            found.setdefault((id(stack), scope), []).append(seconds)
            stacks[id(stack), scope] = stack
        return [(sum(seconds), stacks[key], key[1]) for key, seconds in found.items()]

    def place(self, node: int) -> tuple[tuple[Frame, ...], str]:
        """An instruction's own place, or that of what it belongs to; an equation's where it was lost on the way."""
        at = int(self.split.by[node])
        row = self.split.lost.get(at)
        if at < 0:
            return (), ""
        if row is not None:
            return self.stack(self.jaxpr, row, 1), self.scope(self.jaxpr, row)
        return self.stack(self.graph, at, 0), self.scope(self.graph, at)

    def stack(self, graph: Graph, node: int, stage: int) -> tuple[Frame, ...]:
        """One object for one frame: that is what it is known by."""
        key = (int(graph.frame[node]), stage)
        if key not in self.stacks:
            self.stacks[key] = graph.stack(key[0])
        return self.stacks[key]

    def scope(self, graph: Graph, node: int) -> str:
        path = graph.scopes[int(graph.scope[node])]
        if path not in self.scopes:
            known = (phase(path) or "update",) if self.differentiates else ()
            self.scopes[path] = "/".join((*known, *named_scopes(path)))
        return self.scopes[path]
