"""Kernels of a module: the instructions that run as one, their dtype and operations, and cost sums."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.flops import call_target, sorted_length
from explorer.analysis.graphs import is_op
from explorer.model.declared import cached_property
from explorer.model.graph import Graph, Ints
from explorer.model.results.roofline import SPECIAL
from explorer.model.types import parse_type, sort_flops

# Plumbing that runs no kernel of its own.
PLUMBING = frozenset(
    [
        *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "opt-barrier"),
        *("while", "conditional", "call"),
    ]
)
# Kinds of groups that run inside a kernel.
BOUNDARY = frozenset(["fusion", "apply"])
_MAX_DEPTH = 8  # of nested fusions


def kernel_of(graph: Graph) -> Ints:
    """Return for each instruction the kernel that runs it: itself, or the fusion around it.

    -1 for what runs nothing itself, such as a tuple or a loop, and in computations that the program doesn't run.
    """
    inside = np.asarray([g.kind in BOUNDARY and g.caller >= 0 for g in graph.groups] + [False])
    caller = graph.caller
    at = np.arange(len(graph.names), dtype=np.int32)
    for _ in range(_MAX_DEPTH):
        is_inside = inside[graph.group[at]]
        if not is_inside.any():
            break
        at = np.where(is_inside, caller[graph.group[at]], at)
    return np.where(~is_op(graph, PLUMBING)[at] & is_called(graph)[graph.group], at, -1).astype(np.int32)


def is_called(graph: Graph) -> NDArray[np.bool_]:
    """Return a mask of the groups that the program runs: the entry, and those called from it.

    All are True if no computation is marked as the entry. A final True is for nodes without a group.
    """
    is_part = np.asarray([group.kind == "entry" for group in graph.groups] + [True])
    if not is_part[:-1].any():
        return np.ones(len(graph.groups) + 1, bool)
    caller = graph.caller
    around = np.where(caller >= 0, graph.group[caller], -1) if len(graph.names) else caller
    is_called_at_all = caller >= 0
    while True:  # one more level of calls each time
        reached = is_part | (is_called_at_all & is_part[around])
        if (reached == is_part).all():
            return is_part
        is_part = reached


def running_nodes(graph: Graph) -> Ints:
    """Return the nodes that run as kernels of their own, in program order."""
    outside = np.asarray([*[group.kind not in BOUNDARY for group in graph.groups], True])  # group -1: the last one
    is_part = outside & is_called(graph)
    return np.flatnonzero(~is_op(graph, PLUMBING) & is_part[graph.group]).astype(np.int32)


_NAMES = {"flops": "flops", "bytes": "bytes accessed"}  # by measure, XLA's name of its sum


class TotalCost(Mapping[str, float]):
    """`flops` and `bytes accessed` of an HLO module, computed on first access; unknown sums are left out."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    @cached_property
    def _sums(self) -> dict[str, float]:
        kernels = running_nodes(self._graph)
        sums = {name: float(self._graph.measures[measure][kernels].sum())
                for measure, name in _NAMES.items() if measure in self._graph.measures}  # fmt: skip
        return {name: value for name, value in sums.items() if not np.isnan(value)}

    def __getitem__(self, name: str) -> float:
        return self._sums[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sums)

    def __len__(self) -> int:
        return len(self._sums)

    def __repr__(self) -> str:
        return repr(self._sums)


_PRODUCTS = frozenset(("dot", "convolution", "triangular-solve", "cholesky"))
# Libraries' matrix products, convolutions and factorizations, which consist of products of blocks.
_LIBRARY = (
    *("__cublas", "__cudnn$conv", "__cudnn$fmha", "__onednn$matmul", "__onednn$conv", "__triton_gemm"),
    *("__triton_nested_gemm", "lapack_", "cusolver_", "cublas_"),
)
_IDLE = frozenset(("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "broadcast", "iota"))


@dataclass(frozen=True, eq=False)
class KernelKinds:
    """Dtype and kind of each kernel of a module, by node.

    Args:
        dtype: Dtype of the computation, such as `f32`.
        is_matmul: True for a matrix product or convolution, also inside.
        special: For kernels with operations slower than a multiply-add, the elements that each computes in one run.
    """

    dtype: Sequence[str]
    is_matmul: Sequence[bool]
    special: Mapping[int, Mapping[str, float]]


def kernel_kinds(graph: Graph) -> KernelKinds:
    """Return each kernel's dtype and True for a matrix product, convolution or factorization inside, by node, and its
    slow operations.

    The dtype is that of a product's first operand, else that of most of the arithmetic inside.
    """
    kernel = graph.kernel
    matmul = np.zeros(len(graph.names), bool)
    dtypes = [parse_type(type_).dtype for type_ in graph.types]
    # Sorted, so that of equal weights the same dtype is chosen in every process.
    names = sorted(set(dtypes))
    code = np.asarray([names.index(dtype) for dtype in dtypes], np.int32)[graph.type] if len(graph.names) else kernel
    chosen = _main_dtypes(graph, kernel, code, len(names))
    has_calls = "custom_call_target" in graph.attribute_table.columns.keys
    calls: list[int] = graph.attribute_table.nodes("custom_call_target").tolist() if has_calls else []
    products = np.flatnonzero(is_op(graph, _PRODUCTS)).tolist()
    for node in [*products, *(node for node in calls if call_target(graph, node).startswith(_LIBRARY))]:
        at = int(kernel[node]) if kernel[node] >= 0 else node
        matmul[at] = True
        operand = graph.operand[graph.operand_start[node] : graph.operand_start[node + 1]]
        chosen[at] = code[operand[0]] if len(operand) else code[node]
    of_node: list[int] = chosen.tolist()
    return KernelKinds([names[i] for i in of_node], matmul.tolist(), _special(graph, kernel))


def _special(graph: Graph, kernel: Ints) -> dict[int, dict[str, float]]:
    rates_of_kernel: dict[int, dict[str, float]] = {}
    for node in np.flatnonzero(is_op(graph, SPECIAL) & (kernel >= 0)).tolist():
        of_kernel = rates_of_kernel.setdefault(int(kernel[node]), {})
        op, count = graph.ops[int(graph.op[node])], float(graph.sizes.elements[graph.type[node]])
        rate = sort_flops(count, sorted_length(graph, node)) if op == "sort" else count
        of_kernel[op] = of_kernel.get(op, 0.0) + rate
    return rates_of_kernel


def _main_dtypes(graph: Graph, kernel: Ints, code: Ints, count: int) -> Ints:
    """Return for each kernel the dtype code of most elements computed inside; its own code if nothing is inside.

    `code` is the dtype code of each node, below `count`.
    """
    chosen = code.copy()
    if not len(graph.names):
        return chosen
    size = graph.sizes.elements[graph.type]
    counts = (kernel >= 0) & ~is_op(graph, _IDLE) & (kernel != np.arange(len(graph.names)))
    pairs = kernel[counts].astype(np.int64) * count + code[counts]
    keys, where = np.unique(pairs, return_inverse=True)
    weight = np.bincount(where, size[counts], len(keys))
    # Ascending, so that a kernel's heaviest dtype is written last.
    for key in np.argsort(weight, kind="stable").tolist():
        chosen[int(keys[key]) // count] = int(keys[key]) % count
    return chosen


__all__ = ["kernel_words"]

_MAX_WORDS = 3
_WORDS = {
    **{"dot_general": "dot", "conv_general_dilated": "convolution", "reduce_sum": "sum", "reduce_max": "max"},
    **{"reduce_min": "min", "reduce_prod": "product", "add_any": "add", "mul": "multiply", "sub": "subtract"},
    **{"div": "divide", "neg": "negate", "select_n": "select", "integer_pow": "power", "pow": "power"},
    **{"exponential": "exp", "exponential_minus_one": "expm1", "log_plus_one": "log1p", "cumsum": "running sum"},
    **{"rng_bit_generator": "random", "threefry2x32": "random", "convert_element_type": "convert"},
    **{"broadcast_in_dim": "broadcast", "dynamic_update_slice": "update slice", "dynamic_slice": "slice"},
    **{"scatter_add": "scatter", "dynamic-update-slice": "update slice", "dynamic-slice": "slice"},
    **{"custom-call": "call", "maximum": "max", "minimum": "min"},
}
# Weights of operations, the most characteristic first; the default is 2.
_WEIGHTS = [
    (
        6,
        r"(?:dot|convolution|sort|fft|cholesky|triangular|lu|qr|eigh|svd|call|random|all-|reduce-scatter|collective).*",
    ),
    (5, r"sum|max|min|product|argmax|argmin|reduce|running sum|mean|top_k|gather|scatter"),
    (4, r"exp|exp2|expm1|log|log1p|tanh|logistic|rsqrt|sqrt|cbrt|erf|erf_inv|sin|cos|power|square|softmax|relu|gelu"),
    (3, r"add|subtract|multiply|divide|rem|select|clamp|negate|abs|sign|and|or|xor|floor|round"),
    (2, r"compare|eq|ne|lt|le|gt|ge|concatenate|pad|slice|update slice|iota|rev|convert|not"),
    (1, r"transpose|copy|broadcast|reshape"),
]
_SILENT = frozenset(
    [
        *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "fusion"),
        *("jit", "pjit", "stop_gradient", "return", "root"),
    ]
)
# The compiler's own movement of data, mentioned only for a kernel that does nothing else.
_MOVES = frozenset(
    [
        *("transpose", "copy", "broadcast", "reshape", "convert"),
        *("slice", "pad", "concatenate", "bitcast-convert", "reverse"),
    ]
)
_PRIMITIVE = re.compile(r"[a-z][a-z0-9_]*")


def kernel_words(graph: Graph) -> Mapping[int, str]:
    """Return by fusion its up to three most characteristic operations in program order, such as `max, exp, sum`.

    A primitive's name is more specific than that of its instruction (`reduce_max` and `reduce`), so it is preferred
    except for data that the compiler moves. What a reduction applies to two elements doesn't count. Neither do
    operations that only move data, next to others that compute.
    """
    if not len(graph.names):
        return {}
    words, code = _words(graph)
    kinds = np.asarray([group.kind for group in graph.groups] + [""])
    caller = graph.caller
    node = np.flatnonzero((code >= 0) & (kinds[graph.group] == "fusion")).astype(np.int32)
    place, rows = node, list[tuple[Ints, Ints, Ints]]()
    for _ in range(_MAX_DEPTH):  # the contents of a nested fusion count for the outer one, at the inner one's place
        fusion = caller[graph.group[place]]
        rows.append((fusion, place, code[node]))
        is_inside = (fusion >= 0) & (kinds[graph.group[fusion]] == "fusion")
        node, place = node[is_inside], fusion[is_inside]
        if not len(node):
            break
    fusion, place, word = (np.concatenate([row[at] for row in rows]).astype(np.int64) for at in range(3))
    order = np.lexsort((place, fusion))
    order = order[fusion[order] >= 0]  # some fusions have no caller
    first = np.sort(np.unique((fusion * len(words) + word)[order], return_index=True)[1])
    return _joined(words, fusion[order[first]], word[order[first]])


def _joined(words: list[str], fusion: NDArray[np.int64], word: NDArray[np.int64]) -> dict[int, str]:
    weights = [_weight(text) for text in words]
    of: dict[int, list[int]] = {}
    for kernel, code in zip(fusion.tolist(), word.tolist(), strict=True):
        of.setdefault(kernel, []).append(code)
    joined: dict[int, str] = {}
    for kernel, in_order in of.items():
        computing = [code for code in in_order if words[code] not in _MOVES] or in_order
        best = sorted(computing, key=lambda code: -weights[code])[:_MAX_WORDS]
        joined[kernel] = ", ".join([words[code] for code in in_order if code in best])
    return joined


def _words(graph: Graph) -> tuple[list[str], Ints]:
    # A program has few distinct pairs, and each is worded once.
    pair = graph.op.astype(np.int64) * len(graph.scopes) + graph.scope
    distinct, of_node = np.unique(pair, return_inverse=True)
    words: dict[str, int] = {}
    codes = np.full(len(distinct), -1, np.int32)
    for i, each in enumerate(distinct.tolist()):
        op, scope = divmod(int(each), len(graph.scopes))
        word = _word(graph.ops[op], graph.scopes[scope].rpartition("/")[2])
        if word:
            codes[i] = words.setdefault(word, len(words))
    code = codes[of_node]
    for node in np.flatnonzero(np.asarray([op == "custom-call" for op in graph.ops])[graph.op]).tolist():
        if target := graph.attribute_table.get(node, "custom_call_target"):
            code[node] = words.setdefault(target, len(words))
    return list(words), code


def _word(op: str, primitive: str) -> str:
    if op in _SILENT:
        return ""
    is_named = _PRIMITIVE.fullmatch(primitive) and primitive not in _SILENT and primitive != "broadcast_in_dim"
    name = primitive if is_named and op not in _MOVES else op
    return _WORDS.get(name) or name.replace("_", " ")


def _weight(word: str) -> int:
    for weight, words in _WEIGHTS:
        if re.fullmatch(words, word):
            return weight
    return 2
