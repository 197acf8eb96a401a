"""Which buffers may lie in the place of another: what operations and a module's header say about that.

After XLA's `alias_info.cc` and `CanShareOperandBufferWithUser` of `hlo_dataflow_analysis.cc`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from explorer.model.graph import Graph

# Of one array each: outputs that may lie where an operand was.
ELEMENTWISE = frozenset(
    [
        *("abs", "add", "and", "atan2", "bitcast-convert", "cbrt", "ceil", "clamp", "compare", "complex", "convert"),
        *("copy", "cosine", "count-leading-zeros", "divide", "erf", "exponential", "exponential-minus-one", "floor"),
        *("imag", "is-finite", "log", "log-plus-one", "logistic", "map", "maximum", "minimum", "multiply", "negate"),
        *(
            "not",
            "or",
            "popcnt",
            "power",
            "real",
            "reduce-precision",
            "remainder",
            "round-nearest-afz",
            "round-nearest-even",
        ),
        *("rsqrt", "select", "shift-left", "shift-right-arithmetic", "shift-right-logical", "sign", "sine", "sqrt"),
        *("stochastic-convert", "subtract", "tan", "tanh", "xor"),
    ]
)
# How many operands they write over, from the first; -1 for one an output.
IN_PLACE = {"dynamic-update-slice": 1, "scatter": -1, "all-reduce-start": -1}

# Of `{ {0}: (2, {}, may-alias) }`: output, operand and the place in it; of `{ (1, {}) }`: operand and place.
_ALIAS = re.compile(r"\{([\d, ]*)\}: \((\d+), \{([\d, ]*)\}")
_DONOR = re.compile(r"\((\d+), \{([\d, ]*)\}\)")
_LONGEST_CHAIN = 100


class Alias(NamedTuple):
    """An output that lies where an operand was: elements of their tuples, -1 for the whole."""

    output: int
    operand: int  # or the number of a parameter
    element: int


def aliases(value: str) -> list[Alias]:
    """Those of an attribute's value: an instruction's `output_to_operand_aliasing`, a module's `input_output_alias`."""
    matches = _ALIAS.findall(value)
    return [Alias(_element(output), int(operand), _element(path)) for output, operand, path in matches]


def donations(module: Mapping[str, str]) -> list[tuple[int, int]]:
    """Parameter and element of the arguments whose memory the caller gives away, by the module's attributes."""
    donated = [(alias.operand, alias.element) for alias in aliases(module.get("input_output_alias", ""))]
    return donated + [(int(n), _element(path)) for n, path in _DONOR.findall(module.get("buffer_donor", ""))]


def elementwise_uses(graph: Graph, nodes: Sequence[int]) -> set[int]:
    """The nodes of a fusion that are read element by element, all the way to its outputs."""
    free = set(nodes)
    through = [op in ELEMENTWISE or op == "tuple" for op in graph.ops]
    start, operand, op = graph.operand_start, graph.operand, graph.op
    for node in reversed(nodes):
        if node not in free or not through[op[node]]:
            free.difference_update(operand[start[node] : start[node + 1]].tolist())
    return free


def written_over(graph: Graph, root: int) -> Iterator[int]:
    """For each output of a fusion with this root, the node inside that it updates in place, or -1."""
    for output in _operands(graph, root) if _op(graph, root) == "tuple" else [root]:
        at = _behind(graph, output)
        operands = _operands(graph, at)
        updates = operands and _op(graph, at) in ("dynamic-update-slice", "scatter")
        yield _behind(graph, operands[0]) if updates else -1


def walk_back(graph: Graph, node: int, passes: Callable[[str], bool]) -> int:
    """The node that a chain of other names for it starts at."""
    for _ in range(_LONGEST_CHAIN):
        operands = _operands(graph, node)
        if not operands or not passes(_op(graph, node)):
            break
        node = operands[0]
    return node


def _behind(graph: Graph, node: int) -> int:
    return walk_back(graph, node, lambda op: op == "bitcast")


def _op(graph: Graph, node: int) -> str:
    return graph.ops[int(graph.op[node])]


def _operands(graph: Graph, node: int) -> list[int]:
    return graph.operand[graph.operand_start[node] : graph.operand_start[node + 1]].tolist()


def _element(path: str) -> int:
    first = path.partition(",")[0].strip()
    return int(first) if first else -1
