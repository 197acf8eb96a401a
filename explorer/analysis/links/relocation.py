"""Instructions that do much of the work and lost their place on the way.

XLA's CPU compiler writes a convolution anew in another layout, without its metadata. Which equation it was is still to
be seen: one of its kind that no instruction is linked to, with as many elements. Several are in the same order; where
that doesn't come out even, nothing is said.

Where the recording knows the equations, nothing is matched: it says which one it was.

And where XLA folds a transpose into the product before it, the product is left with the transpose's name and place:
`(a @ b).T` on two lines is all on the second. That it is of another place shows: the jaxpr has no such product there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.passes.origins import known_sets
from explorer.analysis.placement import innermost_own
from explorer.model.capture import Capture
from explorer.model.graph import Graph, Ints
from explorer.model.types import elements

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
# What stays of an equation and bears its name may be only another view of the result.
_VIEWS = frozenset(("bitcast", "copy", "reshape", "transpose"))


def relocate_unattributed(capture: Capture) -> dict[int, int]:
    """For each instruction of the `hlo` stage that lost its place, the node of the jaxpr that it was."""
    if not any(stage.name == "jaxpr" for stage in capture.stages):
        return {}
    hlo, jaxpr = capture.hlo.graph, capture.jaxpr.graph
    exact, does = known_sets(capture).get("hlo"), (hlo.is_equation, jaxpr.is_equation)
    pairs = None if exact is None else exact.pairs
    placeless = (hlo.frame < 0) | _has_only_its_callers(hlo)
    equation_of: dict[int, int] = {}
    if exact is not None and pairs is not None:
        node, equation = pairs
        is_sure = does[0][node] & does[1][equation]
        equation_of = _by_exact_links(hlo, jaxpr, (node[is_sure], equation[is_sure]), placeless)
    for op, primitives in _PRIMITIVES.items():
        if op not in hlo.ops:
            continue
        equations = _nodes_of(jaxpr, primitives)
        nodes = np.flatnonzero(hlo.op == hlo.ops.index(op))
        lost = nodes[placeless[nodes]].tolist()
        if op == "dot":
            lost += _of_another_place(hlo, nodes[~placeless[nodes]].tolist(), jaxpr, equations.tolist())
        lost = [node for node in lost if node not in equation_of]
        if lost and len(equations):
            # Only here are the links needed: to link the stages of a large program takes a second.
            equation_of |= _matched(hlo, lost, jaxpr, _unlinked(capture, hlo, equations))
    return equation_of


def _by_exact_links(hlo: Graph, jaxpr: Graph, pairs: tuple[Ints, Ints], placeless: NDArray[np.bool_]) -> dict[int, int]:
    """For the instructions that have lost their place or have another's, or do much of the work, the equation that the
    recording knows.

    What took in another equation, as a product does a transpose, is on the line of the one of its own kind. And a
    function that JAX lowers once has the place of its first call at all others too.
    """
    does_work = np.asarray([op in _PRIMITIVES for op in hlo.ops] or [False])[hlo.op]
    equation_of: dict[int, int] = {}
    is_elsewhere = placeless | _is_elsewhere(hlo, jaxpr, pairs)
    wanted = (is_elsewhere | does_work)[pairs[0]]
    rows_of: dict[int, list[int]] = {}
    for node, row in zip(pairs[0][wanted].tolist(), pairs[1][wanted].tolist(), strict=True):
        rows_of.setdefault(node, []).append(row)
    for node, rows in rows_of.items():
        primitives = _PRIMITIVES.get(hlo.ops[int(hlo.op[node])], frozenset[str]())
        own_kind = [row for row in rows if jaxpr.ops[int(jaxpr.op[row])] in primitives]
        chosen = own_kind or (rows if is_elsewhere[node] else [])
        if len({_line(jaxpr, row) for row in chosen}) == 1:
            equation_of[node] = chosen[0]
    return equation_of


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


def _nodes_of(graph: Graph, ops: frozenset[str]) -> NDArray[np.intp]:
    return np.flatnonzero(np.isin(graph.op, [code for code, name in enumerate(graph.ops) if name in ops]))


def _unlinked(capture: Capture, hlo: Graph, equations: NDArray[np.intp]) -> list[int]:
    """Those of some equations whose name no instruction bears that does more than give another view."""
    row, equation = capture.links.sets["hlo"].pairs
    does = np.asarray([name not in _VIEWS for name in hlo.ops], bool)[hlo.op]
    return equations[~np.isin(equations, equation[does[row]])].tolist()


def _has_only_its_callers(hlo: Graph) -> NDArray[np.bool_]:
    """Whether each instruction of a loop's body or a branch has no place but that of the loop, as since JAX 0.12."""
    caller = np.asarray([group.caller for group in hlo.groups] + [-1], np.int64)[hlo.group]
    control = np.asarray([op in ("while", "conditional", "call") for op in hlo.ops], bool)[hlo.op]
    return (caller >= 0) & control[caller] & (hlo.frame == hlo.frame[caller])


def _of_another_place(hlo: Graph, nodes: Sequence[int], jaxpr: Graph, made: Sequence[int]) -> list[int]:
    """The instructions that are named as a view, where the jaxpr has no equation of theirs of such a size."""
    misnamed = [node for node in nodes if _split(hlo, node)[1] in _VIEWS]
    if not misnamed:
        return []
    there = {(_line(jaxpr, row), _size(jaxpr, row), _split(jaxpr, row)[0]) for row in made}
    displaced: list[int] = []
    for node in misnamed:
        path, _ = _split(hlo, node)
        inner = path.partition("/")[2] if path.startswith("jit(") else path  # the jaxpr is what that jit is of
        if not {(_line(hlo, node), _size(hlo, node), one) for one in (path, inner)} & there:
            displaced.append(node)
    return displaced


def _split(graph: Graph, node: int) -> tuple[str, str]:
    """The transforms and scopes around it, and the name of what it is."""
    path, _, name = graph.scopes[int(graph.scope[node])].rpartition("/")
    return path, name


def _matched(hlo: Graph, lost: Sequence[int], jaxpr: Graph, free: Sequence[int]) -> dict[int, int]:
    """By size, then in order; equations of one line are as good as one."""
    if len(lost) == len(free) and [_size(hlo, i) for i in lost] == [_size(jaxpr, i) for i in free]:
        return dict(zip(lost, free, strict=True))
    equation_of: dict[int, int] = {}
    free_by_size = _by_size(jaxpr, free)
    for size, here in _by_size(hlo, lost).items():
        there = free_by_size.get(size, [])
        if len(here) == len(there):
            equation_of |= dict(zip(here, there, strict=True))
        elif len({_line(jaxpr, row) for row in there}) == 1:
            equation_of |= dict.fromkeys(here, there[0])
    return equation_of


def _by_size(graph: Graph, nodes: Sequence[int]) -> dict[int, list[int]]:
    by_size: dict[int, list[int]] = {}
    for node in nodes:
        by_size.setdefault(_size(graph, node), []).append(node)
    return by_size


def _size(graph: Graph, node: int) -> int:
    return elements(graph.types[int(graph.type[node])])


def _line(graph: Graph, row: int) -> tuple[str, int]:
    frame = int(graph.frame[row])
    return (graph.frames[frame].file, graph.frames[frame].line) if frame >= 0 else ("", 0)
