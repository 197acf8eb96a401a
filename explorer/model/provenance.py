"""Which nodes of different stages are the same operation, and where the nodes without a place belong.

Every stage knows, for most of its nodes, the innermost line and columns of the user's source and the primitive in its
scope path. Both survive lowering and, where fusion kept the metadata, compilation; so equal (place, phase, primitive)
is the link. An unrolled loop or a function called twice makes many nodes of one key: of those with as many elements,
equally many in two stages correspond in order, otherwise each to all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from explorer.model.graph import Graph, Ints, Node

__all__ = ["Links", "elements", "phase", "placed", "stacks"]


def phase(scope: str) -> str:
    """`backward`, `forward` or empty: JAX marks what differentiation made as `transpose(jvp(…))` and `jvp(…)`."""
    if "transpose(" in scope:
        return "backward"
    return "forward" if "jvp(" in scope else ""


def elements(type_: str) -> int:
    """How many elements the first array of a type has, in any stage's notation: layouts and transposes keep that."""
    found = _SHAPE.search(type_)
    sizes = re.findall(r"\d+", found[1] or found[2] or "") if found else ()
    return math.prod(map(int, sizes))


_SHAPE = re.compile(r"\[([^\]]*)\]|tensor<((?:\d+x)*)")


class Links:
    """The correspondence between the nodes of one capture's stages.

    Args:
        graphs: Of each stage, by name, in the compiler's order.
    """

    def __init__(self, graphs: dict[str, Graph]) -> None:
        self._graphs = graphs
        self._codes: dict[tuple[object, ...], int] = {}
        self.keys: dict[str, Ints] = {name: self._keys_of(graph) for name, graph in graphs.items()}
        """By stage: each node's key, shape `[n]`, equal where nodes correspond; -1 for a node without one."""

    def linked(self, node: Node, stage: str) -> tuple[Node, ...]:
        """The nodes of `stage` that are the same operation as `node`, in program order; empty where none is known."""
        home = next(name for name, graph in self._graphs.items() if graph is node.graph)
        key = int(self.keys[home][node.index])
        if key < 0:
            return ()
        size = elements(node.type)
        here, there = self._rows(home, key), self._rows(stage, key)
        if len(here) > 1 or len(there) > 1:
            here, there = self._of_size(home, here, size), self._of_size(stage, there, size)
        if len(here) == len(there):
            there = there[here == node.index]
        return tuple(Node(self._graphs[stage], int(i)) for i in there)

    def _of_size(self, stage: str, rows: Ints, size: int) -> Ints:
        graph = self._graphs[stage]
        return rows[[elements(graph.types[int(graph.type[i])]) == size for i in rows]]

    def _rows(self, stage: str, key: int) -> Ints:
        start, rows = self._buckets[stage]
        return rows[start[key] : start[key + 1]]

    @cached_property
    def _buckets(self) -> dict[str, tuple[Ints, Ints]]:
        """By stage: the nodes sorted by key, and where each key starts."""
        buckets: dict[str, tuple[Ints, Ints]] = {}
        for name, keys in self.keys.items():
            order = np.argsort(keys, kind="stable").astype(np.int32)
            start = np.searchsorted(keys[order], np.arange(len(self._codes) + 1)).astype(np.int32)
            buckets[name] = (start, order)
        return buckets

    def _keys_of(self, graph: Graph) -> Ints:
        # Few distinct (frame, scope) pairs serve many nodes: make a key for each pair, then look it up by row.
        scopes = max(len(graph.scopes), 1)
        pair = graph.frame.astype(np.int64) * scopes + graph.scope
        pairs, row = np.unique(pair, return_inverse=True)
        codes = [-1 if p < 0 else self._code(graph, int(p // scopes), graph.scopes[int(p % scopes)]) for p in pairs]
        return np.asarray(codes, np.int32)[row] if len(codes) else np.zeros(0, np.int32)

    def _code(self, graph: Graph, frame: int, scope: str) -> int:
        place = graph.frames[frame]
        # XLA joins the paths of merged instructions with `;`: the last is the one that the merged one ends in.
        primitive = scope.rpartition("/")[2]
        if not primitive:
            return -1
        key = (place.file, place.line, place.column, place.end_line, place.end_column, phase(scope), primitive)
        return self._codes.setdefault(key, len(self._codes))


def placed(graph: Graph) -> Ints:
    """For each node, the node whose place it has: itself, or what it belongs to by structure; -1 for unmapped.

    A node without a frame inside a fusion or a loop body belongs to the caller, any other to its first user, then to
    its first operand: parameters, constants, tuples and layout plumbing get a place so.
    """
    at = np.where(graph.frame >= 0, np.arange(len(graph), dtype=np.int32), np.int32(-1))
    caller = np.asarray([group.caller for group in graph.groups] or [-1], np.int32)[graph.group]
    caller[graph.group < 0] = -1
    user_start, user = graph.user_columns
    first_user = _first(user_start, user)
    first_operand = _first(graph.operand_start, graph.operand)
    for source in (caller, first_user, first_operand):
        for _ in range(_ROUNDS):
            open_ = np.flatnonzero((at < 0) & (source >= 0))
            found = at[source[open_]]
            if not (found >= 0).any():
                break
            at[open_] = found
    return at


_ROUNDS = 8  # how far a place travels: a chain of this many plumbing nodes


def _first(start: Ints, values: Ints) -> Ints:
    """The first value of each compressed row, -1 for an empty row."""
    has = start[1:] > start[:-1]
    first = np.full(len(has), -1, np.int32)
    first[has] = values[start[:-1][has]]
    return first


def stacks(graph: Graph) -> Sequence[tuple[int, ...]]:
    """For each frame, the indices of its stack, outermost first; a cycle in damaged input ends the walk."""
    known: list[tuple[int, ...] | None] = [None] * len(graph.frames)
    for i in range(len(known)):
        walk: list[int] = []
        at = i
        while 0 <= at < len(known) and known[at] is None and at not in walk:
            walk.append(at)
            at = graph.frames[at].parent
        base = (known[at] or ()) if 0 <= at < len(known) else ()
        for frame in reversed(walk):
            base = known[frame] = (*base, frame)
    return [stack or () for stack in known]
