"""The equations of a jaxpr or StableHLO module that nothing depends on."""

from __future__ import annotations

import re

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
