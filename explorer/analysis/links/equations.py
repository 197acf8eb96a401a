"""Which equations of a jaxpr or StableHLO module nothing depends on, and which compute what an earlier one does."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from explorer.model.attributes import is_shortened
from explorer.model.graph import Graph

# Arguments, captured constants and what returns are no equations.
_VALUES = re.compile(r"^(?:parameter|constant)$|(?:^|\.)return$")
# These do more than give a value.
_EFFECT = re.compile(
    r"rng_uniform|\.rng$|callback|print|effect|token|feed|send|recv|swap|addupdate|(?<!dynamic_)set$|check|assert|custom"
)


def is_dead(graph: Graph) -> NDArray[np.bool_]:
    """Which nodes of a jaxpr or StableHLO graph nothing that the program gives depends on, shape `[n]`."""
    returned = _returned_by_group(graph)
    lives = np.zeros(len(graph.names), bool)
    called: dict[int, list[int]] = {}
    for i, group in enumerate(graph.groups):
        called.setdefault(max(group.caller, -1), []).append(i)
    has_effect = np.asarray([_EFFECT.search(op) is not None for op in graph.ops], bool)
    todo = [node for entry in called.get(-1, ()) for node in returned.get(entry, ())]
    todo += np.flatnonzero(has_effect[graph.op]).tolist()
    start, operand = graph.operand_start.tolist(), graph.operand.tolist()
    groups: list[int] = graph.group.tolist()
    caller_of_group: list[int] = [*(group.caller for group in graph.groups), -1]
    # Ends: a node's operands, computations and caller are added only when it is first reached.
    while todo:
        node = todo.pop()
        if lives[node]:
            continue
        lives[node] = True
        todo += operand[start[node] : start[node + 1]]
        for group in called.get(node, ()):
            # A loop's body gives back what it is given: all that it returns counts.
            todo += returned.get(group, ())
        caller = caller_of_group[groups[node]]
        if caller >= 0:
            todo.append(caller)
    return ~lives


def _returned_by_group(graph: Graph) -> dict[int, list[int]]:
    """The nodes that each function, region or inner jaxpr gives back; in StableHLO what returns is a node itself."""
    returns = [i for i, op in enumerate(graph.ops) if op.rpartition(".")[2] == "return"]
    by_group: dict[int, list[int]] = {}
    for node in {*np.flatnonzero(np.isin(graph.op, returns)).tolist(), *graph.returned.tolist()}:
        by_group.setdefault(int(graph.group[node]), []).append(node)
    return by_group


def _is_compared(op: str) -> bool:
    return not _VALUES.search(op) and not _EFFECT.search(op)


def twins(graph: Graph) -> dict[int, int]:
    """For each equation that does what an earlier one of its group does, with the same values, that one."""
    first_of = list(range(len(graph.names)))  # of each node, the first that has the same value
    node_of: dict[tuple[int, int, int, tuple[int, ...], bytes], int] = {}
    callers = {group.caller for group in graph.groups}
    is_compared = list(map(_is_compared, graph.ops))
    attributes = _attribute_rows(graph)
    start: list[int] = graph.operand_start.tolist()
    operand: list[int] = graph.operand.tolist()
    ops, types, groups = graph.op.tolist(), graph.type.tolist(), graph.group.tolist()
    for node, (op, row) in enumerate(zip(ops, attributes, strict=True)):
        # What calls does what its computation says, and of attributes that are cut short the rest may differ.
        if row is None or node in callers or not is_compared[op]:
            continue
        operands = tuple(first_of[i] for i in operand[start[node] : start[node + 1]])
        first_of[node] = node_of.setdefault((groups[node], op, types[node], operands, row), node)
    return {node: first for node, first in enumerate(first_of) if first != node}


def _attribute_rows(graph: Graph) -> list[bytes | None]:
    """For each node its attributes but for `returned`, equal for equal ones; None where one is cut short."""
    columns = graph.attribute_table.columns
    is_cut = np.asarray([is_shortened(value) for value in columns.values], bool)
    skipped = columns.keys.index("returned") if "returned" in columns.keys else -1
    kept = np.flatnonzero(columns.key != skipped)
    start = np.searchsorted(kept, columns.start).tolist()
    pairs = np.stack([columns.key, columns.value], axis=1)[kept]
    cut = set((np.searchsorted(columns.start, np.flatnonzero(is_cut[columns.value]), "right") - 1).tolist())
    return [None if i in cut else pairs[start[i] : start[i + 1]].tobytes() for i in range(len(graph.names))]
