"""Of each node of a later stage, the equations that it comes from, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from explorer.model.cached import cached_property
from explorer.model.graph import Ints

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
