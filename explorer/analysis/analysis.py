"""Columns of a capture that the views, the files and the sentences read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.attribution import StageCoverage, attribute_program, stage_coverages
from explorer.analysis.fates import all_fates
from explorer.analysis.kernel_costs import kernel_of, kernel_words, running_nodes
from explorer.analysis.line_costs import KernelLines, LineSplit, kernel_lines, split_by_line
from explorer.analysis.links import link_stages
from explorer.analysis.live_memory import live_memory
from explorer.analysis.loops import count_limits, is_one_iteration, unknown_loops
from explorer.analysis.origins import Origins, known_sets, origins_of
from explorer.model.capture import Capture, read_graphs
from explorer.model.declared import cached_property
from explorer.model.fates import Fates
from explorer.model.findings import Finding
from explorer.model.graph import Graph, Ints
from explorer.model.line_table import CountLimits, LineTable
from explorer.model.links import EquationSets, Links
from explorer.model.live_memory import LiveMemory
from explorer.model.passes import Passes


def analyze(capture: Capture) -> Analysis:
    """Return a capture's derived columns (links, fates, lines, memory, …), kept until its passes are read."""
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
        """Equations of the nodes by the numbers in their metadata, by stage; with recorded passes, all are read."""
        passes, capture = self.passes, self.capture
        return capture.exact_sets if passes is None else {**capture.exact_sets}

    @cached_property
    def origins(self) -> Origins | str:
        """Equations of each instruction by the recorded passes; else the reason as text, empty without passes."""
        return origins_of(self.capture, self.passes, self.numbered)

    @cached_property
    def exact(self) -> Mapping[str, EquationSets]:
        """Known equations of the nodes, by name of each stage where they are known."""
        return known_sets(self.capture, self.origins, self.numbered)

    @cached_property
    def links(self) -> Links:
        """Links between the nodes of all stages."""
        return link_stages(self.graphs, self.exact)

    @cached_property
    def findings(self) -> Sequence[Finding]:
        """Findings from the trace."""
        return [*self.capture.findings]

    @cached_property
    def sentences(self) -> dict[int, str]:
        """Cache of sentences about what happened to equations of the jaxpr, by row; an answer adds those it needs."""
        return {}

    def settle(self, graphs: Mapping[str, Graph]) -> None:
        """Compute kernels, lines and measures of some stages, and store them where the graphs' properties would."""
        for name, graph in graphs.items():
            columns = vars(graph)
            if "kernel" not in columns:
                columns["kernel"] = kernel_of(graph)
            if "kernel_words" not in columns:
                columns["kernel_words"] = kernel_words(graph)
            if "attribution" not in columns:
                sets, jaxpr = (self.exact.get(name), graphs.get("jaxpr")) if name == "hlo" else (None, None)
                columns["attribution"] = attribute_program(graph, jaxpr, sets)
        for graph in graphs.values():
            _ = graph.measures

    @cached_property
    def of_coverage(self) -> Mapping[str, StageCoverage]:
        """Shares of each stage's nodes that belong to a source line, and of each grade of link."""
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
        """Unknown counts of the last stage; empty in a capture without stages."""
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
        """Buffers alive at each step; NotRecordedError in a capture without an `hlo` stage."""
        return live_memory(self.capture)
