"""Which equations of a jaxpr or StableHLO module nothing depends on, and which compute what an earlier one does."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from explorer.model.attributes import is_shortened
from explorer.model.graph import Graph

__all__ = ["is_dead", "returned_in_order", "twins"]

# Arguments, captured constants and what returns are no equations.
_VALUES = re.compile(r"^(?:parameter|constant)$|(?:^|\.)return$")
# These do more than give a value.
_EFFECT = re.compile(
    r"rng_uniform|\.rng$|callback|print|effect|token|feed|send|recv|swap|addupdate|(?<!dynamic_)set$|check|assert|custom"
)


def is_dead(graph: Graph) -> NDArray[np.bool_]:
    """Which nodes of a jaxpr or StableHLO graph nothing that the program gives depends on, shape `[n]`."""
    returned = _returned(graph)
    lives = np.zeros(len(graph.names), bool)
    codes: list[int] = graph.op.tolist()
    ops = [graph.ops[code] for code in codes]
    called: dict[int, list[int]] = {}
    members: dict[int, list[int]] = {}
    for i, group in enumerate(graph.groups):
        called.setdefault(group.caller, []).append(i)
    for node, group in enumerate(graph.group.tolist()):
        members.setdefault(group, []).append(node)
    entries = [i for i, group in enumerate(graph.groups) if group.caller < 0]
    todo = [node for i in entries for node in members.get(i, ()) if node in returned]
    todo += [node for node, op in enumerate(ops) if _EFFECT.search(op)]
    start, operand = graph.operand_start.tolist(), graph.operand.tolist()
    while todo:
        node = todo.pop()
        if lives[node]:
            continue
        lives[node] = True
        todo += operand[start[node] : start[node + 1]]
        for group in called.get(node, ()):
            # A loop's body gives back what it is given: all that it returns counts.
            todo += [inner for inner in members.get(group, ()) if inner in returned]
        caller = graph.groups[int(graph.group[node])].caller if graph.group[node] >= 0 else -1
        if caller >= 0:
            todo.append(caller)
    return ~lives


def _returned(graph: Graph) -> set[int]:
    """The nodes that a function, a region or an inner jaxpr gives back; in StableHLO what returns is a node itself."""
    returns = [i for i, op in enumerate(graph.ops) if op.rpartition(".")[2] == "return"]
    return {*np.flatnonzero(np.isin(graph.op, returns)).tolist(), *graph.attribute_table.nodes("returned").tolist()}


def returned_in_order(graph: Graph) -> list[int]:
    """The nodes that a jaxpr's outermost level gives back, in order; -1 for a literal, which is no node."""
    entry = next((i for i, group in enumerate(graph.groups) if group.kind == "entry"), -1)
    node_of: dict[int, int] = {}
    for node in graph.attribute_table.nodes("returned").tolist():
        if graph.group[node] == entry:
            positions = graph.attribute_table.get(node, "returned").split(",")
            node_of |= {int(position.partition("=")[0]): node for position in positions}
    return [node_of.get(position, -1) for position in range(max(node_of, default=-1) + 1)]


def twins(graph: Graph) -> dict[int, int]:
    """For each equation that does what an earlier one of its group does, with the same values, that one."""
    first_of = list(range(len(graph.names)))  # of each node, the first that has the same value
    node_of: dict[tuple[int, int, int, tuple[int, ...], bytes], int] = {}
    callers = {group.caller for group in graph.groups}
    is_compared = [not _VALUES.search(op) and not _EFFECT.search(op) for op in graph.ops]
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
