"""Which of the program's arguments each value depends on, and which of its results depend on the value."""

from __future__ import annotations

from functools import reduce

import numpy as np

from explorer.analysis.links.equations import returned_in_order
from explorer.model.graph import Graph


def argument_sets(graph: Graph, bit: dict[str, int]) -> list[int]:
    """For each node, the set of arguments that its value depends on, as the bits of an integer; 0 for unknown or none.

    Args:
        graph: Of a stage.
        bit: The bit of each argument, by its path; new ones are added, so that sets of two stages can be compared.
    """
    start: list[int] = graph.operand_start.tolist()
    operand: list[int] = graph.operand.tolist()
    op: list[int] = graph.op.tolist()
    parameter = _code(graph, "parameter")
    numbers = graph.attribute_table.integers("parameter_number").tolist()
    sets: list[int] = [0] * len(graph.names)
    members = _members(graph)
    for group in _callers_first(graph):
        caller, kind = graph.groups[group].caller, graph.groups[group].kind
        given: list[int] = [sets[i] for i in operand[start[caller] : start[caller + 1]]] if caller >= 0 else []
        together = reduce(int.__or__, given, 0)
        inputs = sum(op[node] == parameter for node in members[group])
        position = 0
        for node in members[group]:
            if op[node] == parameter:
                if kind == "entry":
                    sets[node] = _own_bit(graph, node, bit)
                else:
                    number = numbers[node] if numbers[node] >= 0 else position
                    # Where a call leaves out or adds operands, no number says which of them a parameter is.
                    sets[node] = _entry_at(given, number, together) if len(given) == inputs else together
                position += 1
                continue
            value = 0
            for i in operand[start[node] : start[node + 1]]:
                value |= sets[i]
            sets[node] = value
    return sets


def _own_bit(graph: Graph, node: int, bit: dict[str, int]) -> int:
    """The set of one argument; one without a name is like no other's."""
    path = graph.scopes[int(graph.scope[node])] or f"\0{len(bit)}"
    return 1 << bit.setdefault(path, len(bit))


def _entry_at(values: list[int], position: int, default: int) -> int:
    return values[position] if position < len(values) else default


def result_sets(graph: Graph) -> list[int]:
    """For each node, the set of results that depend on its value, as the bits of an integer; 0 for unknown or none.

    Args:
        graph: Of a stage. The results of its entry are counted as they stand there.
    """
    start: list[int] = graph.operand_start.tolist()
    operand: list[int] = graph.operand.tolist()
    sets = [0] * len(graph.names)
    for number, node in enumerate(_results(graph)):
        if node >= 0:
            sets[node] |= 1 << number
    members = _members(graph)
    for group in _callers_first(graph):
        caller = graph.groups[group].caller
        inside = sets[caller] if caller >= 0 else 0
        for node in reversed(members[group]):
            sets[node] |= inside
            value = sets[node]
            for i in operand[start[node] : start[node + 1]]:
                sets[i] |= value
    return sets


def _results(graph: Graph) -> list[int]:
    """The nodes that the entry returns, in order; -1 for what is no node."""
    entry = next((i for i, group in enumerate(graph.groups) if group.kind == "entry"), -1)
    nodes = np.flatnonzero(graph.group == entry).tolist()
    if not nodes:
        return []
    if graph.ops[int(graph.op[nodes[-1]])] in ("return", "func.return", "tuple"):
        last = nodes[-1]
        return graph.operand[graph.operand_start[last] : graph.operand_start[last + 1]].tolist()
    return returned_in_order(graph) or nodes[-1:]


def _members(graph: Graph) -> list[list[int]]:
    members: list[list[int]] = [[] for _ in graph.groups]
    for node, group in enumerate(graph.group.tolist()):
        if group >= 0:
            members[group].append(node)
    return members


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
