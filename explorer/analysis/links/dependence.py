"""Which of the program's arguments each value depends on, and which of its results depend on the value."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce
from itertools import pairwise

import numpy as np

from explorer.analysis.links.equations import returned_in_order
from explorer.analysis.links.features import opcode_of
from explorer.model.graph import Graph, Ints


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
    if len(given) != len(inputs) or opcode_of(graph.ops[int(graph.op[caller])]) == "while":
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


def depths(graph: Graph, kinds: Sequence[Collection[str]]) -> list[Ints]:
    """For each node, how many operations of some kinds follow one another up to it, on the longest way.

    Unlike the order, this is the same however the compiler schedules, fuses and duplicates.

    Args:
        graph: Of StableHLO without calls, or of HLO.
        kinds: The opcodes that count, as HLO calls them; for each such set there is a column of depths.
    """
    walk = _DepthWalk(graph)
    columns: list[Ints] = []
    for opcodes in kinds:
        weights = [int(opcode_of(op) in opcodes) for op in graph.ops]
        walk.weight = [weights[code] for code in graph.op.tolist()]
        for index, group in enumerate(graph.groups):
            if group.caller < 0:
                walk.visit(index, ())
        columns.append(np.asarray(walk.depth, np.int32))
    return columns


class _DepthWalk:
    """The depths of a graph's nodes: of what is called, as if it stood in the place of what calls it."""

    def __init__(self, graph: Graph) -> None:
        self.weight: list[int] = []
        self.depth = [0] * len(graph.names)
        self._start: list[int] = graph.operand_start.tolist()
        self._operand: list[int] = graph.operand.tolist()
        self._number: list[int] = graph.parameter_number.tolist()
        self._members, self._inner = _members(graph), _inlined_groups(graph)
        self._is_parameter: list[bool] = (graph.op == _code(graph, "parameter")).tolist()
        opcodes = [opcode_of(name) for name in graph.ops]
        self._is_control = [
            group.caller >= 0 and opcodes[int(graph.op[group.caller])] in ("while", "conditional")
            for group in graph.groups
        ]

    def visit(self, group: int, given: Sequence[int], level: int = 0) -> None:
        """Fill in the depths of a group's nodes; `given`: those of what it is called with."""
        depth, start, operand, weight, inner = self.depth, self._start, self._operand, self.weight, self._inner
        position, deepest_given = 0, max(given, default=0)
        apart = 0 if self._is_control[group] else len(given)
        for node in self._members[group]:
            if self._is_parameter[node]:
                number = self._number[node] if self._number[node] >= 0 else position
                depth[node] = given[number] if number < apart else deepest_given
                position += 1
                continue
            deepest = 0
            for i in operand[start[node] : start[node + 1]]:
                if depth[i] > deepest:
                    deepest = depth[i]
            if node in inner and level < _NESTED:
                operands = [depth[i] for i in operand[start[node] : start[node + 1]]]
                for called in inner[node]:
                    self.visit(called, operands, level + 1)
                    deepest = max(deepest, *(depth[i] for i in self._members[called][-1:]))
            depth[node] = deepest + weight[node]


_NESTED = 200  # computations inside of one another, each a call of Python's


def _inlined_groups(graph: Graph) -> dict[int, list[int]]:
    """What each node calls, of which the inside counts as if it stood in the node's place."""
    inner: dict[int, list[int]] = {}
    for index, group in enumerate(graph.groups):
        if group.caller >= 0 and group.kind != "apply":
            inner.setdefault(group.caller, []).append(index)
    return inner


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
