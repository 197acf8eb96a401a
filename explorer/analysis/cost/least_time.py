"""The least time that a program's kernels need on a machine: from its figures, never measured."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.cost.kernel_kind import kernel_kinds
from explorer.analysis.cost.kernels import running_nodes
from explorer.model.graph import Floats, Graph
from explorer.model.results.roofline import Peaks
from explorer.model.types import parse_type

_COPIES = frozenset(("async-start", "copy-start", "slice-start", "dynamic-slice-start", "dynamic-update-slice-start"))


def least_times(graph: Graph, peaks: Peaks) -> Floats:
    """Seconds for each node of an optimised program, shape `[n]`, all its runs together; 0 for what is no kernel.

    Arithmetic and bytes alone: the latency of launches and of memory is left out, so of many small kernels it is far
    less than what they take. Of a kernel whose arithmetic or bytes nobody knows, as of a library's, it is NaN.
    """
    seconds = np.zeros(len(graph.names))
    kinds, measures = kernel_kinds(graph), graph.measures
    on_chip = np.asarray([_on_chip_bytes(type_) for type_ in graph.types], float)[graph.type]
    nodes: list[int] = running_nodes(graph).tolist()
    for node in nodes:
        counted = float(measures["runs"][node])
        runs = 1.0 if np.isnan(counted) else counted
        start, end = graph.operand_start[node : node + 2].tolist()
        near = float(on_chip[node] + on_chip[graph.operand[start:end]].sum()) * runs
        dtype, is_matmul, special = kinds.dtype[node], kinds.is_matmul[node], kinds.special.get(node)
        moved = max(float(measures["bytes"][node]) - near, 0.0) if near else float(measures["bytes"][node])
        flops = float(measures["flops"][node])
        seconds[node] = peaks.least_seconds(flops, moved, dtype, is_matmul=is_matmul, runs=runs, special=special)
    return seconds


def copies_beside(graph: Graph) -> NDArray[np.bool_]:
    """Which nodes copy while kernels run, as a TPU brings what comes next into the core's own memory, shape `[n]`."""
    wanted = np.asarray([op in _COPIES for op in graph.ops] or [False])
    return wanted[graph.op]


def _on_chip_bytes(type_: str) -> int:
    """Of a type, what lies in no device memory: a TPU's compiler puts it in the core's own, `S(1)`."""
    return sum(array.allocated for array in parse_type(type_).arrays if array.memory_space)
