"""What a kernel computes, in a few words: `max, exp, sum`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from explorer.model.graph import Graph, Node

_MOST = 3
# The words that JAX's names and HLO's have in common with the person who wrote the line.
_WORDS: Mapping[str, str] = {
    "dot_general": "dot", "conv_general_dilated": "convolution", "reduce_sum": "sum", "reduce_max": "max",
    "reduce_min": "min", "reduce_prod": "product", "add_any": "add", "mul": "multiply", "sub": "subtract",
    "div": "divide", "neg": "negate", "select_n": "select", "integer_pow": "power", "pow": "power",
    "exponential": "exp", "log_plus_one": "log1p", "exponential_minus_one": "expm1", "rng_bit_generator": "random",
    "threefry2x32": "random", "convert_element_type": "convert", "broadcast_in_dim": "broadcast", "maximum": "max",
    "dynamic_update_slice": "update slice", "dynamic-update-slice": "update slice", "dynamic_slice": "slice",
    "dynamic-slice": "slice", "minimum": "min", "cumsum": "running sum",
}  # fmt: skip
# The most characteristic first; what is in none of these comes last.
_RANKS = tuple(
    re.compile(words)
    for words in (
        r"^(dot|convolution|sort|fft|cholesky|triangular|lu|qr|eigh|svd|call|random|all-|reduce-scatter|collective)",
        r"^(sum|max|min|product|argmax|argmin|reduce|running sum|mean|top_k|gather|scatter)$",
        r"^(exp|exp2|expm1|log|log1p|tanh|logistic|rsqrt|sqrt|cbrt|erf|sin|cos|power|square|softmax|relu|gelu)$",
        r"^(add|subtract|multiply|divide|rem|select|clamp|negate|abs|sign|and|or|xor|floor|round)$",
    )
)
_MOVES = frozenset(
    (
        "transpose",
        "copy",
        "broadcast",
        "reshape",
        "convert",
        "slice",
        "pad",
        "concatenate",
        "bitcast-convert",
        "reverse",
    )
)
_SILENT = frozenset(
    (
        "parameter",
        "constant",
        "tuple",
        "get-tuple-element",
        "bitcast",
        "fusion",
        "jit",
        "pjit",
        "stop_gradient",
        "return",
    )
)
_PRIMITIVE = re.compile(r"[a-z][a-z0-9_]*")


def kernel_words(nodes: Iterable[Node]) -> str:
    """The most characteristic operations among `nodes`, in program order; empty where they only pass values on."""
    words: list[str] = []
    for node in nodes:
        if node.op not in _SILENT and (word := _word(node)) not in words:
            words.append(word)
    computed = [word for word in words if word not in _MOVES]
    best = sorted(computed or words, key=_rank)[:_MOST]
    return ", ".join(word for word in words if word in best)


def words_of_fusions(graph: Graph) -> dict[int, str]:
    """For each node that calls a fusion, what that computes."""
    inside: dict[int, list[Node]] = {}
    fusions = {i: group.caller for i, group in enumerate(graph.groups) if group.kind == "fusion" and group.caller >= 0}
    for index, group in enumerate(graph.group.tolist()):
        if group in fusions:
            inside.setdefault(fusions[group], []).append(Node(graph, index))
    return {caller: kernel_words(nodes) for caller, nodes in inside.items()}


def _word(node: Node) -> str:
    # A primitive is more specific than the instruction that it became: `reduce_max`, not `reduce`.
    primitive = node.scope.rpartition("/")[2]
    is_named = node.op not in _MOVES and primitive not in _SILENT and primitive != "broadcast_in_dim"
    name = primitive if is_named and _PRIMITIVE.fullmatch(primitive) else node.op
    return node.attributes.get("custom_call_target") or _WORDS.get(name, name.replace("_", " "))


def _rank(word: str) -> int:
    return next((rank for rank, words in enumerate(_RANKS) if words.match(word)), len(_RANKS))
