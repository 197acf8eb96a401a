"""Which of the program's arguments each value depends on, and which of its results depend on the value."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise

import numpy as np

from explorer.model.graph import Graph


def argument_sets(graph: Graph, bit: dict[str, int]) -> list[int]:
    """For each node, the set of arguments that its value depends on, as the bits of an integer; 0 for unknown or none.

    Args:
        graph: Of a stage.
        bit: The bit of each argument, by its path; new ones are added, so that sets of two stages can be compared.
    """
    start: list[int] = graph.operand_start.tolist()
    operand: list[int] = graph.operand.tolist()
    groups: list[int] = graph.group.tolist()
    is_parameter: list[bool] = (graph.op == _code(graph, "parameter")).tolist()
    sets: list[int] = [0] * len(graph.names)
    members, captured = _members(graph), _captured(graph)
    for group in _callers_first(graph):
        inputs = [node for node in members[group] if is_parameter[node]]
        for node, value in zip(inputs, _input_sets(graph, group, inputs, sets, bit), strict=True):
            sets[node] = value
        caller = graph.groups[group].caller
        # What branches are given depends on the stage: in StableHLO they read what is around them, in HLO they get it
        # all in one tuple.
        around = sets[caller] if caller in captured else None
        for node in members[group]:
            value = sets[node]
            for i in (*operand[start[node] : start[node + 1]], *captured.get(node, ())):
                value |= sets[i] if around is None or groups[i] == group else around
            sets[node] = value
    return sets


def _input_sets(graph: Graph, group: int, inputs: Sequence[int], sets: Sequence[int], bit: dict[str, int]) -> list[int]:
    """The sets of the parameters of a group, in order."""
    caller, kind = graph.groups[group].caller, graph.groups[group].kind
    if kind == "entry":
        return [_own_bit(graph, node, bit) for node in inputs]
    begin, end = graph.operand_start[caller : caller + 2].tolist() if caller >= 0 else (0, 0)
    operands: list[int] = graph.operand[begin:end].tolist()
    given = [sets[i] for i in operands]
    together = reduce(int.__or__, given, 0)
    # Where a call leaves out or adds operands, no number says which of them a parameter is; and what one iteration of
    # a loop gives, the next one takes.
    if len(given) != len(inputs) or graph.ops[int(graph.op[caller])].rpartition(".")[2] == "while":
        return [together] * len(inputs)
    numbers = graph.parameter_number[inputs]
    at: list[int] = np.where(numbers >= 0, np.minimum(numbers, len(given)), np.arange(len(numbers))).tolist()
    padded = [*given, together]
    return [padded[i] for i in at]


def _captured(graph: Graph) -> dict[int, set[int]]:
    """For each operation with regions, what these read of what is around it."""
    reader = np.repeat(graph.group, np.diff(graph.operand_start))
    captured: dict[int, set[int]] = {}
    for at in np.flatnonzero(graph.group[graph.operand] != reader).tolist():
        node, group = int(graph.operand[at]), int(reader[at])
        home = int(graph.group[node])
        while group != home and group >= 0 and graph.groups[group].caller >= 0:
            caller = graph.groups[group].caller
            captured.setdefault(caller, set()).add(node)
            group = int(graph.group[caller])
    return captured


def _own_bit(graph: Graph, node: int, bit: dict[str, int]) -> int:
    """The set of one argument; one without a name is like no other's."""
    path = graph.scopes[int(graph.scope[node])] or f"\0{len(bit)}"
    return 1 << bit.setdefault(path, len(bit))


def _members(graph: Graph) -> list[list[int]]:
    order = np.argsort(graph.group, kind="stable")
    bounds = np.searchsorted(graph.group[order], np.arange(len(graph.groups) + 1)).tolist()
    nodes: list[int] = order.tolist()
    return [nodes[begin:end] for begin, end in pairwise(bounds)]


def _code(graph: Graph, op: str) -> int:
    return graph.ops.index(op) if op in graph.ops else -1


def _callers_first(graph: Graph) -> list[int]:
    """The groups, each after the group of the node that calls it; a cycle in damaged input ends there."""
    called: dict[int, list[int]] = {}
    order: list[int] = []
    for i, group in enumerate(graph.groups):
        if group.caller >= 0:
            called.setdefault(int(graph.group[group.caller]), []).append(i)
        else:
            order.append(i)
    for group in order:  # grows while it is walked
        order += called.pop(group, [])
    return order
