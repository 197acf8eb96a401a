"""Links between a capture's stages: the equations that each node comes from, and how sure that is."""

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
"""What the codes of `EquationSets.grade` mean, the weakest first."""
UNKNOWN, INFERRED, EXACT = range(3)


@dataclass(frozen=True, eq=False)
class EquationSets:
    """For each node of a later stage, the nodes of the first stage (equations, arguments) that it comes from.

    Equal sets are kept once: 100,000 instructions are four columns.

    Args:
        code: The index of each node's set, -1 for none, int32 of shape `[n]`.
        start, node: Compressed rows, int32 of shapes `[sets + 1]` and `[members]`: set `i` is the rows
            `node[start[i]:start[i + 1]]` of the first stage, ascending. None is empty, no two are equal.
        grade: Of each node, an index into `GRADES`, int8 of shape `[n]`. An `exact` node comes from every equation of
            its set (the compiler merged them); an `inferred` one from one of them or more, which one isn't known;
            `unknown` is what has no set.
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
        """Sets of `count` nodes of which nothing is known."""
        nothing = np.zeros(0, np.int32)
        return EquationSets.of_pairs(nothing, nothing, np.zeros(count, np.int8))

    @staticmethod
    def of_pairs(row: Sequence[int] | Ints, equation: Sequence[int] | Ints, grade: Grades) -> EquationSets:
        """The sets that pairs of a node's row and an equation's row make, in any order, repeats included.

        Args:
            row, equation: Rows of the later and of the first stage, shape `[pairs]`.
            grade: Of each node of the later stage, shape `[n]`; a node without any pair becomes `unknown`.

        Example:
            >>> sets = EquationSets.of_pairs([0, 2, 2, 3, 3], [7, 4, 7, 7, 4], np.full(5, EXACT, np.int8))
            >>> [sets.of(row).tolist() for row in range(5)], sets.grade.tolist()
            ([[7], [], [4, 7], [4, 7], []], [2, 0, 2, 2, 0])
        """
        count = len(grade)
        rows, equations = np.asarray(row, np.int64), np.asarray(equation, np.int64)
        width = int(equations.max(initial=0)) + 1
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
        """The sets of nodes that share them: n copies of a function that is called n times have n equations each.

        Args:
            code: Of each node an index into `members`, -1 for none, shape `[n]`.
            members: The rows of the first stage of each set, in any order, repeats included.
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
        codes = np.append(one_each.code, np.int32(-1))[np.asarray(code, np.int64)]
        used, numbers = np.unique(codes[codes >= 0], return_inverse=True)
        codes[codes >= 0] = numbers
        sizes = np.diff(one_each.start)[used]
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        at = np.repeat(one_each.start[used] - start[:-1], sizes) + np.arange(int(start[-1]))
        grades = np.where(codes < 0, UNKNOWN, grade).astype(np.int8)
        return EquationSets(codes, start, one_each.node[at], grades)

    def __len__(self) -> int:
        """How many nodes the stage has."""
        return len(self.code)

    def fits(self, nodes: int, equations: int) -> bool:
        """Whether these can be the sets of a stage of so many nodes, linked to a first one of so many."""
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
        """The rows of the first stage that a node comes from, ascending; empty if that is unknown."""
        code = int(self.code[row])
        return self.node[self.start[code] : self.start[code + 1]] if code >= 0 else self.node[:0]

    @cached_property
    def size(self) -> Ints:
        """How many equations each node's set has, shape `[n]`."""
        return np.append(np.diff(self.start), 0).astype(np.int32)[self.code]

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """Every node with each equation of its set: two columns, by node, then by equation."""
        return self.pairs_of(np.arange(len(self.code), dtype=np.int32))

    def pairs_of(self, rows: Ints) -> tuple[Ints, Ints]:
        """Some nodes with each equation of their sets, in their order."""
        sizes = self.size[rows]
        first = self.start[self.code[rows]] - (np.cumsum(sizes, dtype=np.int64) - sizes)
        return np.repeat(rows, sizes), self.node[np.repeat(first, sizes) + np.arange(int(sizes.sum()))]

    def rows_of(self, equations: int) -> tuple[Ints, Ints]:
        """The sets turned around, as compressed rows: of each of `equations` nodes of the first stage, the nodes."""
        row, equation = self.pairs
        order = np.argsort(equation, kind="stable")
        return np.searchsorted(equation[order], np.arange(equations + 1)).astype(np.int32), row[order]

    def only(self, grade: int) -> EquationSets:
        """The sets of the nodes of one grade; the others have none."""
        row, equation = self.pairs
        is_kept = self.grade[row] == grade
        return EquationSets.of_pairs(row[is_kept], equation[is_kept], self.grade)


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
