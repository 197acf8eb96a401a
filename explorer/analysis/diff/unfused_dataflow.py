"""A graph as if nothing were fused: what computes, and what each reads, through the walls of kernels.

Two compilations of one function fuse differently. Seen so, what they compute is alike all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from explorer.model.graph import Graph, Ints

_HOPS = 64  # plumbing after plumbing


@dataclass(frozen=True, eq=False)
class UnfusedDataflow:
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


def unfused_dataflow(graph: Graph) -> UnfusedDataflow:
    """See through fusions."""
    kernel = _fusion_of_group(graph)[graph.group]
    through, tuples = _passed_on(graph, kernel)
    real = through < 0
    real[list(tuples)] = False
    source = _sources(through)
    counts = np.where(real, np.diff(graph.operand_start), 0)
    is_kept = np.repeat(real, np.diff(graph.operand_start))
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return UnfusedDataflow(real, start, source[graph.operand[is_kept]], kernel, source)


def _fusion_of_group(graph: Graph) -> Ints:
    """The node that each group is fused into, -1 for a group that is no fusion; the last entry is for no group."""
    callers = [group.caller if group.kind == "fusion" else -1 for group in graph.groups]
    return np.maximum(np.asarray([*callers, -1], np.int32), -1)


def _passed_on(graph: Graph, kernel: Ints) -> tuple[NDArray[np.int64], set[int]]:
    """The node whose value each plumbing node has, -1 for one that computes; and the tuples that fusions return."""
    code = {op: code for code, op in enumerate(graph.ops)}
    through = np.full(len(graph.names), -1, np.int64)
    inside = np.flatnonzero(kernel >= 0)

    parameters = inside[graph.op[inside] == code.get("parameter", -1)]
    number = graph.parameter_number[parameters]
    is_there = (number >= 0) & (number < np.diff(graph.operand_start)[kernel[parameters]])
    parameters, number = parameters[is_there], number[is_there]
    through[parameters] = graph.operand[graph.operand_start[kernel[parameters]] + number]

    roots = _roots(graph, inside)
    through[kernel[roots]] = roots
    tuples = set(roots[graph.op[roots] == code.get("tuple", -1)].tolist())

    # An element of a kernel's tuple is what stands in that place of it.
    index = graph.attribute_table.integers("index")
    for node in np.flatnonzero(graph.op == code.get("get-tuple-element", -1)).tolist():
        of = _operand(graph, node, 0)
        root = int(through[of]) if of >= 0 else -1
        if root in tuples:
            through[node] = _operand(graph, root, int(index[node]))
    return through, tuples


def _roots(graph: Graph, inside: NDArray[np.intp]) -> NDArray[np.intp]:
    """The root of each fusion that the nodes are in; the first node where none is marked as the root."""
    root_of: dict[int, int] = {}
    for node, group in zip(inside.tolist(), graph.group[inside].tolist(), strict=True):
        if group not in root_of or graph.is_root[node]:
            root_of[group] = node
    return np.asarray(list(root_of.values()), np.intp)


def _operand(graph: Graph, node: int, position: int) -> int:
    """The operand of a node at a position, -1 if it has none there."""
    start, end = graph.operand_start[node : node + 2].tolist()
    return int(graph.operand[start + position]) if 0 <= position < end - start else -1


def _sources(through: NDArray[np.int64]) -> Ints:
    """For each node the one that computes its value, at the end of the plumbing."""
    source = np.arange(len(through), dtype=np.int64)
    for _ in range(_HOPS):
        next_ = np.where(through[source] >= 0, through[source], source)
        if (next_ == source).all():
            break
        source = next_
    return source.astype(np.int32)
