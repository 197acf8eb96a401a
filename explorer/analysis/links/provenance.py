"""Which nodes of different stages are the same operation, and where the nodes without a place belong.

Every stage knows, for most of its nodes, where the innermost expression of the user's source begins, and the primitive
in its scope path. Both survive lowering and, where fusion kept the metadata, compilation; so equal (place, phase,
primitive) is the link. Only the beginning of the expression counts: XLA keeps one end for all that begin together.

An unrolled loop or a function called twice makes many nodes of one key. They are told apart by their number of
elements, then by their order if a kind of instruction is there as often as the equation; else they correspond together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.links.dependence import reach, serve
from explorer.analysis.links.keys import Keys, is_equation, phase
from explorer.model.graph import Graph, Ints, Node
from explorer.model.types import elements

__all__ = ["Links", "elements", "is_equation", "phase", "placed", "stacks"]


class Links:
    """The correspondence between the nodes of one capture's stages, each to the first stage's.

    Args:
        graphs: Of each stage, by name, in the compiler's order.
        texts: Of each stage: which parameter is which argument stands there alone.
    """

    def __init__(self, graphs: Mapping[str, Graph], texts: Mapping[str, str]) -> None:
        self._graphs = dict(graphs)
        self._texts = texts
        self._first = next(iter(graphs), "")
        self._buckets: dict[tuple[str, str], tuple[Ints, Ints]] = {}
        self._tables: dict[tuple[str, str], dict[int, list[int]]] = {}
        self._bit: dict[str, int] = {}  # of each argument, by its path
        self._reach: dict[str, list[int]] = {}
        self._serve: dict[str, list[int]] = {}
        self._told_apart: dict[str, NDArray[np.bool_]] = {}  # by stage: the keys that the structure made finer

    @cached_property
    def keys(self) -> Mapping[str, Mapping[str, Ints]]:
        """By stage, by the stage it is linked to (the first to all, all to the first): each node's key, shape `[n]`.

        Keys are equal where nodes correspond; -1 for a node without one.
        """
        keys: dict[str, dict[str, Ints]] = {name: {} for name in self._graphs}
        if not self._graphs:
            return keys
        first = Keys(self._graphs[self._first])
        for name in [name for name in self._graphs if name != self._first]:
            pair = first.pair(self._graphs[name], lambda name=name: self._dependencies(name))
            keys[self._first][name], keys[name][self._first], self._told_apart[name] = pair
        return keys

    def reach(self, stage: str) -> Sequence[int]:
        """For each node of a stage, the set of the program's arguments that its value depends on, as bits."""
        if stage not in self._reach:
            self._reach[stage] = reach(self._graphs[stage], self._texts[stage], self._bit)
        return self._reach[stage]

    def _dependencies(self, stage: str) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
        """For the first stage's nodes and another's, a code for the set of arguments that each depends on, then of
        the results that depend on it.

        They tell the iterations of an unrolled loop apart, and which of them is computed several times.
        """
        for name in (self._first, stage):
            if name not in self._serve:
                self._serve[name] = serve(self._graphs[name], self._texts[name])
        reaches = _set_codes([self.reach(name) for name in (self._first, stage)])
        return reaches, _set_codes([self._serve[name] for name in (self._first, stage)])

    def linked(self, node: Node, stage: str) -> tuple[Node, ...]:
        """The nodes of `stage` that are the same operation as `node`, in program order; empty where none is known."""
        home = next(name for name, graph in self._graphs.items() if graph is node.graph)
        rows = [node.index]
        if home == stage:
            return (node,)
        if self._first not in (home, stage):
            rows, home = self.rows(home, rows, self._first), self._first
        return tuple(Node(self._graphs[stage], i) for i in self.rows(home, rows, stage))

    def rows(self, stage: str, rows: Sequence[int], to: str) -> list[int]:
        """The rows of `to` that correspond to any of some rows of `stage`, in order; one of both is the first stage."""
        keys = {int(self.keys[stage][to][row]) for row in rows} - {-1}
        start, there = self._sorted(to, stage)
        return sorted(int(row) for key in keys for row in there[start[key] : start[key + 1]])

    def table(self, stage: str, to: str) -> dict[int, list[int]]:
        """The rows of `to` for every row of `stage` that has one, all at once."""
        if (stage, to) not in self._tables:
            self._tables[stage, to] = self._table(stage, to)
        return self._tables[stage, to]

    def _table(self, stage: str, to: str) -> dict[int, list[int]]:
        # Rows of one key share one list: what is asked of it, is asked once.
        if self._first not in (stage, to):
            through, inner = self.table(stage, self._first), self.table(self._first, to)
            joined: dict[int, list[int]] = {}
            for ones in through.values():
                if id(ones) not in joined:
                    several = len(ones) > 1
                    found = (
                        sorted({i for one in ones for i in inner.get(one, ())}) if several else inner.get(ones[0], [])
                    )
                    joined[id(ones)] = found
            return {row: rows for row, ones in through.items() if (rows := joined[id(ones)])}
        start, there = (column.tolist() for column in self._sorted(to, stage))
        of_key: list[list[int]] = [there[start[key] : start[key + 1]] for key in range(len(start) - 1)]
        keys: list[int] = self.keys[stage][to].tolist()
        return {row: rows for row, key in enumerate(keys) if key >= 0 and (rows := of_key[key])}

    def sharing(self, stage: str, to: str) -> list[int]:
        """For each row of a stage, how many equations of the first stage its nodes of `to` may be of.

        1 where the compiler's metadata says which, 0 where only the structure tells it apart from others.
        """
        keys = self.keys[self._first][to]
        many = np.append(np.bincount(keys[keys >= 0], minlength=len(self._told_apart[to])), 0)[keys]
        many[(many == 1) & self._told_apart[to][keys]] = 0
        many[keys < 0] = 1
        if stage == self._first:
            return many.tolist()
        found = np.ones(len(self._graphs[stage]), np.int64)
        for row, rows in self.table(stage, self._first).items():
            found[row] = many[rows[0]] if len(rows) == 1 else len(rows)
        return found.tolist()

    def _sorted(self, stage: str, to: str) -> tuple[Ints, Ints]:
        """The nodes of a stage sorted by key, and where each key starts."""
        if (stage, to) not in self._buckets:
            keys = self.keys[stage][to]
            most = max(int(keys.max(initial=-1)), int(self.keys[to][stage].max(initial=-1)))
            order = np.argsort(keys, kind="stable").astype(np.int32)
            start = np.searchsorted(keys[order], np.arange(most + 2)).astype(np.int32)
            self._buckets[stage, to] = (start, order)
        return self._buckets[stage, to]


def _set_codes(found: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Equal sets, equal codes; -1 for the empty set."""
    code: dict[int, int] = {}
    here, there = (np.asarray([code.setdefault(s, len(code)) if s else -1 for s in sets], np.int32) for sets in found)
    return here, there


def placed(graph: Graph, known: Sequence[int] = ()) -> Ints:
    """For each node, the node whose place it has: itself, or what it belongs to by structure; -1 for unmapped.

    A node without a frame inside a fusion or a loop body belongs to the caller, any other to its first user, then to
    its first operand: parameters, constants, tuples and layout plumbing get a place so.

    Args:
        graph: Of any stage.
        known: Nodes without a frame whose place is known from elsewhere.
    """
    at = np.where(graph.frame >= 0, np.arange(len(graph), dtype=np.int32), np.int32(-1))
    at[list(known)] = list(known)
    caller = np.asarray([group.caller for group in graph.groups] or [-1], np.int32)[graph.group]
    caller[graph.group < 0] = -1
    user_start, user = graph.user_columns
    first_user = _first(user_start, user)
    first_operand = _first(graph.operand_start, graph.operand)
    # Once more the caller: what is inside of one that found its place only then.
    for source in (caller, first_user, first_operand, caller):
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


_DEEPEST = 1_000  # calls: Python's own limit; a chain or a cycle in damaged input is cut there


def stacks(graph: Graph) -> Sequence[tuple[int, ...]]:
    """For each frame, the indices of its stack, outermost first."""
    known: list[tuple[int, ...] | None] = [None] * len(graph.frames)
    for i in range(len(known)):
        walk: list[int] = []
        seen: set[int] = set()
        at = i
        while 0 <= at < len(known) and known[at] is None and len(walk) < _DEEPEST and at not in seen:
            walk.append(at)
            seen.add(at)
            at = graph.frames[at].parent
        base = (known[at] or ()) if 0 <= at < len(known) else ()
        for frame in reversed(walk):
            base = known[frame] = (*base[-_DEEPEST:], frame)
    return [stack or () for stack in known]
