"""A graph as if nothing were fused: what computes, and what each reads, through the walls of kernels.

Two compilations of one function fuse differently. Seen so, what they compute is alike all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from explorer.model.graph import Graph, Ints

__all__ = ["Flow", "flow"]

_HOPS = 64  # plumbing after plumbing


@dataclass(frozen=True, eq=False)
class Flow:
    """Operands without plumbing.

    Args:
        real: Whether a node computes; a fusion, its parameters and its tuples only pass on, shape `[n]`.
        start, operand: Compressed rows of the real nodes' operands, all of them real; a plumbing node has none.
        kernel: The fusion that a node runs in, -1 for none, shape `[n]`.
        source: The node whose value a node has: itself, or for plumbing what it passes on, shape `[n]`.
    """

    real: NDArray[np.bool_]
    start: Ints
    operand: Ints
    kernel: Ints
    source: Ints


def flow(graph: Graph) -> Flow:
    """See through fusions."""
    size = len(graph.names)
    fused = [group.kind == "fusion" and group.caller >= 0 for group in graph.groups]
    caller = np.asarray([g.caller if is_fused else -1 for g, is_fused in zip(graph.groups, fused, strict=True)] + [-1])
    kernel = caller[graph.group].astype(np.int32)
    through = np.full(size, -1, np.int64)  # whose value a plumbing node has
    tuples: set[int] = set()
    ops = {op: code for code, op in enumerate(graph.ops)}

    number = graph.attribute_table.integers("parameter_number")
    index = graph.attribute_table.integers("index")

    def operands(node: int) -> Ints:
        return graph.operand[graph.operand_start[node] : graph.operand_start[node + 1]]

    inside = np.flatnonzero(kernel >= 0)
    last: dict[int, int] = {}
    for node in inside.tolist():
        group = int(graph.group[node])
        if group not in last or graph.is_root[node]:
            last[group] = node
    for node in inside[graph.op[inside] == ops.get("parameter", -1)].tolist():
        given = operands(int(kernel[node]))
        if 0 <= number[node] < len(given):
            through[node] = given[number[node]]
    for group, root in last.items():
        through[int(caller[group])] = root
        if int(graph.op[root]) == ops.get("tuple", -1):
            tuples.add(root)
    # An element of a kernel's tuple is what stands in that place of it.
    for node in np.flatnonzero(graph.op == ops.get("get-tuple-element", -1)).tolist():
        (of, *_) = operands(node).tolist() or [-1]
        root = int(through[of]) if of >= 0 else -1
        if root in tuples and 0 <= index[node] < len(operands(root)):
            through[node] = operands(root)[index[node]]
    real = through < 0
    real[list(tuples)] = False
    end = np.arange(size, dtype=np.int64)
    for _ in range(_HOPS):
        next_ = np.where(through[end] >= 0, through[end], end)
        if (next_ == end).all():
            break
        end = next_
    counts = np.where(real, np.diff(graph.operand_start), 0)
    keep = np.repeat(real, np.diff(graph.operand_start))
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return Flow(real, start, end[graph.operand[keep]].astype(np.int32), kernel, end.astype(np.int32))
