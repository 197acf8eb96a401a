"""What a kernel computes with: its dtype, and whether a matrix product or convolution does its work."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from explorer.analysis.cost.kernels import kernel_of
from explorer.model.graph import Graph, Ints
from explorer.model.results.peaks import SPECIAL
from explorer.model.types import arrays, bytes_of, elements, sort_flops

__all__ = ["KernelKinds", "kernel_kinds"]

_PRODUCTS = frozenset(("dot", "convolution", "triangular-solve", "cholesky"))
# Libraries' matrix products, convolutions and factorisations: the latter's work is in blocks that are products.
_LIBRARY = re.compile(
    r'custom_call_target="(?:__cublas|__cudnn\$(?:conv|fmha)|__onednn\$(?:matmul|conv)|__triton_(?:gemm|nested_gemm)'
    r"|lapack_|cusolver_|cublas_)"
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


def kernel_kinds(lines: Sequence[str], graph: Graph) -> KernelKinds:
    """What each kernel of an optimised program computes with.

    Of a matrix product it is the dtype of what is multiplied; else that of most of the arithmetic inside.

    Args:
        lines: Of the module's text.
        graph: What was read from it.
    """
    kernel = kernel_of(graph)
    matmul = np.zeros(len(graph), bool)
    dtypes = [_dtype(type_) for type_ in graph.types]
    names = sorted(set(dtypes))
    code = np.asarray([names.index(dtype) for dtype in dtypes], np.int32)[graph.type] if len(graph) else kernel
    chosen = _most(graph, kernel, code, len(names))
    for node in _products(lines, graph):
        at = int(kernel[node]) if kernel[node] >= 0 else node
        matmul[at] = True
        operand = graph.operand[graph.operand_start[node] : graph.operand_start[node + 1]]
        chosen[at] = code[operand[0]] if len(operand) else code[node]
    of_node: list[int] = chosen.tolist()
    return KernelKinds([names[i] for i in of_node], matmul.tolist(), _special(graph, kernel))


def _products(lines: Sequence[str], graph: Graph) -> list[int]:
    products = np.asarray([op in _PRODUCTS for op in graph.ops], bool)
    calls = np.asarray([op == "custom-call" for op in graph.ops], bool)
    if not len(graph):
        return []
    found = np.flatnonzero(products[graph.op]).tolist()
    for node in np.flatnonzero(calls[graph.op]).tolist():
        row = int(graph.line[node])
        if 0 <= row < len(lines) and _LIBRARY.search(lines[row]):
            found.append(node)
    return found


def _special(graph: Graph, kernel: Ints) -> dict[int, dict[str, float]]:
    codes = {code: op for code, op in enumerate(graph.ops) if op in SPECIAL}
    found: dict[int, dict[str, float]] = {}
    if codes:
        for node in np.flatnonzero(np.isin(graph.op, list(codes)) & (kernel >= 0)).tolist():
            of_kernel = found.setdefault(int(kernel[node]), {})
            op = codes[int(graph.op[node])]
            count = elements(graph.types[int(graph.type[node])])
            of_kernel[op] = of_kernel.get(op, 0.0) + (sort_flops(count) if op == "sort" else count)
    return found


def _most(graph: Graph, kernel: Ints, code: Ints, count: int) -> Ints:
    """For each node the dtype of most elements computed in its kernel; of one that computes nothing, its own."""
    chosen = code.copy()
    if not len(graph):
        return chosen
    idle = np.asarray([op in _IDLE for op in graph.ops], bool)[graph.op]
    size = np.asarray([elements(type_) for type_ in graph.types], np.float64)[graph.type]
    counts = (kernel >= 0) & ~idle & (kernel != np.arange(len(graph)))
    pairs = kernel[counts].astype(np.int64) * count + code[counts]
    keys, where = np.unique(pairs, return_inverse=True)
    weight = np.bincount(where, size[counts], len(keys))
    for key in np.argsort(weight, kind="stable").tolist():
        chosen[int(keys[key]) // count] = int(keys[key]) % count
    return chosen


@lru_cache(maxsize=4096)
def _dtype(type_: str) -> str:
    found = arrays(type_)
    return max(found, key=lambda one: bytes_of(f"{one[0]}[{','.join(one[1])}]"))[0] if found else ""
