"""Everything that a page shows of a capture, computed in one straight line."""

from __future__ import annotations

from contextlib import suppress

from explorer.analysis.analysis import Analysis, analyze
from explorer.analysis.collectives import collectives
from explorer.analysis.facts import summary
from explorer.analysis.graphs import placed
from explorer.analysis.hierarchy import nest
from explorer.analysis.pass_changes import pass_links
from explorer.errors import NotRecordedError
from explorer.model.capture import Capture
from explorer.model.results.estimates import Estimates

# Properties of a graph, each after those that it reads.
_OF_GRAPH = {"placed": placed, "hierarchy": nest}


def prepare(capture: Capture) -> Analysis:
    """Return the capture's `Analysis` with the columns that a page reads, stored where the values' properties would.

    Later, each property is a field: a view doesn't compute between two lines of a page.
    """
    analysis = analyze(capture)
    graphs = analysis.graphs
    analysis.settle(graphs)
    for graph in graphs.values():
        of_graph = vars(graph)
        for column, compute in _OF_GRAPH.items():
            if column not in of_graph:
                of_graph[column] = compute(graph)
    _ = analysis.of_coverage, analysis.of_single_iteration, analysis.limits
    if "hlo" not in graphs:
        return analysis
    _ = analysis.kernels, analysis.of_fates, analysis.lines, analysis.kernel_lines
    with suppress(Exception):  # the schedule of a damaged text can't be read
        _ = analysis.live_memory.buffers, analysis.live_memory.peak
    of_capture = vars(capture)
    if analysis.passes is not None and "links" not in vars(analysis.passes):
        vars(analysis.passes)["links"] = pass_links(analysis.passes)
    if "target" not in capture.environment:  # there are no figures of other hardware
        with suppress(NotRecordedError):  # of a text without an entry computation
            of_capture.setdefault("collectives", collectives(capture))
        of_capture.setdefault("estimates", Estimates())
    if "summary" not in of_capture:
        of_capture["summary"] = summary(capture)
    return analysis
