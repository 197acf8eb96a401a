"""FLOPs of one HLO instruction, and sizes of its arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np

from explorer.analysis.graphs import is_op
from explorer.model.graph import Floats, Graph
from explorer.model.types import bytes_of, parse_type, sort_flops

# Prefixes of the targets of libraries' custom calls.
MATMULS = ("__cublas$gemm", "__cublas$matmul", "__cublas$lt$gemm", "__cublas$lt$matmul", "__onednn$matmul")
CONVOLUTIONS = ("__cudnn$conv", "__onednn$conv")
_FACTORS = ("potrf", "getrf", "geqrf", "orgqr", "ungqr", "trsm")

# Instructions that name a computation to call.
CALLERS = frozenset(
    [
        *("fusion", "call", "while", "conditional", "reduce", "reduce-window", "select-and-scatter", "scatter", "map"),
        *("sort", "all-reduce", "all-reduce-start", "reduce-scatter", "async-start", "call-start", "custom-call"),
        *("fusion-start", "reduce-scatter-start"),
    ]
)
# One operation for each element of the result.
ELEMENTWISE = frozenset(
    [
        *("abs", "acos", "acosh", "add", "and", "asin", "asinh", "atan2", "atanh", "bitcast-convert", "cbrt", "ceil"),
        *("clamp", "compare", "complex", "convert", "cosine", "cosh", "count-leading-zeros", "divide", "erf"),
        *("exponential", "exponential-minus-one", "floor", "imag", "is-finite", "log", "log-plus-one", "logistic"),
        *("maximum", "minimum", "multiply", "negate", "not", "or", "popcnt", "power", "real", "reduce-precision"),
        *("remainder", "rng", "round-nearest-afz", "round-nearest-even", "rsqrt", "select"),
        *("shift-left", "shift-right-arithmetic", "shift-right-logical", "sign", "sine", "sinh", "sqrt"),
        *("stochastic-convert", "subtract", "tan", "tanh", "xor"),
    ]
)
# Operations that move, rename or await data.
_MOVING = frozenset(
    [
        *("add-dependency", "after-all", "all-gather", "all-gather-start", "all-to-all", "async-done", "async-update"),
        *("bitcast", "broadcast", "collective-broadcast", "collective-permute", "collective-permute-start"),
        *("concatenate", "constant", "copy", "copy-start", "custom-call-start", "domain", "dynamic-reshape"),
        *("dynamic-slice", "dynamic-update-slice", "gather", "get-dimension-size", "get-tuple-element", "infeed"),
        *("iota", "opt-barrier", "outfeed", "pad", "parameter", "partition-id", "ragged-all-to-all", "recv"),
        *("replica-id", "reshape", "reverse", "rng-get-and-update-state", "send", "set-dimension-size", "slice"),
        *("slice-start", "transpose", "tuple", "dynamic-slice-start", "dynamic-update-slice-start"),
    ]
)
# Operations whose cost depends on attributes, or on several arrays.
_BY_ATTRIBUTES = frozenset(
    ("dot", "convolution", "fft", "sort", "triangular-solve", "cholesky", "custom-call", "rng-bit-generator")
)


def own_flops(graph: Graph) -> Floats:
    """Return the FLOPs of one run of each node without called computations, shape `[n]`; NaN if unknown."""
    size = graph.sizes.elements[graph.type]
    # The cost of an operation in no table, such as a batch norm or a top-k, is unknown, not zero.
    silent = [op in _MOVING or op in CALLERS or op.endswith("-done") for op in graph.ops]
    each = np.where([op in ELEMENTWISE for op in graph.ops], 1.0, np.where(silent, 0.0, math.nan))
    flops = each[graph.op] * size
    for node in np.flatnonzero(is_op(graph, _BY_ATTRIBUTES)).tolist():
        try:
            flops[node] = _flops_of(graph, node, float(size[node]))
        # Attributes of a damaged text: not a number, of another rank than the shapes, or too large for a float.
        except (IndexError, ValueError, ArithmeticError):
            flops[node] = math.nan
    return flops


def call_target(graph: Graph, node: int) -> str:
    return graph.attribute_table.get(node, "custom_call_target")


def result_bytes(graph: Graph, node: int) -> int:
    """Return the bytes of an instruction's result, without the workspace that a library call declares."""
    type_ = parse_type(graph.types[int(graph.type[node])])
    if call_target(graph, node).startswith((*MATMULS, *CONVOLUTIONS)):
        return bytes_of(str(type_.arrays[0])) if type_.arrays else 0
    return type_.bytes


def _flops_of(graph: Graph, node: int, size: float) -> float:
    operands = graph.operand[graph.operand_start[node] : graph.operand_start[node + 1]].tolist()
    shapes = [_first_shape(graph, i) for i in operands]
    match graph.ops[int(graph.op[node])]:
        case "sort":
            return sort_flops(size, sorted_length(graph, node))
        case "rng-bit-generator":  # its next state, then the bits
            return float(sum(array.elements for array in parse_type(graph.types[int(graph.type[node])]).arrays))
        case "fft":
            lengths = _numbers(graph.attribute_table.get(node, "fft_length"))
            longest = max(size, math.prod(shapes[0]))
            return 8 * longest * math.prod(length.bit_length() - 1 for length in lengths)
        case "triangular-solve" if len(shapes) > 1:
            return size * shapes[0][-1]
        case "cholesky":
            return size * _first_shape(graph, node)[-1] / 3
        case "dot":
            return _dot(graph, node, shapes, size)
        case "convolution":
            return _convolution(graph, node, shapes)
        case "custom-call":
            return _library_flops(graph, node, shapes, size)
        case _:
            return math.nan


def _library_flops(graph: Graph, node: int, shapes: Sequence[Sequence[int]], size: float) -> float:
    target = call_target(graph, node)
    if target.startswith(MATMULS):
        return _dot(graph, node, shapes, size)
    if routine := _factorisation(target):
        arrays = parse_type(graph.types[int(graph.type[node])]).arrays
        # A complex multiply-add takes four real ones.
        return (4 if arrays and arrays[0].dtype.startswith("c") else 1) * _factorised(routine, shapes)
    return _convolution(graph, node, shapes) if target.startswith(CONVOLUTIONS) else math.nan


def _factorisation(target: str) -> str:
    """Return LAPACK's name of a factorization without its dtype's letter: `getrf` for `lapack_sgetrf_ffi`; else ""."""
    library, _, routine = target.partition("_")
    if library not in ("lapack", "cusolver", "cublas"):
        return ""
    # Names of LAPACK begin with a letter for the dtype: `spotrf`.
    name = (routine[1:] if library == "lapack" else routine).partition("_")[0]
    return next((factor for factor in _FACTORS if name.startswith(factor)), "")


def sorted_length(graph: Graph, node: int) -> float:
    """Return the length of the sequences that a sort orders; NaN if the text names no dimension of its shape."""
    shape = _first_shape(graph, node)
    try:
        along = _numbers(graph.attribute_table.get(node, "dimensions"))
        return math.prod(shape[dim] for dim in along) if along else math.nan
    except (IndexError, ValueError):  # of a damaged text
        return math.nan


def _first_shape(graph: Graph, node: int) -> Sequence[int]:
    arrays = parse_type(graph.types[int(graph.type[node])]).arrays
    return arrays[0].shape if arrays else ()  # with bounds for dynamic dimensions


def _numbers(value: str) -> list[int]:
    return [int(part) for part in value.strip("{}[]").replace('"', "").split(",") if part.strip()]


def _dot(graph: Graph, node: int, shapes: Sequence[Sequence[int]], size: float) -> float:
    contracted = _numbers(graph.attribute_table.get(node, "lhs_contracting_dims"))
    if not shapes or any(dim >= len(shapes[0]) for dim in contracted):
        return math.nan
    return 2 * size * math.prod(shapes[0][dim] for dim in contracted)


def _factorised(routine: str, shapes: Sequence[Sequence[int]]) -> float:
    """Return the FLOPs of a LAPACK factorization (LAPACK Working Note 41, appendix C), lower orders left out.

    NaN if the shapes are not those of matrices.
    """
    if not shapes or len(shapes[0]) < 2:
        return math.nan
    *batch, m, n = shapes[0]
    short, long = sorted((m, n))
    if routine == "trsm":
        return math.prod(shapes[1]) * short if len(shapes) > 1 else math.nan
    of_one = {
        "potrf": n**3 / 3,
        "getrf": long * short**2 - short**3 / 3,
        "geqrf": 2 * long * short**2 - 2 * short**3 / 3,
    }
    reflectors = shapes[1][-1] if len(shapes) > 1 and shapes[1] else short
    generated = 4 * m * n * reflectors - 2 * (m + n) * reflectors**2 + 4 * reflectors**3 / 3
    return math.prod(batch) * of_one.get(routine, generated)


def window_size(graph: Graph, node: int) -> float:
    return math.prod(int(size) for size in _window(graph, node).get("size", ()) if size.isdecimal())


def _window(graph: Graph, node: int) -> dict[str, list[str]]:
    fields = (field.partition("=") for field in graph.attribute_table.get(node, "window").strip("{}").split())
    return {name: value.split("x") for name, _, value in fields}


def _convolution(graph: Graph, node: int, shapes: Sequence[Sequence[int]]) -> float:
    """Return the FLOPs of a convolution: two per product, without products in padding or dilation holes.

    NaN if its labels don't fit the shapes.
    """
    attributes, output = graph.attribute_table, _first_shape(graph, node)
    inputs, _, out = attributes.get(node, "dim_labels").partition("->")
    left, _, right = inputs.partition("_")
    if not out or len(shapes) < 2:
        return math.nan
    if len(left) != len(shapes[0]) or len(right) != len(shapes[1]) or len(out) != len(output):
        return math.nan
    products = shapes[1][right.index("i")] * shapes[1][right.index("o")] * shapes[0][left.index("b")]
    products /= int(attributes.get(node, "batch_group_count", "1"))
    window = _window(graph, node)
    for dim in range(len(right) - 2):
        key = str(dim)
        products *= _positions(window, dim, shapes[0][left.index(key)], output[out.index(key)])
    return 2 * products


def _positions(window: Mapping[str, Sequence[str]], dim: int, size: int, outputs: int) -> float:
    """Return the number of (output, kernel position) pairs along one dimension that meet an element of the input."""

    def field(name: str) -> int:
        return int(window[name][dim]) if name in window else 1

    low = int(window["pad"][dim].partition("_")[0]) if "pad" in window else 0
    steps = field("stride"), field("rhs_dilate"), low
    return float(meeting_pairs(outputs, field("size"), *steps, size, field("lhs_dilate")))


def meeting_pairs(outputs: int, kernel: int, stride: int, step: int, low: int, size: int, spread: int) -> int:
    """Return the number of pairs of `o` below `outputs` and `k` below `kernel` that meet an input element.

    They meet if `stride * o + step * k == low + spread * i` for an `i` below `size`. The pairs are counted without a
    loop over them, because a long convolution has 10**12. ValueError unless `stride`, `step` and `spread` are positive.
    """
    if min(outputs, kernel, size) <= 0:
        return 0
    if min(stride, step, spread) <= 0:
        raise ValueError("a window has a step that is not positive")
    # `low + spread * i` leaves o = first + every * u, and for each u one k modulo `turn`.
    common = math.gcd(step, spread)
    shared = math.gcd(stride, common)
    if low % shared:
        return 0
    every, turn = common // shared, spread // common
    first = low // shared * pow(stride // shared, -1, every) % every
    begin = (low - stride * first) // common * pow(step // common, -1, turn) % turn
    slope = stride // shared * pow(step // common, -1, turn) % turn
    # So k = begin - slope * u + turn * v, and the pairs are the lattice points (u, v) between straight lines: each
    # bound of v is (a * u + b) / m. At a given u there are floor(upper) - ceil(lower) + 1 of them.
    rows = max(-(-(outputs - first) // every), 0)
    a, b, m = (
        stride * every - step * slope,
        stride * first + step * begin - low,
        step * turn,
    )  # their place in the input
    uppers = [(slope, kernel - 1 - begin, turn), (-a, spread * (size - 1) - b, m)]
    lowers = [(slope, -begin, turn), (-a, -b, m)]
    edges = {0, rows}
    for (a1, b1, m1), (a2, b2, m2) in combinations(uppers + lowers, 2):
        if rise := a1 * m2 - a2 * m1:
            # A crossing at an integer is its own segment: the bounds may meet there and nowhere near.
            at, rest = divmod(b2 * m1 - b1 * m2, rise)
            edges.update(min(max(edge, 0), rows) for edge in (at + (rest != 0), at + 1))
    count = 0
    for start, end in pairwise(sorted(edges)):  # no two lines cross between these

        def middle(line: tuple[int, int, int], twice: int = start + end - 1) -> Fraction:
            return Fraction(line[0] * twice + 2 * line[1], line[2])

        upper, lower = min(uppers, key=middle), max(lowers, key=middle)
        if middle(upper) >= middle(lower):
            ceilings = _sum_of_floors((-lower[0], -lower[1], lower[2]), start, end)  # of the negative values
            count += _sum_of_floors(upper, start, end) + ceilings + end - start
    return count


def _sum_of_floors(line: tuple[int, int, int], start: int, end: int) -> int:
    """Return the sum of floor((a * u + b) / m) over `start` ≤ u < `end`, for the line (a, b, m), by Euclid's steps."""
    a, b, m = line
    n, b, total = end - start, a * start + b, 0
    while n > 0:
        total += n * (n - 1) // 2 * (a // m) + n * (b // m)
        a, b = a % m, b % m
        n, b = divmod(a * n + b, m)  # the points under the line, counted along the other axis
        a, m = m, a
    return total
