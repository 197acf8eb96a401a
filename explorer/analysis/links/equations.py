"""The nodes of a stage that nothing depends on, and those that depend on an argument."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from explorer.model.graph import Graph

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


def varies(graph: Graph) -> list[bool]:
    """For each node, whether its value depends on an argument of the program."""
    start: list[int] = graph.operand_start.tolist()
    operand: list[int] = graph.operand.tolist()
    groups: list[int] = graph.group.tolist()
    is_parameter: list[bool] = (graph.op == _code(graph, "parameter")).tolist()
    is_varying = [False] * len(graph.names)
    members, captured = _members(graph), _captured(graph)
    for group in _callers_first(graph):
        inputs = [node for node in members[group] if is_parameter[node]]
        for node, value in zip(inputs, _given(graph, group, inputs, is_varying), strict=True):
            is_varying[node] = value
        caller = graph.groups[group].caller
        # What branches are given depends on the stage: in StableHLO they read what is around them, in HLO they get it
        # all in one tuple.
        around = is_varying[caller] if caller in captured else None
        for node in members[group]:
            value = is_varying[node]
            for i in (*operand[start[node] : start[node + 1]], *captured.get(node, ())):
                value = value or (is_varying[i] if around is None or groups[i] == group else around)
            is_varying[node] = value
    return is_varying


def _given(graph: Graph, group: int, inputs: Sequence[int], is_varying: Sequence[bool]) -> list[bool]:
    """Whether each parameter of a group depends on an argument, in order."""
    caller = graph.groups[group].caller
    if graph.groups[group].kind == "entry":
        return [True] * len(inputs)
    begin, end = graph.operand_start[caller : caller + 2].tolist() if caller >= 0 else (0, 0)
    operands: list[int] = graph.operand[begin:end].tolist()
    given = [is_varying[i] for i in operands]
    together = any(given)
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
