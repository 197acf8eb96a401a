"""Which instructions run as kernels of their own, and inside which kernel the others are."""

from __future__ import annotations

import numpy as np

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
    return np.where(runs, at, -1).astype(np.int32)


def running_nodes(graph: Graph) -> Ints:
    """The nodes that run as kernels of their own, in program order: neither inside one, nor plumbing."""
    runs = np.asarray([op not in PLUMBING for op in graph.ops], bool)
    outside = np.asarray([*(group.kind not in BOUNDARY for group in graph.groups), True])  # group -1: the last one
    return np.flatnonzero(runs[graph.op] & outside[graph.group]).astype(np.int32) if len(graph.names) else graph.op
