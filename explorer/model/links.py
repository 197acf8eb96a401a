"""Which nodes of a capture's stages are the same operation, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from explorer.errors import ForeignNodeError, UnknownNameError
from explorer.model.equation_sets import EXACT, GRADES, INFERRED, UNKNOWN, EquationSets, Grades
from explorer.model.graph import Graph, Ints, Node


@dataclass(frozen=True, eq=False)
class Links:
    """The correspondence between the nodes of one capture's stages, each to the first stage's.

    Args:
        graphs: Of each stage, by name, in the compiler's order.
        sets: By each stage but the first: the nodes of the first that each of its nodes comes from.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> capture = explorer.explore(lambda x: jnp.sin(x) * 2, jnp.ones(8))
        >>> sine, = capture.jaxpr.graph.where("op:sin")
        >>> capture.links.first, [node.op for node in capture.links.linked(sine, "stablehlo")]
        ('jaxpr', ['stablehlo.sine'])
    """

    graphs: Mapping[str, Graph]
    sets: Mapping[str, EquationSets]
    _tables: dict[tuple[str, str], dict[int, list[int]]] = field(default_factory=dict, init=False, repr=False)
    _rows: dict[str, tuple[Ints, Ints]] = field(default_factory=dict, init=False, repr=False)

    def __repr__(self) -> str:
        return (
            f"Links(to {self.first or 'no stage'}{''.join(f'; {stage}: {sets}' for stage, sets in self.sets.items())})"
        )

    @property
    def first(self) -> str:
        """The stage that all others are linked to; empty if there is none."""
        return next(iter(self.graphs), "")

    def linked(self, node: Node, stage: str) -> tuple[Node, ...]:
        """The nodes of `stage` that are the same operation as `node`, in program order; empty if none is known."""
        home = self._home(node)
        if home == stage:
            return (node,)
        rows, first = [node.index], self.first
        if first not in (home, stage):
            rows, home = self.rows(home, rows, first), first
        return tuple(Node(self.graphs[stage], i) for i in self.rows(home, rows, stage))

    def grade(self, node: Node, stage: str) -> str:
        """How sure it is which nodes of `stage` are the same operation as `node`: `exact`, `inferred` or `unknown`.

        It is the weakest of the links that lead there. Between two later stages it is exact only where one node is
        left: both know their equations, not which part of an equation the other is.

        Raises:
            ForeignNodeError: The node is of no stage of these links.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> capture = explorer.explore(lambda x: jnp.sin(x) * 2, jnp.ones(8))
            >>> sine = capture.jaxpr.graph.where("op:sin")[0]
            >>> capture.links.grade(sine, "jaxpr"), capture.links.grade(sine, "hlo") in ("exact", "inferred")
            ('exact', True)
        """
        home = self._home(node)
        if home == stage:
            return GRADES[EXACT]
        if stage not in self.graphs:
            raise UnknownNameError(f"there is no stage {stage!r}; there are: {', '.join(self.graphs)}")
        if stage == self.first:
            return GRADES[int(self.sets[home].grade[node.index])]
        rows = [there.index for there in self.linked(node, stage)]
        weakest = int(self.sets[stage].grade[rows].min()) if rows else UNKNOWN
        if home != self.first and rows:
            own = int(self.sets[home].grade[node.index])
            weakest = min(weakest, own, EXACT if len(rows) == 1 else INFERRED)
        return GRADES[weakest]

    def grades(self, stage: str) -> Grades:
        """How sure the links of a stage's nodes to the first stage are: indices into `GRADES`, shape `[n]`.

        The first stage's own nodes are exact if there is another stage to be linked to, else unknown.
        """
        if stage != self.first:
            return self.sets[stage].grade
        return np.full(len(self.graphs[stage].names), EXACT if self.sets else UNKNOWN, np.int8)

    def rows(self, stage: str, rows: Sequence[int], to: str) -> list[int]:
        """The rows of `to` that correspond to any of `rows` of `stage`, ascending; one of both is the first stage."""
        if stage != self.first:
            return sorted({i for row in rows for i in self.sets[stage].of(row).tolist()})
        start, nodes = self._by_equation(to)
        return sorted({i for row in rows for i in nodes[start[row] : start[row + 1]].tolist()})

    def table(self, stage: str, to: str) -> dict[int, list[int]]:
        """The rows of `to` for every row of `stage` that has any; rows with equal ones share one list."""
        table = self._tables.get((stage, to))
        if table is None:
            if to == self.first:
                table = self._table_of_sets(self.sets[stage])
            elif stage == self.first:
                table = self._table_of_equations(to)
            else:
                table = self._joined_table(stage, to)
            self._tables[stage, to] = table
        return table

    def equation_counts(self, stage: str, to: str) -> list[int]:
        """For each row of a stage, how many equations of the first stage its nodes of `to` may belong to."""
        sets = self.sets[to]
        row, equation = sets.pairs
        # What comes from all of its equations belongs to each of them for certain.
        many = np.where(sets.grade == EXACT, 1, sets.size)[row]
        most = np.ones(len(self.graphs[self.first].names), np.int64)
        np.maximum.at(most, equation, many)
        if stage == self.first:
            return most.tolist()
        counts = np.ones(len(self.graphs[stage].names), np.int64)
        for at, rows in self.table(stage, self.first).items():
            counts[at] = most[rows[0]] if len(rows) == 1 else len(rows)
        return counts.tolist()

    def _home(self, node: Node) -> str:
        for name, graph in self.graphs.items():
            if graph is node.graph:
                return name
        raise ForeignNodeError(f"{node.name} is no node of these links' stages: {', '.join(self.graphs)}.")

    def _table_of_sets(self, sets: EquationSets) -> dict[int, list[int]]:
        start, nodes = sets.start.tolist(), sets.node.tolist()
        lists: list[list[int]] = [nodes[start[code] : start[code + 1]] for code in range(len(start) - 1)]
        return {row: lists[code] for row, code in enumerate(sets.code.tolist()) if code >= 0}

    def _table_of_equations(self, to: str) -> dict[int, list[int]]:
        start, nodes = (column.tolist() for column in self._by_equation(to))
        shared: dict[tuple[int, ...], list[int]] = {}
        table: dict[int, list[int]] = {}
        for row in range(len(start) - 1):
            if rows := nodes[start[row] : start[row + 1]]:
                table[row] = shared.setdefault(tuple(rows), rows)
        return table

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

    def _by_equation(self, stage: str) -> tuple[Ints, Ints]:
        """Compressed rows: of each node of the first stage, those of `stage` that come from it."""
        if stage not in self._rows:
            self._rows[stage] = self.sets[stage].rows_of(len(self.graphs[self.first].names))
        return self._rows[stage]
