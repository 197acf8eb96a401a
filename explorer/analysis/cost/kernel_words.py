"""What a kernel computes, in a few words: `max, exp, sum`; the compiler's own name, `fusion.579`, says nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from explorer.model.graph import Graph, Ints

__all__ = ["kernel_words"]

_MOST = 3
_DEEPEST = 8  # fusions in one another
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
# The most characteristic operations first; a word in none of these counts as those of 2.
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
# The compiler's own moving of data, whatever it was made for; said only of a kernel that does nothing else.
_MOVES = frozenset(
    [
        *("transpose", "copy", "broadcast", "reshape", "convert"),
        *("slice", "pad", "concatenate", "bitcast-convert", "reverse"),
    ]
)
_PRIMITIVE = re.compile(r"[a-z][a-z0-9_]*")


def kernel_words(graph: Graph) -> Mapping[int, str]:
    """By fusion, the operations that it is about: the three most characteristic ones, in program order.

    A primitive's name is more specific than the instruction's that it became, `reduce_max` than `reduce`, so it is
    taken but where the compiler itself moves data. What a reduction applies to two elements doesn't count, nor does
    what only moves data beside what computes.
    """
    if not len(graph.names):
        return {}
    words, code = _words(graph)
    kinds = np.asarray([group.kind for group in graph.groups] + [""])
    caller = np.asarray([group.caller for group in graph.groups] + [-1], np.int32)
    node = np.flatnonzero((code >= 0) & (kinds[graph.group] == "fusion")).astype(np.int32)
    place, rows = node, list[tuple[Ints, Ints, Ints]]()
    for _ in range(_DEEPEST):  # what is in a fusion in another is also the outer's, in the inner one's place
        fusion = caller[graph.group[place]]
        rows.append((fusion, place, code[node]))
        is_inside = (fusion >= 0) & (kinds[graph.group[fusion]] == "fusion")
        node, place = node[is_inside], fusion[is_inside]
        if not len(node):
            break
    fusion, place, word = (np.concatenate([row[at] for row in rows]).astype(np.int64) for at in range(3))
    order = np.lexsort((place, fusion))
    order = order[fusion[order] >= 0]  # nobody calls some
    first = np.sort(np.unique((fusion * len(words) + word)[order], return_index=True)[1])
    return _joined(words, fusion[order[first]], word[order[first]])


def _joined(words: list[str], fusion: NDArray[np.int64], word: NDArray[np.int64]) -> dict[int, str]:
    """Of each fusion its words, given in program order, the best of them as one text."""
    weights = [_weight(text) for text in words]
    of: dict[int, list[int]] = {}
    for kernel, code in zip(fusion.tolist(), word.tolist(), strict=True):
        of.setdefault(kernel, []).append(code)
    joined: dict[int, str] = {}
    for kernel, in_order in of.items():
        computing = [code for code in in_order if words[code] not in _MOVES] or in_order
        best = sorted(computing, key=lambda code: -weights[code])[:_MOST]
        joined[kernel] = ", ".join(words[code] for code in in_order if code in best)
    return joined


def _words(graph: Graph) -> tuple[list[str], Ints]:
    """The words that are there, and the one of each instruction; -1 for none."""
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
    return next((weight for weight, words in _WEIGHTS if re.fullmatch(words, word)), 2)
