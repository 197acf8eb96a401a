"""Links between the stages of a capture: the equations of each node, and the grade of each link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from explorer.errors import ForeignNodeError, UnknownNameError
from explorer.model.declared import cached_property
from explorer.model.graph import Graph, Ints, Node

Grades = NDArray[np.int8]

GRADES = ("unknown", "inferred", "exact")
"""Names of the codes of `EquationSets.grade`, weakest first."""
UNKNOWN, INFERRED, EXACT = range(3)


@dataclass(frozen=True, eq=False)
class EquationSets:
    """Nodes of the first stage (equations, arguments) that each node of a later stage comes from.

    Equal sets are stored once: 100,000 instructions are four columns.

    Args:
        code: Index of each node's set, -1 for none, int32 of shape `[n]`.
        start, node: Compressed rows, int32 of shapes `[sets + 1]` and `[members]`: set `i` is the rows
            `node[start[i]:start[i + 1]]` of the first stage, ascending. No set is empty and no two are equal.
        grade: Index into `GRADES` for each node, int8 of shape `[n]`. An `exact` node comes from every equation of its
            set, because the compiler merged them. An `inferred` node comes from one or more of them. An `unknown` node
            has no set.
    """

    code: Ints
    start: Ints
    node: Ints
    grade: Grades

    def __str__(self) -> str:
        counts = np.bincount(self.grade, minlength=len(GRADES)).tolist()
        return ", ".join(f"{counts[grade]} {GRADES[grade]}" for grade in reversed(range(len(GRADES))) if counts[grade])

    def __repr__(self) -> str:
        return f"EquationSets({self})"

    @staticmethod
    def none(count: int) -> EquationSets:
        """Return columns for `count` nodes without sets; all grades are `unknown`."""
        nothing = np.zeros(0, np.int32)
        return EquationSets.of_pairs(nothing, nothing, np.zeros(count, np.int8))

    @staticmethod
    def of_pairs(row: Sequence[int] | Ints, equation: Sequence[int] | Ints, grade: Grades) -> EquationSets:
        """Return the sets given by pairs of a node's row and an equation's row, in any order, with or without repeats.

        Args:
            row, equation: Rows of the later and of the first stage, shape `[pairs]`.
            grade: Grade of each node of the later stage, shape `[n]`; a node without a pair becomes `unknown`.

        Example:
            >>> sets = EquationSets.of_pairs([0, 2, 2, 3, 3], [7, 4, 7, 7, 4], np.full(5, EXACT, np.int8))
            >>> [sets.of(row).tolist() for row in range(5)], sets.grade.tolist()
            ([[7], [], [4, 7], [4, 7], []], [2, 0, 2, 2, 0])
        """
        count = len(grade)
        rows, equations = np.asarray(row, np.int64), np.asarray(equation, np.int64)
        width = int(equations.max(initial=0)) + 1
        # One int64 for each pair, so that one sort orders the pairs and drops repeats.
        pairs = np.unique(rows * width + equations)
        rows, equations = pairs // width, (pairs % width).astype(np.int32)
        begin = np.searchsorted(rows, np.arange(count + 1))
        lengths = np.diff(begin)
        code = np.full(count, -1, np.int32)
        # Nearly all nodes come from one equation: only the rest is compared set by set.
        single = np.flatnonzero(lengths == 1)
        alone, code[single] = np.unique(equations[begin[single]], return_inverse=True)
        several: dict[bytes, int] = {}
        for i in np.flatnonzero(lengths > 1).tolist():
            members = equations[begin[i] : begin[i + 1]].tobytes()
            code[i] = several.setdefault(members, len(alone) + len(several))
        node = np.concatenate([alone, *(np.frombuffer(members, np.int32) for members in several)])
        sizes = np.asarray([0, *[1] * len(alone), *(len(members) // 4 for members in several)], np.int32)
        start = np.cumsum(sizes, dtype=np.int32)
        return EquationSets(code, start, node.astype(np.int32), np.where(code < 0, UNKNOWN, grade).astype(np.int8))

    @staticmethod
    def of_codes(code: Sequence[int] | Ints, members: Sequence[Sequence[int]], grade: Grades) -> EquationSets:
        """Return the sets in which node `i` has the rows `members[code[i]]`; nodes with equal sets share one.

        Args:
            code: Index into `members` for each node, -1 for none, shape `[n]`.
            members: Rows of the first stage for each set, in any order, with or without repeats.
            grade: As in `of_pairs`.

        Example:
            >>> sets = EquationSets.of_codes([1, -1, 0, 1, 2], [[7], [7, 4], []], np.full(5, EXACT, np.int8))
            >>> [sets.of(row).tolist() for row in range(5)]
            [[4, 7], [], [7], [4, 7], []]
        """
        counts = np.fromiter(map(len, members), np.int32, len(members))
        owner = np.repeat(np.arange(len(members), dtype=np.int32), counts)
        equation = np.fromiter(chain.from_iterable(members), np.int32, len(owner))
        one_each = EquationSets.of_pairs(owner, equation, np.zeros(len(members), np.int8))
        # Code -1 takes the entry appended at the end.
        codes = np.append(one_each.code, np.int32(-1))[np.asarray(code, np.int64)]
        used, numbers = np.unique(codes[codes >= 0], return_inverse=True)
        codes[codes >= 0] = numbers
        sizes = np.diff(one_each.start)[used]
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        at = np.repeat(one_each.start[used] - start[:-1], sizes) + np.arange(int(start[-1]))
        grades = np.where(codes < 0, UNKNOWN, grade).astype(np.int8)
        return EquationSets(codes, start, one_each.node[at], grades)

    def __len__(self) -> int:
        return len(self.code)

    def fits(self, nodes: int, equations: int) -> bool:
        """Return True if the columns are valid for `nodes` nodes and a first stage of `equations` nodes."""
        start, sets = self.start, len(self.start) - 1
        if (
            len(self.code) != nodes
            or len(self.grade) != nodes
            or sets < 0
            or (start[0], start[-1]) != (0, len(self.node))
        ):
            return False
        limits = ((self.code, -1, sets), (self.node, 0, equations), (self.grade, 0, len(GRADES)))
        inside = all(not len(column) or lowest <= column.min() <= column.max() < end for column, lowest, end in limits)
        return inside and bool((np.diff(start) > 0).all())

    def of(self, row: int) -> Ints:
        """Return the rows of the first stage that a node comes from, ascending; empty if unknown."""
        code = int(self.code[row])
        return self.node[self.start[code] : self.start[code + 1]] if code >= 0 else self.node[:0]

    @cached_property
    def size(self) -> Ints:
        """Return the number of rows in each node's set, shape `[n]`; 0 without a set."""
        # The 0 at the end is for code -1, a node without a set.
        return np.append(np.diff(self.start), 0).astype(np.int32)[self.code]

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """Return all pairs of a node and one of its equations, as two columns `(node, equation)`.

        The pairs are ordered by node, then by equation.
        """
        rows, sizes = np.arange(len(self.code), dtype=np.int32), self.size
        first = self.start[self.code] - (np.cumsum(sizes, dtype=np.int64) - sizes)
        return np.repeat(rows, sizes), self.node[np.repeat(first, sizes) + np.arange(int(sizes.sum()))]

    def rows_of(self, equations: int) -> tuple[Ints, Ints]:
        """Return the nodes that come from each row of the first stage, which has `equations` rows.

        The result is compressed rows `(start, node)`: row `i` has the nodes `node[start[i]:start[i + 1]]`, ascending.
        """
        row, equation = self.pairs
        # Stable, so that the nodes of an equation stay ascending.
        order = np.argsort(equation, kind="stable")
        return np.searchsorted(equation[order], np.arange(equations + 1)).astype(np.int32), row[order]

    def only(self, grade: int) -> EquationSets:
        """Return a copy in which only nodes of this grade (an index into `GRADES`) have a set."""
        row, equation = self.pairs
        is_kept = self.grade[row] == grade
        return EquationSets.of_pairs(row[is_kept], equation[is_kept], self.grade)


@dataclass(frozen=True, eq=False)
class Links:
    """Links between the nodes of a capture's stages; each stage is linked to the first one.

    Args:
        graphs: Graph of each stage, by name, in the compiler's order.
        sets: Equation sets of each stage but the first, by name.

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
        """Return the name of the stage that all others are linked to; empty without stages."""
        return next(iter(self.graphs), "")

    def linked(self, node: Node, stage: str) -> tuple[Node, ...]:
        """Return the nodes of `stage` linked to `node`, in program order; `node` itself in its own stage.

        Raises:
            ForeignNodeError: The node belongs to none of these stages.
        """
        home = self._home(node)
        if home == stage:
            return (node,)
        rows, first = [node.index], self.first
        # Two later stages have only their equations in common.
        if first not in (home, stage):
            rows, home = self.rows(home, rows, first), first
        return tuple(Node(self.graphs[stage], i) for i in self.rows(home, rows, stage))

    def grade(self, node: Node, stage: str) -> str:
        """Return the grade of the link from `node` to `stage`: `exact`, `inferred` or `unknown`.

        The grade is that of the weakest link on the way. Between two later stages a link is exact only if one node is
        left: both stages know their equations, but not which part of an equation the other node is.

        Raises:
            ForeignNodeError: The node belongs to none of these stages.
            UnknownNameError: No stage is named `stage`.

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
        """Return the grade of each node's link to the first stage: indices into `GRADES`, shape `[n]`.

        Nodes of the first stage itself are exact if there is another stage, else unknown.
        """
        if stage != self.first:
            return self.sets[stage].grade
        return np.full(len(self.graphs[stage].names), EXACT if self.sets else UNKNOWN, np.int8)

    def rows(self, stage: str, rows: Sequence[int], to: str) -> list[int]:
        """Return the rows of `to` linked to any of `rows` of `stage`, ascending; `stage` or `to` is the first stage."""
        if stage != self.first:
            return sorted({i for row in rows for i in self.sets[stage].of(row).tolist()})
        start, nodes = self._by_equation(to)
        return sorted({i for row in rows for i in nodes[start[row] : start[row + 1]].tolist()})

    def table(self, stage: str, to: str) -> dict[int, list[int]]:
        """Return a dict from each linked row of `stage` to the rows of `to` that it is linked to, ascending.

        Equal lists are one object.
        """
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
        """Return for each row of `stage` the most equations that a linked node of `to` may equally come from.

        It is 1 for exact or no links; for a row of several equations it is their number.
        """
        sets = self.sets[to]
        row, equation = sets.pairs
        # An exact node belongs to each of its equations for certain.
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
        raise ForeignNodeError(f"{node.name} belongs to none of these stages: {', '.join(self.graphs)}.")

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
                # Equal lists are one object, because readers compare them by identity.
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
        """Return the nodes of `stage` that come from each node of the first one, as compressed rows `(start, node)`."""
        if stage not in self._rows:
            self._rows[stage] = self.sets[stage].rows_of(len(self.graphs[self.first].names))
        return self._rows[stage]
