"""What a kernel computes with: its dtype, and whether a matrix product or convolution does its work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis.cost.flops import call_target, sorted_length
from explorer.model.graph import Graph, Ints
from explorer.model.results.roofline import SPECIAL
from explorer.model.types import elements, parse_type, sort_flops

_PRODUCTS = frozenset(("dot", "convolution", "triangular-solve", "cholesky"))
# Libraries' matrix products, convolutions and factorisations: the latter's work is in blocks that are products.
_LIBRARY = (
    *("__cublas", "__cudnn$conv", "__cudnn$fmha", "__onednn$matmul", "__onednn$conv", "__triton_gemm"),
    *("__triton_nested_gemm", "lapack_", "cusolver_", "cublas_"),
)
_IDLE = frozenset(("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "broadcast", "iota"))


@dataclass(frozen=True, eq=False)
class KernelKinds:
    """What each instruction of a module computes with, if it is a kernel.

    Args:
        dtype: What it computes in, `f32`.
        is_matmul: Whether it is a matrix product or convolution, or one of its insides is.
        special: Of those that have any, how many elements of what takes longer than a multiply-add one run computes.
    """

    dtype: Sequence[str]
    is_matmul: Sequence[bool]
    special: Mapping[int, Mapping[str, float]]


def kernel_kinds(graph: Graph) -> KernelKinds:
    """What each kernel of an optimised program computes with.

    Of a matrix product it is the dtype of what is multiplied; else that of most of the arithmetic inside.
    """
    kernel = graph.kernel
    matmul = np.zeros(len(graph.names), bool)
    dtypes = [parse_type(type_).dtype for type_ in graph.types]
    names = sorted(set(dtypes))
    code = np.asarray([names.index(dtype) for dtype in dtypes], np.int32)[graph.type] if len(graph.names) else kernel
    chosen = _most(graph, kernel, code, len(names))
    for node in _products(graph):
        at = int(kernel[node]) if kernel[node] >= 0 else node
        matmul[at] = True
        operand = graph.operand[graph.operand_start[node] : graph.operand_start[node + 1]]
        chosen[at] = code[operand[0]] if len(operand) else code[node]
    of_node: list[int] = chosen.tolist()
    return KernelKinds([names[i] for i in of_node], matmul.tolist(), _special(graph, kernel))


def _products(graph: Graph) -> list[int]:
    products = [code for code, op in enumerate(graph.ops) if op in _PRODUCTS]
    calls = graph.attribute_table.nodes("custom_call_target").tolist()
    libraries = [node for node in calls if call_target(graph, node).startswith(_LIBRARY)]
    return np.flatnonzero(np.isin(graph.op, products)).tolist() + libraries


def _special(graph: Graph, kernel: Ints) -> dict[int, dict[str, float]]:
    codes = {code: op for code, op in enumerate(graph.ops) if op in SPECIAL}
    rates_of_kernel: dict[int, dict[str, float]] = {}
    if codes:
        for node in np.flatnonzero(np.isin(graph.op, list(codes)) & (kernel >= 0)).tolist():
            of_kernel = rates_of_kernel.setdefault(int(kernel[node]), {})
            op = codes[int(graph.op[node])]
            count = elements(graph.types[int(graph.type[node])])
            of_kernel[op] = of_kernel.get(op, 0.0) + (
                sort_flops(count, sorted_length(graph, node)) if op == "sort" else count
            )
    return rates_of_kernel


def _most(graph: Graph, kernel: Ints, code: Ints, count: int) -> Ints:
    """For each node the dtype of most elements computed in its kernel; of one that computes nothing, its own."""
    chosen = code.copy()
    if not len(graph.names):
        return chosen
    idle = np.asarray([op in _IDLE for op in graph.ops], bool)[graph.op]
    size = graph.sizes.elements[graph.type]
    counts = (kernel >= 0) & ~idle & (kernel != np.arange(len(graph.names)))
    pairs = kernel[counts].astype(np.int64) * count + code[counts]
    keys, where = np.unique(pairs, return_inverse=True)
    weight = np.bincount(where, size[counts], len(keys))
    for key in np.argsort(weight, kind="stable").tolist():
        chosen[int(keys[key]) // count] = int(keys[key]) % count
    return chosen
