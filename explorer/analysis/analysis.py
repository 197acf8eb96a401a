"""Columns of a capture that the views, the files and the sentences read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import NamedTuple
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.attribution import StageCoverage, attribute_program, stage_coverages
from explorer.analysis.fates import all_fates
from explorer.analysis.kernel_costs import kernel_of, kernel_words, running_nodes
from explorer.analysis.line_costs import KernelLines, LineSplit, kernel_lines, split_by_line
from explorer.analysis.live_memory import live_memory
from explorer.analysis.loops import count_limits, is_one_iteration, unknown_loops
from explorer.analysis.origins import Origins, known_sets, origins_of
from explorer.model.attribution import CountLimits, LineTable
from explorer.model.capture import Capture, read_graphs
from explorer.model.declared import cached_property
from explorer.model.fates import Fates
from explorer.model.findings import Finding
from explorer.model.graph import Graph, Ints
from explorer.model.links import INFERRED, EquationSets, Links
from explorer.model.live_memory import LiveMemory
from explorer.model.passes import Passes


def analyze(capture: Capture) -> Analysis:
    """Return a capture's `Analysis`, its derived columns: links, fates, lines, memory, …

    Each column is computed when it is first read. Calls return the same object until the capture's passes are read.
    """
    # In the capture's own dictionary: a table by weak keys would keep the capture, which some columns refer to.
    columns = capture.__dict__.get("_analysis")
    if columns is None:
        columns = capture.__dict__.setdefault("_analysis", Analysis(capture))
    return columns


class Analysis:
    """Columns of one capture, each computed by one function at the first access.

    Columns named `of_…` have one entry a stage, by its name; the others are of the optimized program, the `hlo` stage,
    and raise UnknownNameError in a capture without one, unless documented otherwise.
    """

    def __init__(self, capture: Capture) -> None:
        # Weak: a cycle would keep the arrays of a dropped capture until the garbage collector runs.
        self._capture = ref(capture)

    @property
    def capture(self) -> Capture:
        capture = self._capture()
        assert capture is not None, "the caller holds the capture"
        return capture

    @cached_property
    def graphs(self) -> Mapping[str, Graph]:
        """Graph of each stage, by its name."""
        return read_graphs(self.capture)

    @cached_property
    def passes(self) -> Passes | None:
        """Recorded passes if they are in memory or quickly read, else None."""
        capture = self.capture
        return capture.passes if capture.has_passes else None

    @cached_property
    def numbered(self) -> Mapping[str, EquationSets]:
        """Jaxpr equations of each node, from the numbers in its metadata, by name of the stage."""
        passes, capture = self.passes, self.capture
        return capture.exact_sets if passes is None else {**capture.exact_sets}

    @cached_property
    def origins(self) -> Origins | str:
        """Equations of the `hlo` stage's nodes by the recorded passes.

        An error message as text if reading them failed; an empty text if passes or equations are missing.
        """
        return origins_of(self.capture, self.passes, self.numbered)

    @cached_property
    def exact(self) -> Mapping[str, EquationSets]:
        """Equations of each node by its numbers and the recorded passes, by stage name.

        Stages without known equations are missing.
        """
        return known_sets(self.capture, self.origins, self.numbered)

    @cached_property
    def links(self) -> Links:
        """Links of each stage's nodes to the equations of the first stage, and so between all stages."""
        return link_stages(self.graphs, self.exact)

    @cached_property
    def findings(self) -> Sequence[Finding]:
        """Lint findings from the capture's trace, as a list."""
        return [*self.capture.findings]

    @cached_property
    def sentences(self) -> dict[int, str]:
        """Cache of sentences about what happened to equations of the jaxpr, by row; an answer adds those it needs."""
        return {}

    def settle(self, graphs: Mapping[str, Graph]) -> None:
        """Compute kernels and lines of some stages, and store them where the graphs' properties would."""
        for name, graph in graphs.items():
            columns = vars(graph)
            if "kernel" not in columns:
                columns["kernel"] = kernel_of(graph)
            if "kernel_words" not in columns:
                columns["kernel_words"] = kernel_words(graph)
            if "attribution" not in columns:
                sets, jaxpr = (self.exact.get(name), graphs.get("jaxpr")) if name == "hlo" else (None, None)
                columns["attribution"] = attribute_program(graph, jaxpr, sets)

    @cached_property
    def of_coverage(self) -> Mapping[str, StageCoverage]:
        """Coverage by stage name: shares of its nodes that belong to a source line, and of each grade of link."""
        return stage_coverages(self.links)

    @cached_property
    def of_fates(self) -> Mapping[str, Fates]:
        return all_fates(self.capture, self.links, self.origins, self.passes)

    @cached_property
    def kernels(self) -> Ints:
        return running_nodes(self.capture.hlo.graph)

    @cached_property
    def _unknown_loops(self) -> Ints:
        return unknown_loops(self.capture.stages[-1].graph)

    @cached_property
    def limits(self) -> CountLimits:
        """Reasons why the FLOPs and bytes of the last stage may be wrong; empty in a capture without stages."""
        stages = self.capture.stages
        return count_limits(stages[-1].graph, self._unknown_loops) if stages else CountLimits()

    @cached_property
    def of_single_iteration(self) -> Mapping[str, NDArray[np.bool_]]:
        """Masks by stage: True for a node whose counts are of one iteration of a loop of unknown length."""
        if not self.capture.stages:
            return {}
        *earlier, last = self.capture.stages
        flags = {stage.name: is_one_iteration(stage.graph) for stage in earlier}
        return flags | {last.name: is_one_iteration(last.graph, self._unknown_loops)}

    @cached_property
    def split(self) -> LineSplit:
        return split_by_line(self.capture)

    @cached_property
    def lines(self) -> LineTable:
        return self.split.table(self._unknown_loops, self.limits)

    @cached_property
    def kernel_lines(self) -> KernelLines:
        return kernel_lines(self.split)

    @cached_property
    def live_memory(self) -> LiveMemory:
        """Buffers alive at each step.

        NotRecordedError without an `hlo` stage, or if its text has no entry computation.
        """
        return live_memory(self.capture)


_Key = tuple[object, ...]

_CALLS = frozenset(["jit", "pjit", "xla_call"])
_SAME = {"scan": "while", "pjit": "jit"}  # primitives that lowering renames


def link_stages(graphs: Mapping[str, Graph], exact: Mapping[str, EquationSets]) -> Links:
    """Return links from every stage of a capture to its first stage.

    `exact` has the known equations of some stages, by name; nodes of the others are linked by their metadata.
    """
    first, *others = graphs or ("",)
    rows: dict[_Key, list[int]] = {}
    # With exact sets for all stages, no metadata needs to be read.
    if not exact.keys() >= {*others}:
        graph = graphs[first]
        for row, (scope, frame, loops) in enumerate(_metadata(graph, first)):
            for key in _keys(graph, graph.scopes[scope], frame, loops):
                rows.setdefault(key, []).append(row)
    sets = {stage: exact[stage] if stage in exact else _linked(graphs[stage], stage, rows) for stage in others}
    return Links(graphs, sets)


def _linked(graph: Graph, stage: str, rows: Mapping[_Key, list[int]]) -> EquationSets:
    """Return the first stage's rows that each node of `graph` comes from, by equal metadata, graded as inferred.

    `rows` has the first stage's rows by key. XLA joins names of merged operations with `;`: such a node has several.
    """
    sets: dict[tuple[int, int], list[int]] = {}
    row, equation = list[int](), list[int]()
    for node, (scope, frame, loops) in enumerate(_metadata(graph, stage)):
        if (scope, frame) not in sets:
            keys = [_keys(graph, name, frame, loops) for name in graph.scopes[scope].split(";")]
            alike = (next((rows[key] for key in of_name if key in rows), ()) for of_name in keys)
            sets[scope, frame] = [at for several in alike for at in several]
        row += [node] * len(sets[scope, frame])
        equation += sets[scope, frame]
    return EquationSets.of_pairs(row, equation, np.full(len(graph.names), INFERRED, np.int8))


def _keys(graph: Graph, name: str, frame: int, loops: int) -> list[_Key]:
    """Return an operation's keys, which are equal in all stages, most specific first; empty without metadata.

    `loops` is the number of loops around the operation; if negative, those in `name` are counted.
    """
    if not name:
        return []
    if frame < 0:  # an argument of the program has a name, `params['w']`, but no frame
        return [(name,)] if "/" not in name else []
    place = graph.frames[frame]
    alike = place.file, place.line, place.column, *parse_path(name)
    if loops < 0:
        # Lowered names have each loop around an operation; those of a jaxpr don't.
        loops = f"/{name}".count("/while/")
    return [(place.file, place.line, place.column, name), (*alike, loops)]


def _metadata(graph: Graph, stage: str) -> Iterator[tuple[int, int, int]]:
    """Yield (scope, frame, loops) of each node: two indices, and the number of loops around it.

    The frame is -1 if unknown. The number of loops is -1 in other stages than the jaxpr.
    """
    scopes: list[int] = graph.scope.tolist()
    frames: list[int] = graph.frame.tolist()
    if stage != "jaxpr":
        yield from zip(scopes, frames, repeat(-1))
        return
    of_group: list[int] = []
    for number, group in enumerate(graph.groups):  # a group comes after its caller's
        outer = int(graph.group[group.caller]) if group.caller >= 0 else -1
        is_loop = group.caller >= 0 and graph.ops[int(graph.op[group.caller])] in ("scan", "while")
        of_group.append((of_group[outer] if 0 <= outer < number else 0) + is_loop)
    for scope, frame, group in zip(scopes, frames, graph.group.tolist(), strict=True):
        yield scope, frame, of_group[group] if group >= 0 else 0


class ParsedPath(NamedTuple):
    """A parsed scope path.

    Args:
        transforms: `transpose`, `jvp`, `vmap`, outermost first.
        primitive: The primitive; `jit` for a call.
    """

    transforms: tuple[str, ...]
    primitive: str


def parse_path(path: str) -> ParsedPath:
    """Parse one scope path. Paths joined by XLA must be split at `;` first.

    Example:
        >>> parse_path("jit(f)/transpose(jvp(jit(g)))/while/body/mul")
        ParsedPath(transforms=('transpose', 'jvp'), primitive='mul')
    """
    transforms: list[str] = []
    word = ""
    for word in path.split("/"):
        while word.endswith(")") and "(" in word:
            head, _, word = word[:-1].partition("(")
            if head in _CALLS:
                word = "jit"
                break
            transforms.append(head)
    return ParsedPath(tuple(transforms), _SAME.get(word, word))
