"""What belongs to a line of the source: decided here, once for each stage, for every surface.

A node belongs to the line of the innermost frame of its stack that is in the user's own code. Where it has none:

1. An instruction that lost its metadata has the line of the equation that it was (`links/relocation.py`), and so has
   one that does the work of an equation of another line than its metadata says.
2. What the compiler added for another node, such as the copies and transposes of layout assignment, serves that node:
   its first reader, or the kernel or loop around it, or what it reads. What applies a computation alone, such as the
   sum that a TPU's compiler takes out of a reduce-scatter, serves the line that this computation kept. What the
   partitioner adds to move an operand between devices serves who reads it, though newer XLA writes into its metadata
   where the operand is from; a sum of parts is its maker's.
3. What only a library's frames made has the innermost of these.
4. Arguments, constants and plumbing without a frame belong to no line: they do nothing, and who reads them is said
   elsewhere.

A kernel belongs to the lines of all instructions inside it. What its reducers do is done for the reduction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.graphs import callers, innermost_own, is_op, spread_places
from explorer.analysis.links.relocation import relocate_unattributed
from explorer.analysis.outline.source_paths import stacks
from explorer.errors import UnknownNameError
from explorer.model.attribution import EQUATION, LIBRARY, NONE, OWN, SERVES, Attribution, SourceLine
from explorer.model.capture import Capture
from explorer.model.graph import Frame, Graph, Ints, Node
from explorer.model.links import GRADES, Links
from explorer.model.stage import is_library_file

# Without a frame of their own these belong to no line, and lend none: an argument is read by many lines.
_SOURCES = frozenset(["parameter", "constant", "stablehlo.constant"])
_PLUMBING = _SOURCES | {"tuple", "get-tuple-element", "after-all", "opt-barrier", "return", "func.return"}
_PARTITIONERS = 'is_spmd_generated="true"'
_SUMS = ("all-reduce", "reduce-scatter")
_LONGEST = 64  # instructions between what is moved and who reads it
_DEEPEST = 8  # fusions in each other, and lambdas


def attribute_in(capture: Capture, stage: str, graph: Graph) -> Attribution:
    """The lines that the nodes of one stage of a capture belong to; no other stage is read where it isn't needed."""
    lost = relocate_unattributed(capture) if stage == "hlo" else None
    return attribute(graph, capture.jaxpr.graph, lost) if lost else attribute(graph)


def attribute(graph: Graph, first: Graph | None = None, lost: Mapping[int, int] | None = None) -> Attribution:
    """The lines that the nodes of a graph belong to.

    Args:
        graph: Of any stage.
        first: The graph of the stage that the equations are in.
        lost: For each node that has the place of an equation, the equation's row in `first`.
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
        is_lost = (of_first >= 0) & (of_first != line)  # its own frames may say the same
        line = np.where(is_lost, of_first, line)
    equation = np.where(is_lost, of_equation, np.int32(-1))
    mark = np.where(by == np.arange(len(by)), np.where(is_lost, EQUATION, OWN), SERVES)
    is_library = np.asarray([*(is_library_file(place.file) for place in places.rows), False], bool)[line]
    mark = np.where(line < 0, NONE, np.where(is_library & (mark == OWN), LIBRARY, mark)).astype(np.int32)
    by[line < 0] = -1
    start, node = _members(graph, line, len(places.rows))
    return Attribution(places.rows, line, mark, by, equation, start, node)


def own_frame(stack: Sequence[Frame]) -> Frame | None:
    """The innermost frame of a stack that is in the user's own code, the innermost where none is; None for no stack."""
    return next((frame for frame in stack if not is_library_file(frame.file)), next(iter(stack), None))


def nodes_at(
    capture: Capture, line: int, stage: str = "hlo", *, file: str | None = None, through: bool = False
) -> tuple[Node, ...]:
    """The nodes of a stage of a capture that belong to a line of the user's source; see `Capture.nodes_at`."""
    graph = capture.stage(stage).graph
    file = capture.file if file is None else file
    nodes = graph.nodes_through(file, line) if through else graph.attribution.nodes(file, line)
    return tuple(Node(graph, i) for i in nodes.tolist())


def nodes_through(graph: Graph, file: str, line: int) -> Ints:
    """The nodes whose stack goes through a line: for a call, all that it led to."""
    passes = [frame.file == file and frame.line == line for frame in graph.frames]
    return np.flatnonzero(through_frames(graph, passes)).astype(np.int32)


def through_frames(graph: Graph, passes: Sequence[bool]) -> NDArray[np.bool_]:
    """Whether the stack of each node goes through one of the frames that pass, shape `[n]`."""
    through = [any(passes[at] for at in stack) for stack in stacks(graph)]
    return np.asarray([*through, False], bool)[graph.frame]


def _named_function(frames: Sequence[Frame], at: int) -> str:
    for _ in range(_DEEPEST):
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
        """The number of each frame's line, -1 for one without a file, and -1 at the end: for no frame."""
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
    """For each node, the node whose place it has: itself, whom it serves, or -1."""
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
    around = callers(graph)[graph.group]
    # What a body is given stands for the loop or the kernel around it; only the program's own arguments lend nothing.
    return np.where(plumbing, np.int32(-1), spread_places(graph, at, sources & (around < 0), readers_first=True))


def _moved(graph: Graph) -> NDArray[np.bool_]:
    """Whether the partitioner made a node to have an operand elsewhere, as newer XLA marks it; shape `[n]`."""
    codes, values = graph.attribute_table.codes("frontend_attributes"), graph.attribute_table.columns.values
    marked = [code for code in np.unique(codes[codes >= 0]).tolist() if _PARTITIONERS in values[code]]
    is_sum = np.asarray([op.startswith(_SUMS) for op in graph.ops] or [False], bool)[graph.op]
    is_marked = np.isin(codes, marked)
    return is_marked & ~is_sum & (graph.frame >= 0)


def _readers(graph: Graph, moved: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """The nodes that are moved, each with what reads it, also in a kernel; none for what only the caller reads."""
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
        for _ in range(_LONGEST):
            at = _first_reader(graph, at, int(around[at]), inside)
            if at < 0 or not passes_on[at]:
                break
        if at >= 0 and not passes_on[at]:
            yield node, at


def _first_reader(graph: Graph, node: int, kernel: int, inside: Mapping[tuple[int, int], int]) -> int:
    """What reads a node first: in a kernel its parameter; of what a kernel returns the kernel itself; -1 for none."""
    start, user = graph.user_columns
    if start[node] == start[node + 1]:
        return kernel
    reader = int(user[start[node]])
    operands: list[int] = graph.operand[graph.operand_start[reader] : graph.operand_start[reader + 1]].tolist()
    return inside.get((reader, operands.index(node)), reader)


def _applied(graph: Graph) -> Iterator[tuple[int, int]]:
    """Nodes that no other shares its reducer with, each with what the reducer returns, where that has a frame."""
    callers = Counter(call.group for call in graph.calls)
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
    for _ in range(_DEEPEST):
        if not (at >= 0).any():
            break
        pairs.append((np.where(at >= 0, line, np.int32(-1)), at))
        at = np.where(at >= 0, caller[graph.group[at]], np.int32(-1))
    lines, nodes = (np.concatenate(column).astype(np.int64) for column in zip(*pairs, strict=True))
    has_line = lines >= 0
    both: NDArray[np.int64] = np.unique(lines[has_line] * max(len(line), 1) + nodes[has_line])
    start = np.searchsorted(both, np.arange(count + 1, dtype=np.int64) * max(len(line), 1))
    return start.astype(np.int32), (both % max(len(line), 1)).astype(np.int32)


class StageCoverage(NamedTuple):
    """Shares, 0 to 1, of the nodes of a stage that do something: parameters, constants and tuples don't count.

    Args:
        lines: Of those that belong to a line of the source, as `node.place` says it; 0 for a stage without any.
        links: By each of `GRADES`, of those that carry an `op_name`: the others are the compiler's own. 1 together.
    """

    lines: float
    links: Mapping[str, float]


def stage_coverages(capture: Capture, links: Links) -> dict[str, StageCoverage]:
    """The coverage of every stage of a capture, by name; reads and links the stages that were not yet."""
    lines = _line_shares(capture)
    grades: list[np.ndarray] = []
    for stage in capture.stages:
        has_name = np.asarray([*map(bool, stage.graph.scopes), False])[stage.graph.scope]
        grades.append(links.grades(stage.name)[stage.graph.is_equation & has_name])
    return dict(zip(lines, map(StageCoverage, lines.values(), map(_shares, grades)), strict=True))


def coverage(capture: Capture, stage: str, grade: str = "") -> float:
    """One of these shares: of the nodes that belong to a line, or of a grade; see `Capture.coverage`."""
    graph = capture.stage(stage).graph
    if not grade:
        return _line_shares(capture, stage)[stage]
    if grade not in GRADES:
        raise UnknownNameError(f"no link is {grade!r}; grades are: {', '.join(GRADES)}")
    return _shares(capture.links.grades(stage)[graph.is_equation])[grade]


def _line_shares(capture: Capture, only: str = "") -> dict[str, float]:
    columns = [
        (stage.name, stage.graph.attribution.line, stage.graph.is_equation)
        for stage in capture.stages
        if only in ("", stage.name)
    ]
    return {name: float((line[does] >= 0).mean()) if does.any() else 0.0 for name, line, does in columns}


def _shares(grades: np.ndarray) -> dict[str, float]:
    counts = np.bincount(grades, minlength=len(GRADES)) if len(grades) else np.eye(len(GRADES))[0]
    return dict(zip(GRADES, (counts / counts.sum()).tolist(), strict=True))
