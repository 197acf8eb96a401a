"""Which instructions run as kernels of their own, and inside which kernel the others are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from explorer.model.graph import Graph, Ints

# Plumbing that runs no kernel of its own.
PLUMBING = frozenset(
    [
        *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "opt-barrier"),
        *("while", "conditional", "call"),
    ]
)
# The groups that a kernel does as a whole.
BOUNDARY = frozenset(["fusion", "apply"])
_DEEPEST = 8


def kernel_of(graph: Graph) -> Ints:
    """For each instruction, the kernel that runs it: itself, or the fusion around it; -1 for plumbing."""
    inside = np.asarray([g.kind in BOUNDARY and g.caller >= 0 for g in graph.groups] + [False])
    caller = np.asarray([g.caller for g in graph.groups] + [-1], np.int32)
    at = np.arange(len(graph.names), dtype=np.int32)
    for _ in range(_DEEPEST):
        is_inside = inside[graph.group[at]]
        if not is_inside.any():
            break
        at = np.where(is_inside, caller[graph.group[at]], at)
    runs = ~np.asarray([op in PLUMBING for op in graph.ops] or [False])[graph.op[at]] if len(graph.names) else at < 0
    return np.where(runs & is_called(graph)[graph.group], at, -1).astype(np.int32)


def is_called(graph: Graph) -> NDArray[np.bool_]:
    """For each group, and one more for none, whether it is part of the program: the entry, or called by a part of it.

    Where no computation is marked as the entry, all are parts.
    """
    is_part = np.asarray([group.kind == "entry" for group in graph.groups] + [True])
    if not is_part[:-1].any():
        return np.ones(len(graph.groups) + 1, bool)
    caller = np.asarray([group.caller for group in graph.groups] + [-1], np.int32)
    around = np.where(caller >= 0, graph.group[caller], -1) if len(graph.names) else caller
    is_called_at_all = caller >= 0
    while True:  # one level of calls more each time
        reached = is_part | (is_called_at_all & is_part[around])
        if (reached == is_part).all():
            return is_part
        is_part = reached


def running_nodes(graph: Graph) -> Ints:
    """The nodes that run as kernels of their own, in program order: neither inside one, nor plumbing."""
    runs = np.asarray([op not in PLUMBING for op in graph.ops], bool)
    outside = np.asarray([*(group.kind not in BOUNDARY for group in graph.groups), True])  # group -1: the last one
    if not len(graph.names):
        return graph.op
    is_part = outside & is_called(graph)
    return np.flatnonzero(runs[graph.op] & is_part[graph.group]).astype(np.int32)
