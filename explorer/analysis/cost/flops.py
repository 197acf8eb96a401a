"""How many operations one HLO instruction does, and how large its arrays are."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.model.graph import Floats, Graph
from explorer.model.types import arrays, bytes_of, elements, sort_flops

__all__ = ["CALLERS", "Sizes", "array_sizes", "own_flops", "result_bytes", "window_size"]

_WINDOW = re.compile(r"\bwindow=\{([^}]*)\}")
_CONTRACTED = re.compile(r'lhs_contracting_dim(?:s=\{|ensions":\[)([\d,"]*)')
_LABELS = re.compile(r"\bdim_labels=(\w+)_(\w+)->(\w+)")
_GROUPS = re.compile(r"\b(feature|batch)_group_count=(\d+)")
_LENGTHS = re.compile(r"\bfft_length=\{([\d,]*)\}")
_MATMULS = re.compile(r'custom_call_target="(?:__cublas\$(?:lt\$)?(?:gemm|matmul)|__onednn\$matmul)')
_FACTORS = re.compile(r'custom_call_target="(?:lapack_([sdcz])|cusolver_|cublas_)(potrf|getrf|geqrf|orgqr|ungqr|trsm)')
_CONVOLUTIONS = re.compile(r'custom_call_target="(?:__cudnn\$conv|__onednn\$conv)')

# Instructions that name a computation to call.
CALLERS = frozenset(
    [
        *("fusion", "call", "while", "conditional", "reduce", "reduce-window", "select-and-scatter", "scatter", "map"),
        *("sort", "all-reduce", "all-reduce-start", "reduce-scatter", "async-start", "custom-call"),
    ]
)
# One operation for each element of the result.
_ELEMENTWISE = frozenset(
    [
        *("abs", "acos", "acosh", "add", "and", "asin", "asinh", "atan2", "atanh", "bitcast-convert", "cbrt", "ceil"),
        *("clamp", "compare", "complex", "convert", "cosine", "cosh", "count-leading-zeros", "divide", "erf"),
        *("exponential", "exponential-minus-one", "floor", "imag", "is-finite", "log", "log-plus-one", "logistic"),
        *("maximum", "minimum", "multiply", "negate", "not", "or", "popcnt", "power", "real", "reduce-precision"),
        *("remainder", "rng", "rng-bit-generator", "round-nearest-afz", "round-nearest-even", "rsqrt", "select"),
        *("shift-left", "shift-right-arithmetic", "shift-right-logical", "sign", "sine", "sinh", "sqrt"),
        *("stochastic-convert", "subtract", "tan", "tanh", "xor"),
    ]
)
# What these cost stands in their text, not in their type alone.
_READ = frozenset(("dot", "convolution", "fft", "sort", "triangular-solve", "cholesky", "custom-call"))


@dataclass(frozen=True)
class Sizes:
    """By type, an index into `Graph.types`: the elements of its first array, and the bytes of all."""

    elements: Floats
    bytes: Floats


def array_sizes(graph: Graph) -> Sizes:
    """How large the arrays of each type are."""
    return Sizes(
        np.asarray([elements(type_) for type_ in graph.types], np.float64),
        np.asarray([bytes_of(type_) for type_ in graph.types], np.float64),
    )


def own_flops(lines: Sequence[str], graph: Graph) -> Floats:
    """The operations of one run of each node without what it calls, shape `[n]`; NaN where that is not known."""
    size = array_sizes(graph).elements[graph.type]
    counts = np.asarray([op in _ELEMENTWISE for op in graph.ops], bool)[graph.op]
    flops = np.where(counts, size, 0.0)
    reads = np.asarray([op in _READ for op in graph.ops], bool)[graph.op]
    for node in np.flatnonzero(reads).tolist():
        row = int(graph.line[node])
        flops[node] = _flops_of(lines[row] if 0 <= row < len(lines) else "", graph, node, float(size[node]))
    return flops


def result_bytes(line: str, type_: str) -> int:
    """What an instruction gives, without the workspace that a library call declares beside it."""
    if _MATMULS.search(line) or _CONVOLUTIONS.search(line):
        return next((bytes_of(f"{dtype}[{','.join(dims)}]") for dtype, dims in arrays(type_)), 0)
    return bytes_of(type_)


def _flops_of(line: str, graph: Graph, node: int, size: float) -> float:
    op = graph.ops[int(graph.op[node])]
    operands = graph.operand[graph.operand_start[node] : graph.operand_start[node + 1]].tolist()
    shapes = [_first_shape(graph.types[int(graph.type[i])]) for i in operands]
    if op == "sort":
        return sort_flops(size)
    if op == "fft":
        lengths = _numbers(found[1]) if (found := _LENGTHS.search(line)) else []
        longest = max(size, math.prod(shapes[0]) if shapes else 0)
        return 8 * longest * math.prod(length.bit_length() - 1 for length in lengths)
    if op == "triangular-solve" and len(shapes) > 1:
        return size * shapes[0][-1]
    if op == "cholesky":
        return size * _first_shape(graph.types[int(graph.type[node])])[-1] / 3
    if op == "dot" or (op == "custom-call" and _MATMULS.search(line)):
        return _dot(line, shapes, size)
    if op == "custom-call" and (found := _FACTORS.search(line)):
        complex_ = 4 if graph.types[int(graph.type[node])].lstrip("(").startswith("c") else 1
        return complex_ * _factorised(found[2], shapes)
    if op == "convolution" or (op == "custom-call" and _CONVOLUTIONS.search(line)):
        return _convolution(line, shapes, _first_shape(graph.types[int(graph.type[node])]))
    return math.nan


def _first_shape(type_: str) -> list[int]:
    """Bounds stand for dynamic dimensions."""
    return [
        int(bound) for _, dims in arrays(type_)[:1] for dim in dims if (bound := dim.removeprefix("<=")).isdecimal()
    ]


def _numbers(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", text)]


def _dot(line: str, shapes: Sequence[Sequence[int]], size: float) -> float:
    """Two operations for each product of the sum that an element is."""
    found = _CONTRACTED.search(line)
    contracted = _numbers(found[1]) if found else []
    if not shapes or any(dim >= len(shapes[0]) for dim in contracted):
        return math.nan
    return 2 * size * math.prod(shapes[0][dim] for dim in contracted)


def _factorised(routine: str, shapes: Sequence[Sequence[int]]) -> float:
    """What a factorisation of LAPACK's does (LAPACK Working Note 41, appendix C), lower orders left out."""
    if not shapes or len(shapes[0]) < 2:
        return math.nan
    *batch, m, n = shapes[0]
    short = min(m, n)
    if routine == "trsm":
        return math.prod(shapes[1]) * short if len(shapes) > 1 else math.nan
    of_one = {
        "potrf": n**3 / 3,
        "getrf": m * n**2 - n**3 / 3 if m >= n else n * m**2 - m**3 / 3,
        "geqrf": 2 * m * n**2 - 2 * n**3 / 3 if m >= n else 2 * n * m**2 - 2 * m**3 / 3,
    }
    reflectors = shapes[1][-1] if len(shapes) > 1 and shapes[1] else short
    generated = 4 * m * n * reflectors - 2 * (m + n) * reflectors**2 + 4 * reflectors**3 / 3
    return math.prod(batch) * of_one.get(routine, generated)


def window_size(line: str) -> float:
    """How many elements a window holds."""
    return math.prod(_window(line, "size", 1)) if _WINDOW.search(line) else 1


def _window(line: str, name: str, rank: int, default: str = "1") -> list[int]:
    """A field of the window, one number a dimension: `size=3x3`, `stride=2x2`."""
    window = _WINDOW.search(line)
    found = re.search(rf"\b{name}=([\dx_\-]+)", window[1]) if window else None
    return [int(part) for part in (found[1].split("x") if found else [default] * rank)]


def _convolution(line: str, shapes: Sequence[Sequence[int]], output: Sequence[int]) -> float:
    """Two operations for each product; those with padding and with the holes of a dilation are not done."""
    labels = _LABELS.search(line)
    if labels is None or len(shapes) < 2:
        return math.nan
    left, right, out = labels.groups()
    if len(left) != len(shapes[0]) or len(right) != len(shapes[1]) or len(out) != len(output):
        return math.nan
    groups = dict.fromkeys(("feature", "batch"), 1) | {name: int(n) for name, n in _GROUPS.findall(line)}
    products = shapes[1][right.index("i")] * shapes[1][right.index("o")] * shapes[0][left.index("b")]
    products /= groups["batch"]
    for dim in range(len(right) - 2):
        key = str(dim)
        products *= _positions(line, dim, shapes[0][left.index(key)], output[out.index(key)], len(right) - 2)
    return 2 * products


def _positions(line: str, dim: int, size: int, outputs: int, rank: int) -> float:
    """How many pairs of an output and a kernel position, along one dimension, meet an element of the input."""
    kernel = _window(line, "size", rank)[dim]
    stride = _window(line, "stride", rank)[dim]
    window = _WINDOW.search(line)
    pads = re.search(r"\bpad=([\dx_\-]+)", window[1]) if window else None
    low = int(pads[1].split("x")[dim].split("_")[0]) if pads else 0
    spread, holes = _window(line, "lhs_dilate", rank)[dim], _window(line, "rhs_dilate", rank)[dim]
    at = np.arange(outputs)[:, None] * stride - low + np.arange(kernel)[None, :] * holes
    return float(((at >= 0) & (at % spread == 0) & (at < (size - 1) * spread + 1)).sum())
