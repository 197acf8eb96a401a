"""Which nodes of a capture's stages are the same operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from explorer.model.graph import Graph, Ints, Node


@dataclass(frozen=True, eq=False)
class Links:
    """The correspondence between the nodes of one capture's stages, each to the first stage's.

    Args:
        graphs: Of each stage, by name, in the compiler's order.
        keys: By stage, by the stage it is linked to (the first to all, all to the first): each node's key, shape `[n]`.
            Nodes with equal keys correspond; -1 for a node that corresponds to none.
        is_refined: By each stage but the first: which keys are so fine only because structure told nodes apart,
            shape `[keys + 1]`; the compiler's metadata alone does not.
        argument_sets: By stage, for each node the bits of the program's arguments that its value depends on; only of
            stages where it was needed to tell nodes apart.
    """

    graphs: Mapping[str, Graph]
    keys: Mapping[str, Mapping[str, Ints]]
    is_refined: Mapping[str, NDArray[np.bool_]]
    argument_sets: Mapping[str, Sequence[int]]
    _buckets: dict[tuple[str, str], tuple[Ints, Ints]] = field(default_factory=dict, init=False, repr=False)
    _tables: dict[tuple[str, str], dict[int, list[int]]] = field(default_factory=dict, init=False, repr=False)

    @property
    def first(self) -> str:
        """The stage that all others are linked to; empty if there is none."""
        return next(iter(self.graphs), "")

    def linked(self, node: Node, stage: str) -> tuple[Node, ...]:
        """The nodes of `stage` that are the same operation as `node`, in program order; empty if none is known."""
        home = next(name for name, graph in self.graphs.items() if graph is node.graph)
        if home == stage:
            return (node,)
        rows, first = [node.index], self.first
        if first not in (home, stage):
            rows, home = self.rows(home, rows, first), first
        return tuple(Node(self.graphs[stage], i) for i in self.rows(home, rows, stage))

    def rows(self, stage: str, rows: Sequence[int], to: str) -> list[int]:
        """The rows of `to` that correspond to any of `rows` of `stage`, ascending; one of both is the first stage."""
        keys = {int(self.keys[stage][to][row]) for row in rows} - {-1}
        start, nodes = self._by_key(to, stage)
        return sorted(int(row) for key in keys for row in nodes[start[key] : start[key + 1]])

    def table(self, stage: str, to: str) -> dict[int, list[int]]:
        """The rows of `to` for every row of `stage` that has any; rows with one key share one list."""
        table = self._tables.get((stage, to))
        if table is None:
            direct = self.first in (stage, to)
            table = self._tables[stage, to] = self._direct_table(stage, to) if direct else self._joined_table(stage, to)
        return table

    def equation_counts(self, stage: str, to: str) -> list[int]:
        """For each row of a stage, how many equations of the first stage its nodes of `to` may belong to.

        1 where the compiler's metadata says which, 0 where only structure tells it apart from others.
        """
        keys, is_refined = self.keys[self.first][to], self.is_refined[to]
        many = np.append(np.bincount(keys[keys >= 0], minlength=len(is_refined)), 0)[keys]
        many[(many == 1) & is_refined[keys]] = 0
        many[keys < 0] = 1
        if stage == self.first:
            return many.tolist()
        counts = np.ones(len(self.keys[stage][self.first]), np.int64)
        for row, rows in self.table(stage, self.first).items():
            counts[row] = many[rows[0]] if len(rows) == 1 else len(rows)
        return counts.tolist()

    def _direct_table(self, stage: str, to: str) -> dict[int, list[int]]:
        start, nodes = (column.tolist() for column in self._by_key(to, stage))
        of_key: list[list[int]] = [nodes[start[key] : start[key + 1]] for key in range(len(start) - 1)]
        keys: list[int] = self.keys[stage][to].tolist()
        return {row: rows for row, key in enumerate(keys) if key >= 0 and (rows := of_key[key])}

    def _joined_table(self, stage: str, to: str) -> dict[int, list[int]]:
        through, onwards = self.table(stage, self.first), self.table(self.first, to)
        joined: dict[int, list[int]] = {}  # by the id of a list that rows share
        for middle in through.values():
            if id(middle) not in joined:
                several = len(middle) > 1
                joined[id(middle)] = (
                    sorted({i for row in middle for i in onwards.get(row, ())})
                    if several
                    else onwards.get(middle[0], [])
                )
        return {row: rows for row, middle in through.items() if (rows := joined[id(middle)])}

    def _by_key(self, stage: str, to: str) -> tuple[Ints, Ints]:
        """Where each key starts among the nodes of `stage` sorted by key, and these nodes."""
        if (stage, to) not in self._buckets:
            keys = self.keys[stage][to]
            most = max(int(keys.max(initial=-1)), int(self.keys[to][stage].max(initial=-1)))
            order = np.argsort(keys, kind="stable").astype(np.int32)
            start = np.searchsorted(keys[order], np.arange(most + 2)).astype(np.int32)
            self._buckets[stage, to] = (start, order)
        return self._buckets[stage, to]
