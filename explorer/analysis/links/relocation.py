"""Instructions on another line than their equations.

XLA writes instructions anew without metadata, or with that of another: a product that took in a transpose has the
transpose's name and place, and a function that JAX lowers once has the place of its first call at all others too. The
numbers say which equations they are of, and the jaxpr on which line these are.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.graphs import innermost_own
from explorer.analysis.passes.origins import known_sets
from explorer.model.capture import Capture
from explorer.model.graph import Graph, Ints

# What the jaxpr calls it, by what HLO does.
_PRIMITIVES: Mapping[str, frozenset[str]] = {
    "convolution": frozenset(("conv_general_dilated",)),
    "dot": frozenset(("dot_general",)),
    "fft": frozenset(("fft",)),
    "sort": frozenset(("sort", "top_k", "approx_top_k")),
    "reduce-window": frozenset(
        [
            *("reduce_window", "reduce_window_sum", "reduce_window_max", "reduce_window_min"),
            *("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"),
        ]
    ),
    "select-and-scatter": frozenset(("select_and_scatter_add", "select_and_gather_add")),
    "scatter": frozenset(("scatter", "scatter_add", "scatter-add", "scatter_mul", "scatter_min", "scatter_max")),
}


def relocate_unattributed(capture: Capture) -> dict[int, int]:
    """For each instruction of the `hlo` stage that has no place or another's, the node of the jaxpr whose place it has.

    What does much of the work is on the line of the equation of its own kind.
    """
    sets = known_sets(capture).get("hlo")
    if sets is None or not any(stage.name == "jaxpr" for stage in capture.stages):
        return {}
    hlo, jaxpr = capture.hlo.graph, capture.jaxpr.graph
    node, equation = sets.pairs
    is_sure = hlo.is_equation[node] & jaxpr.is_equation[equation]
    pairs = node[is_sure], equation[is_sure]
    is_elsewhere = (hlo.frame < 0) | _has_only_its_callers(hlo) | _is_elsewhere(hlo, jaxpr, pairs)
    does_work = np.asarray([op in _PRIMITIVES for op in hlo.ops] or [False])[hlo.op]
    wanted = (is_elsewhere | does_work)[pairs[0]]
    rows_of = _grouped(pairs[0][wanted], pairs[1][wanted])
    equation_of: dict[int, int] = {}
    for at, rows in rows_of.items():
        primitives = _PRIMITIVES.get(hlo.ops[int(hlo.op[at])], frozenset[str]())
        own_kind = [row for row in rows if jaxpr.ops[int(jaxpr.op[row])] in primitives]
        chosen = own_kind or (rows if is_elsewhere[at] else [])
        if len({_line(jaxpr, row) for row in chosen}) == 1:
            equation_of[at] = chosen[0]
    return equation_of


def _grouped(nodes: Ints, rows: Ints) -> dict[int, list[int]]:
    rows_of: dict[int, list[int]] = {}
    for node, row in zip(nodes.tolist(), rows.tolist(), strict=True):
        rows_of.setdefault(node, []).append(row)
    return rows_of


def _is_elsewhere(hlo: Graph, jaxpr: Graph, pairs: tuple[Ints, Ints]) -> NDArray[np.bool_]:
    """Which instructions are on a line that none of their equations is on; `pairs` of both.

    Frames of an instruction end at some depth, and may then be a library's alone.
    """
    code: dict[tuple[str, int], int] = {}
    here, there = (_lines(graph, rows, code) for graph, rows in zip((hlo, jaxpr), pairs, strict=True))
    is_elsewhere = np.zeros(len(hlo.names), bool)
    is_elsewhere[pairs[0]] = True
    is_elsewhere[pairs[0][here == there]] = False
    return is_elsewhere


def _lines(graph: Graph, rows: Ints, code: dict[tuple[str, int], int]) -> Ints:
    """The line of each of some rows: of the innermost frame of the user's own; -1 for none."""
    own: list[int] = innermost_own(graph.frames).tolist()
    codes = [code.setdefault((graph.frames[at].file, graph.frames[at].line), len(code)) for at in own]
    return np.asarray([*codes, -1], np.int32)[graph.frame[rows]]


def _has_only_its_callers(hlo: Graph) -> NDArray[np.bool_]:
    """Whether each instruction of a loop's body or a branch has no place but that of the loop, as since JAX 0.12."""
    caller = np.asarray([group.caller for group in hlo.groups] + [-1], np.int64)[hlo.group]
    control = np.asarray([op in ("while", "conditional", "call") for op in hlo.ops], bool)[hlo.op]
    return (caller >= 0) & control[caller] & (hlo.frame == hlo.frame[caller])


def _line(graph: Graph, row: int) -> tuple[str, int]:
    frame = int(graph.frame[row])
    return (graph.frames[frame].file, graph.frames[frame].line) if frame >= 0 else ("", 0)
