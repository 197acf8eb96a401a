"""What became of an equation that no instruction bears the name of: inferred, where only one answer is left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.fates.metadata_fates import MetadataFates, Row, only_calls
from explorer.analysis.links.equations import twins
from explorer.model.graph import Graph
from explorer.model.types import elements

_NOTHING = frozenset(["stop_gradient", "name", "pvary", "optimization_barrier"])
# These change nothing where they give the type that they take.
_MAYBE_NOTHING = frozenset(["convert_element_type", "broadcast_in_dim", "reshape", "squeeze", "copy", "copy_p"])
_DEAD = Row("eliminated", (), True, "nothing that is returned depends on it")


def infer(fates: MetadataFates, depends: Sequence[int], dead: NDArray[np.bool_]) -> None:
    """Replace the rows of `fates` that are unknown where only one answer is left.

    Args:
        fates: Of one stage.
        depends: For each node, which arguments its value depends on; 0 for none.
        dead: Which nodes nothing that the program gives depends on, shape `[n]`.
    """
    # The order counts: each step takes what the ones before it found for settled.
    _eliminate(fates, dead.tolist())
    _fold(fates, depends)
    _take_from_caller(fates)
    _take_from_transpose(fates)


def _rows_unknown(fates: MetadataFates) -> list[int]:
    return [node for node, row in enumerate(fates.rows) if row.kind == "unknown"]


def _eliminate(fates: MetadataFates, dead: Sequence[bool]) -> None:
    """What nothing reads, changes nothing, or is written twice is gone."""
    graph, rows = fates.graph, fates.rows
    first_of = twins(graph)
    alike: dict[int, list[int]] = {}
    for node, first in first_of.items():
        alike.setdefault(first, [first]).append(node)
    for node, row in enumerate(rows):
        if dead[node] and row.kind in ("inlined", "unknown"):
            rows[node] = _DEAD
        elif row.kind != "unknown":
            continue
        elif _does_nothing(graph, node):
            rows[node] = Row("eliminated", (), True, "it changes no value")
        else:
            others = alike.get(first_of.get(node, node), ())
            kept = [i for i in others if rows[i].kernels]
            if kept:
                rows[node] = Row("merged", (), True, f"the same as {graph.names[kept[0]]}, which stands for both")


def _does_nothing(graph: Graph, node: int) -> bool:
    op = graph.ops[int(graph.op[node])]
    operands = graph.operand[graph.operand_start[node] : graph.operand_start[node + 1]]
    is_same = len(operands) == 1 and graph.type[operands[0]] == graph.type[node]
    return op in _NOTHING or (op in _MAYBE_NOTHING and is_same)


def _fold(fates: MetadataFates, depends: Sequence[int]) -> None:
    """A number that depends on no argument is computed while compiling; a whole array may be made where it is read."""
    graph, rows = fates.graph, fates.rows
    is_number = [elements(type_) == 1 for type_ in graph.types]
    for node in _rows_unknown(fates):
        if depends[node] or node in fates.callers or not is_number[int(graph.type[node])]:
            continue
        operands = graph.operand[graph.operand_start[node] : graph.operand_start[node + 1]].tolist()
        if all(rows[i].kind in ("", "folded") and is_number[int(graph.type[i])] for i in operands):
            rows[node] = Row("folded", (), True, "it depends on no argument: computed while compiling")


def _take_from_caller(fates: MetadataFates) -> None:
    """What a reduction or a scatter applies to each pair is where that is."""
    graph, rows = fates.graph, fates.rows
    callers = [group.caller for group in graph.groups] + [-1]
    for node in _rows_unknown(fates):
        caller = callers[int(graph.group[node])]
        if caller >= 0 and rows[caller].kernels and not only_calls(graph.ops[int(graph.op[caller])]):
            above = rows[caller]
            rows[node] = Row(above.kind, above.kernels, True, f"part of {graph.names[caller]}")


def _take_from_transpose(fates: MetadataFates) -> None:
    """A product that is transposed is computed transposed: then the instruction has the transpose's name."""
    graph, rows, hlo = fates.graph, fates.rows, fates.hlo
    user_start, user = graph.user_columns
    for node in _rows_unknown(fates):
        code = hlo.code.get(_PRODUCTS.get(graph.ops[int(graph.op[node])], ""), -1)
        readers: list[int] = user[user_start[node] : user_start[node + 1]].tolist()
        if code < 0 or len(readers) != 1 or not graph.ops[int(graph.op[readers[0]])].endswith("transpose"):
            continue
        products = [i for i in fates.linked.get(readers[0], ()) if hlo.op_code[i] == code]
        if len(products) == 1 and rows[readers[0]].kernels:
            above = rows[readers[0]]
            rows[node] = Row("rewritten", above.kernels, True, f"computed transposed, with {graph.names[readers[0]]}")


_PRODUCTS = {
    "dot_general": "dot",
    "conv_general_dilated": "convolution",
    "stablehlo.dot_general": "dot",
    "stablehlo.convolution": "convolution",
}
