"""Instructions that do the work of an equation under the name of another.

XLA folds a transpose into the product before it and gives the new product the transpose's name: `(a @ b).T` is left
with one `dot` that is said to be the transpose. While it was a transpose, the passes show which product it took in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from explorer.model.equation_sets import EquationSets
from explorer.model.graph import Graph, Ints
from explorer.model.text_versions import Versions

Folded = Mapping[tuple[tuple[int, ...], str], tuple[int, ...]]
"""By the equations that an instruction is said to be of, and its operation: those whose work it does too."""

# What does much of the work. Others bear another's name too, as a sum whose factor was multiplied into it: that they do
# some of its work is less than to be of it.
_WORK = frozenset(("dot", "convolution", "fft", "sort", "reduce-window", "select-and-scatter", "scatter"))
_FURTHEST = 6  # instructions between one that is replaced and the one whose work it takes over


def folded_equations(versions: Versions) -> Folded:
    """What each pass folded, where one instruction of the same operation went into another's place.

    Args:
        versions: A module's snapshots, with the equations of their lines.
    """
    folded: dict[tuple[tuple[int, ...], str], tuple[int, ...]] = {}
    seen: set[tuple[int, int]] = set()
    if versions.equations is None:
        return folded
    code, op = versions.equations.code, versions.op
    for snapshot in range(len(versions.snapshots)):
        first = versions.snapshots[snapshot].first
        end = versions.snapshots[snapshot + 1].first if snapshot + 1 < len(versions.snapshots) else len(versions.lines)
        pairs = {pair for pair in zip(code[first:end].tolist(), op[first:end].tolist(), strict=True) if min(pair) >= 0}
        novel = {pair for pair in pairs - seen if versions.ops[pair[1]] in _WORK}
        seen |= pairs
        if snapshot and novel:
            for (named, operation), taken in _taken_over(versions, snapshot, novel):
                members = _members(versions.equations, named)
                folded[members, versions.ops[operation]] = _members(versions.equations, taken)
    return folded


def with_folded(sets: EquationSets, graph: Graph, folded: Folded) -> EquationSets:
    """The sets of a program's instructions with the equations that were folded into them.

    Args:
        sets: Of the nodes of `graph`.
        graph: The optimised program.
        folded: What its passes folded.
    """
    if not folded:
        return sets
    rows, equations = sets.pairs
    more: list[tuple[int, int]] = []
    for node in np.flatnonzero(sets.code >= 0).tolist():
        op, todo = graph.ops[int(graph.op[node])], [tuple(sets.of(node).tolist())]
        done: set[tuple[int, ...]] = set()
        while todo:  # what was folded may have taken in another before
            members = todo.pop()
            taken = folded.get((members, op))
            if taken is not None and members not in done:
                done.add(members)
                todo.append(taken)
                more += [(node, equation) for equation in taken]
    added = np.asarray(more, np.int32).reshape(-1, 2)
    return EquationSets.of_pairs(
        np.concatenate([rows, added[:, 0]]), np.concatenate([equations, added[:, 1]]), sets.grade
    )


def _members(sets: EquationSets, code: int) -> tuple[int, ...]:
    return tuple(sets.node[sets.start[code] : sets.start[code + 1]].tolist())


def _taken_over(
    versions: Versions, snapshot: int, novel: set[tuple[int, int]]
) -> Iterator[tuple[tuple[int, int], int]]:
    """For each new pair of a set's code and an operation, the set whose only instruction of this operation went in.

    It went in if it is gone after the pass, and was an operand of what had the name before, through nothing that stays.
    """
    assert versions.equations is not None
    before, after = versions.rows(snapshot - 1), versions.rows(snapshot)
    code, op = versions.equations.code, versions.op
    gone = np.setdiff1d(before, after)
    gone = gone[versions.key[gone] >= 0]
    row_of_key: dict[int, int] = dict(zip(versions.key[gone].tolist(), gone.tolist(), strict=True))
    by_name: dict[int, list[int]] = {}
    for row in gone.tolist():
        by_name.setdefault(int(code[row]), []).append(row)
    for named, operation in sorted(novel):
        roots = by_name.get(named, [])
        within = _operands(versions, roots, row_of_key)
        taken = {int(code[row]) for row in within if op[row] == operation and code[row] >= 0} - {named}
        if len(taken) == 1 and len(roots) == 1 and int((code[before] == named).sum()) == 1:
            (other,) = taken
            counts = [_count(code, op, rows, (of, operation)) for rows in (before, after) for of in (named, other)]
            # One became the other: of an equation that many instructions are of, nothing follows for the rest.
            if counts == [0, 1, 1, 0]:
                yield (named, operation), other


def _count(code: Ints, op: Ints, rows: Ints, pair: tuple[int, int]) -> int:
    return int(((code[rows] == pair[0]) & (op[rows] == pair[1])).sum())


def _operands(versions: Versions, rows: list[int], row_of_key: Mapping[int, int]) -> set[int]:
    """The rows that some rows are made of, as far as these are among `row_of_key`."""
    within: set[int] = set()
    level = rows
    for _ in range(_FURTHEST):
        level = [
            operand
            for row in level
            for key in versions.operands(row)
            if (operand := row_of_key.get(key, -1)) >= 0 and operand not in within
        ]
        within.update(level)
    return within
