"""Which counts are not what a call does: of loops of unknown length, of branches, of what only a backend knows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.cost.flops import call_target
from explorer.analysis.cost.kernels import running_nodes
from explorer.analysis.cost.trip_counts import trip_counts
from explorer.model.graph import Graph, Ints
from explorer.model.line_table import CountLimits


def count_limits(graph: Graph) -> CountLimits:
    """What the counts of an optimised program leave open; nothing where it has none."""
    runs, flops = graph.measures.get("runs"), graph.measures.get("flops")
    if runs is None or flops is None:
        return CountLimits()
    kernels = running_nodes(graph)
    unknown = kernels[np.isnan(flops[kernels])]
    return CountLimits(
        loops=_names(graph, unknown_loops(graph)),
        branches=_names(graph, np.flatnonzero(_is_op(graph, "conditional") & (runs != 0))),
        unknown=[call_target(graph, int(node)) or graph.names[int(node)] for node in unknown],
    )


def unknown_loops(graph: Graph) -> Ints:
    """The loops of which one iteration is counted: neither the text nor a profile says how often they run."""
    runs = graph.measures.get("runs")
    if runs is None:
        return np.zeros(0, np.int32)
    loops = np.flatnonzero(_is_op(graph, "while") & (runs != 0))
    with_length = set(trip_counts(graph))
    # A profile tells how often a body ran: then its nodes have a number of runs.
    counted = {call.node for call in graph.calls if call.role == "body" and _is_measured(graph, call.group)}
    return np.asarray([node for node in loops.tolist() if node not in with_length | counted], np.int32)


def is_one_iteration(graph: Graph) -> NDArray[np.bool_]:
    """For each node, whether what is counted of it is one iteration of a loop of unknown length; shape `[n]`."""
    inside = np.zeros(len(graph.groups) + 1, bool)
    loops = set(unknown_loops(graph).tolist())
    if not loops:
        return inside[graph.group]
    front = {call.group for call in graph.calls if call.node in loops}
    while front:
        inside[list(front)] = True
        front = {call.group for call in graph.calls if inside[graph.group[call.node]] and not inside[call.group]}
    return inside[graph.group]


def _is_measured(graph: Graph, group: int) -> bool:
    runs = graph.measures["runs"][graph.group == group]
    return len(runs) > 0 and not np.isnan(runs).any()


def _is_op(graph: Graph, op: str) -> NDArray[np.bool_]:
    return np.asarray([name == op for name in graph.ops] or [False])[graph.op]


def _names(graph: Graph, nodes: Iterable[int]) -> list[str]:
    return [graph.names[int(node)] for node in nodes]
