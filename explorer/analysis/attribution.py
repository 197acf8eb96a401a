"""Attribution of nodes to lines of the source, once for each stage.

A node belongs to the line of the innermost frame of its stack that is in user code. For other nodes:

1. An instruction that lost its metadata has its equation's line (`relocate_unattributed`), and so has an instruction
   that does the work of an equation on another line than its metadata names.
2. A node that the compiler added for another node, such as a copy of layout assignment, serves that node: its first
   reader, the kernel or loop around it, or its operand. A node that alone applies a computation, such as the sum that
   a TPU's compiler extracts from a reduce-scatter, serves the line of that computation. A node that the partitioner
   adds to move an operand between devices serves its reader, although newer XLA names the operand's place; a sum of
   parts belongs to its maker.
3. A node with frames of libraries only has the innermost of these.
4. Arguments, constants and plumbing without a frame belong to no line.

XLA rewrites instructions without metadata, or with that of another instruction: a product that absorbed a transpose
has the transpose's name and place, and a function that JAX lowers once has the place of its first call everywhere. The
equations' numbers identify the equations of such instructions, and the jaxpr their lines.

A kernel belongs to the lines of all instructions inside it. Work of its reducers counts for the reduction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.graphs import innermost_own, is_op, spread_places
from explorer.analysis.source_paths import stacks
from explorer.errors import UnknownNameError
from explorer.model.attribution import EQUATION, LIBRARY, NONE, OWN, SERVES, Attribution, SourceLine
from explorer.model.capture import Capture
from explorer.model.graph import Frame, Graph, Ints, Node
from explorer.model.links import GRADES, EquationSets, Links
from explorer.model.stage import is_library_file

# Without a frame of their own these belong to no line and pass none on: many lines read an argument.
_SOURCES = frozenset(["parameter", "constant", "stablehlo.constant"])
_PLUMBING = _SOURCES | {"tuple", "get-tuple-element", "after-all", "opt-barrier", "return", "func.return"}
_PARTITIONERS = 'is_spmd_generated="true"'
_SUMS = ("all-reduce", "reduce-scatter")
_MAX_STEPS = 64  # instructions between a moved node and its reader
_MAX_DEPTH = 8  # of nested fusions and lambdas


def attribute_program(graph: Graph, jaxpr: Graph | None, sets: EquationSets | None) -> Attribution:
    """Return the source line of each node of an optimized program.

    `sets` are the nodes' equations in `jaxpr`, if known. They give lines to nodes that lost their metadata.
    """
    if sets is None or jaxpr is None:
        return attribute(graph)
    return attribute(graph, jaxpr, relocate_unattributed(graph, jaxpr, sets))


def attribute(graph: Graph, first: Graph | None = None, lost: Mapping[int, int] | None = None) -> Attribution:
    """Return the source line of each node of a graph, and how the line is known.

    Args:
        graph: Of any stage.
        first: Graph of the stage that has the equations.
        lost: For each node that takes the place of an equation, the equation's row in `first`.
    """
    lost = lost or {}
    places = _Places()
    own = places.codes(graph)
    equation = np.full(len(graph.names), -1, np.int32)
    if first is not None and lost:
        equation[list(lost)] = list(lost.values())
    by = _owners(graph, lost)
    line = np.where(by >= 0, own[graph.frame[by]], np.int32(-1))
    of_equation = np.where(by >= 0, equation[by], np.int32(-1))
    is_lost = of_equation >= 0
    if first is not None and is_lost.any():
        of_first = np.full(len(line), -1, np.int32)
        of_first[is_lost] = places.codes(first)[first.frame[of_equation[is_lost]]]
        is_lost = (of_first >= 0) & (of_first != line)  # its own frames may name the same line
        line = np.where(is_lost, of_first, line)
    equation = np.where(is_lost, of_equation, np.int32(-1))
    mark = np.where(by == np.arange(len(by)), np.where(is_lost, EQUATION, OWN), SERVES)
    is_library = np.asarray([*(is_library_file(place.file) for place in places.rows), False], bool)[line]
    mark = np.where(line < 0, NONE, np.where(is_library & (mark == OWN), LIBRARY, mark)).astype(np.int32)
    by[line < 0] = -1
    start, node = _members(graph, line, len(places.rows))
    return Attribution(places.rows, line, mark, by, equation, start, node)


def own_frame(stack: Sequence[Frame]) -> Frame | None:
    """Return the innermost frame in user code, else the innermost frame; None for an empty stack."""
    return next((frame for frame in stack if not is_library_file(frame.file)), next(iter(stack), None))


def nodes_at(
    capture: Capture, line: int, stage: str = "hlo", *, file: str | None = None, through: bool = False
) -> tuple[Node, ...]:
    """Return the nodes of a stage that belong to a source line; see `Capture.nodes_at`."""
    graph = capture.stage(stage).graph
    file = capture.file if file is None else file
    nodes = graph.nodes_through(file, line) if through else graph.attribution.nodes(file, line)
    return tuple(Node(graph, i) for i in nodes.tolist())


def nodes_through(graph: Graph, file: str, line: int) -> Ints:
    """Return the indices of the nodes whose stack contains a line, ascending: for a call, all nodes that it made."""
    passes = [frame.file == file and frame.line == line for frame in graph.frames]
    return np.flatnonzero(through_frames(graph, passes)).astype(np.int32)


def through_frames(graph: Graph, passes: Sequence[bool]) -> NDArray[np.bool_]:
    """Return a mask of the nodes whose stack has one of the frames in the mask `passes`, shape `[n]`."""
    through = [any(passes[at] for at in stack) for stack in stacks(graph)]
    return np.asarray([*through, False], bool)[graph.frame]


def _named_function(frames: Sequence[Frame], at: int) -> str:
    # A lambda or a comprehension is named after the function that calls it.
    for _ in range(_MAX_DEPTH):
        parts = [*dropwhile(lambda part: part.startswith("<"), reversed(frames[at].function.split(".")))]
        if parts or not 0 <= frames[at].parent < len(frames):
            return ".".join(reversed(parts)) or frames[at].function
        at = frames[at].parent
    return frames[at].function


class _Places:
    def __init__(self) -> None:
        self.rows: list[SourceLine] = []
        self._code: dict[tuple[str, int], int] = {}

    def codes(self, graph: Graph) -> Ints:
        """Return for each frame the index in `rows` of its line: that of the first user code outwards, else its own.

        The index is -1 for a frame without a file. A final -1 is for nodes without a frame. New lines join `rows`.
        """
        codes: list[int] = []
        own: list[int] = innermost_own(graph.frames).tolist()
        for at in own:
            frame = graph.frames[at]
            code = -1
            if frame.file:
                code = self._code.setdefault((frame.file, frame.line), len(self.rows))
                if code == len(self.rows):
                    self.rows.append(SourceLine(frame.file, frame.line, _named_function(graph.frames, at)))
            codes.append(code)
        return np.asarray([*codes, -1], np.int32)


def _owners(graph: Graph, lost: Mapping[int, int]) -> Ints:
    """Return for each node the node whose source line it has: itself, the node it serves, or -1."""
    is_placed = graph.frame >= 0
    is_placed[list(lost)] = True
    at = np.where(is_placed, np.arange(len(is_placed), dtype=np.int32), np.int32(-1))
    moved = _moved(graph)
    moved[list(lost)] = False
    for node, reader in _readers(graph, moved):
        at[node] = reader
    for node, applied in _applied(graph):
        at[node] = applied if at[node] < 0 else at[node]
    sources, plumbing = (is_op(graph, names) & ~is_placed for names in (_SOURCES, _PLUMBING))
    around = graph.caller[graph.group]
    # A body's parameter takes the place of the loop or kernel; only the program's own arguments pass no place on.
    return np.where(plumbing, np.int32(-1), spread_places(graph, at, sources & (around < 0), readers_first=True))


def _moved(graph: Graph) -> NDArray[np.bool_]:
    """Return a mask of the nodes that the partitioner added to move an operand, as newer XLA marks them."""
    values = graph.attribute_table.columns.values
    if "frontend_attributes" not in graph.attribute_table.columns.keys:
        return np.zeros(len(graph.names), bool)
    codes = graph.attribute_table.codes("frontend_attributes")
    marked = [code for code in np.unique(codes[codes >= 0]).tolist() if _PARTITIONERS in values[code]]
    # A sum that the partitioner added completes its own equation, so it keeps its place.
    is_sum = np.asarray([op.startswith(_SUMS) for op in graph.ops] or [False], bool)[graph.op]
    is_marked = np.isin(codes, marked)
    return is_marked & ~is_sum & (graph.frame >= 0)


def _readers(graph: Graph, moved: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Yield (moved node, its first reader with a place of its own), also into kernels, if there is such a reader."""
    if not moved.any():
        return
    fusions = [group.caller if group.kind == "fusion" else -1 for group in graph.groups]
    around = np.asarray([*fusions, -1], np.int32)[graph.group]
    parameters: list[int] = np.flatnonzero((graph.parameter_number >= 0) & (around >= 0)).tolist()
    inside = {(int(around[node]), int(graph.parameter_number[node])): node for node in parameters}
    passes_on = moved | (graph.frame < 0)
    passes_on[[*parameters, *(node for node in fusions if node >= 0)]] = True
    for node in np.flatnonzero(moved).tolist():
        at = node
        for _ in range(_MAX_STEPS):
            at = _first_reader(graph, at, int(around[at]), inside)
            if at < 0 or not passes_on[at]:
                break
        if at >= 0 and not passes_on[at]:
            yield node, at


def _first_reader(graph: Graph, node: int, kernel: int, inside: Mapping[tuple[int, int], int]) -> int:
    """Return a node's first reader, or the parameter inside if the reader is a fusion.

    Without readers, return `kernel`: the fusion around the node, or -1. `inside` has the fusions' parameters by
    (fusion, operand number).
    """
    start, user = graph.user_columns
    if start[node] == start[node + 1]:
        return kernel
    reader = int(user[start[node]])
    operands: list[int] = graph.operand[graph.operand_start[reader] : graph.operand_start[reader + 1]].tolist()
    return inside.get((reader, operands.index(node)), reader)


def _applied(graph: Graph) -> Iterator[tuple[int, int]]:
    """Yield (node, root of the computation it applies) if no other node applies that and the root has a frame."""
    # A computation with several callers has the place of only one of them.
    callers = Counter([call.group for call in graph.calls])
    calls = {call.group: call.node for call in graph.calls if call.role == "to_apply" and callers[call.group] == 1}
    for root in np.flatnonzero(graph.is_root & (graph.frame >= 0)).tolist():
        group = int(graph.group[root])
        if group in calls and graph.groups[group].kind == "apply":
            yield calls[group], root


def _members(graph: Graph, line: Ints, count: int) -> tuple[Ints, Ints]:
    node = np.arange(len(line), dtype=np.int32)
    pairs = [(line, node)]
    caller = np.asarray([g.caller if g.kind == "fusion" else -1 for g in graph.groups] + [-1], np.int32)
    at = caller[graph.group]
    for _ in range(_MAX_DEPTH):
        if not (at >= 0).any():
            break
        pairs.append((np.where(at >= 0, line, np.int32(-1)), at))
        at = np.where(at >= 0, caller[graph.group[at]], np.int32(-1))
    lines, nodes = (np.concatenate(column).astype(np.int64) for column in zip(*pairs, strict=True))
    has_line = lines >= 0
    # One number for each pair, so that one sort orders the pairs and drops repeats.
    both: NDArray[np.int64] = np.unique(lines[has_line] * max(len(line), 1) + nodes[has_line])
    start = np.searchsorted(both, np.arange(count + 1, dtype=np.int64) * max(len(line), 1))
    return start.astype(np.int32), (both % max(len(line), 1)).astype(np.int32)


class StageCoverage(NamedTuple):
    """Shares from 0 to 1 of a stage's nodes that compute; parameters, constants and tuples don't count.

    Args:
        lines: Share of nodes that belong to a source line; 0 for a stage without nodes.
        links: Shares of `GRADES` among nodes with an `op_name`; their sum is 1.
    """

    lines: float
    links: Mapping[str, float]


def stage_coverages(links: Links) -> dict[str, StageCoverage]:
    """Return the coverage of every stage by name."""
    coverages: dict[str, StageCoverage] = {}
    grades = [*map(links.grades, links.graphs)]
    for (name, graph), of_stage in zip(links.graphs.items(), grades, strict=True):
        has_name = np.asarray([*map(bool, graph.scopes), False])[graph.scope]
        coverages[name] = StageCoverage(_line_share(graph), _shares(of_stage[graph.is_equation & has_name]))
    return coverages


def coverage(capture: Capture, stage: str, grade: str = "") -> float:
    """Return the share of a stage's nodes on a line, or with a link of a grade, 0 to 1; see `Capture.coverage`."""
    graph = capture.stage(stage).graph
    if not grade:
        return _line_share(graph)
    if grade not in GRADES:
        raise UnknownNameError(f"no link is {grade!r}; grades are: {', '.join(GRADES)}")
    return _shares(capture.links.grades(stage)[graph.is_equation])[grade]


def _line_share(graph: Graph) -> float:
    does = graph.is_equation
    return float((graph.attribution.line[does] >= 0).mean()) if does.any() else 0.0


def _shares(grades: np.ndarray) -> dict[str, float]:
    counts = np.bincount(grades, minlength=len(GRADES)) if len(grades) else np.eye(len(GRADES))[0]
    return dict(zip(GRADES, (counts / counts.sum()).tolist(), strict=True))


# Primitives of the jaxpr by HLO operation.
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


def relocate_unattributed(hlo: Graph, jaxpr: Graph, sets: EquationSets) -> dict[int, int]:
    """Return by instruction the row of the jaxpr equation whose place it should have; its own is missing or wrong.

    An instruction that does much work is on the line of the equation of its own kind.
    """
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
        # Equations on several lines decide nothing.
        if len({_line(jaxpr, row) for row in chosen}) == 1:
            equation_of[at] = chosen[0]
    return equation_of


def _grouped(nodes: Ints, rows: Ints) -> dict[int, list[int]]:
    rows_of: dict[int, list[int]] = {}
    for node, row in zip(nodes.tolist(), rows.tolist(), strict=True):
        rows_of.setdefault(node, []).append(row)
    return rows_of


def _is_elsewhere(hlo: Graph, jaxpr: Graph, pairs: tuple[Ints, Ints]) -> NDArray[np.bool_]:
    """Return a mask of the instructions whose equations are all on other lines; False for those without equations.

    `pairs` are the rows of instructions and of their equations.
    """
    code: dict[tuple[str, int], int] = {}
    here, there = (_lines(graph, rows, code) for graph, rows in zip((hlo, jaxpr), pairs, strict=True))
    is_elsewhere = np.zeros(len(hlo.names), bool)
    is_elsewhere[pairs[0]] = True
    is_elsewhere[pairs[0][here == there]] = False
    return is_elsewhere


def _lines(graph: Graph, rows: Ints, code: dict[tuple[str, int], int]) -> Ints:
    """Return for each row the number that `code` gives its line: of its innermost frame in user code, else of its own
    frame; -1 without a frame. New places are added to `code`.
    """
    own: list[int] = innermost_own(graph.frames).tolist()
    codes = [code.setdefault((graph.frames[at].file, graph.frames[at].line), len(code)) for at in own]
    return np.asarray([*codes, -1], np.int32)[graph.frame[rows]]


def _has_only_its_callers(hlo: Graph) -> NDArray[np.bool_]:
    """Return a mask of the instructions in a loop or branch that only have the caller's place, as since JAX 0.12."""
    caller = hlo.caller[hlo.group]
    control = np.asarray([op in ("while", "conditional", "call") for op in hlo.ops], bool)[hlo.op]
    return (caller >= 0) & control[caller] & (hlo.frame == hlo.frame[caller])


def _line(graph: Graph, row: int) -> tuple[str, int]:
    frame = int(graph.frame[row])
    return (graph.frames[frame].file, graph.frames[frame].line) if frame >= 0 else ("", 0)
