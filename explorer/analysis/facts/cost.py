"""How many kernels run, and which line takes most of what takes their time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from explorer.analysis.cost.kernels import running_nodes
from explorer.analysis.cost.limits import count_limits
from explorer.analysis.facts.lines import line_text
from explorer.model.answers import Fact
from explorer.model.capture import Capture
from explorer.model.line_table import ONE_ITERATION, LineRow, LineTable
from explorer.model.units import count_text, share_text

INTENSE = 10
"""FLOPs a byte: above, arithmetic takes the time, below, memory does; the viewer has the same."""
_WORTH = 0.2  # of the whole: a line with less is none that stands out


def cost(capture: Capture) -> Iterator[Fact]:
    """One fact: the kernels, and the costliest line where one stands out."""
    graph = capture.hlo.graph
    kernels = running_nodes(graph).tolist()
    if not kernels:
        yield Fact("cost", "No kernel runs: the results are arguments or constants.", 1.0, "hlo")
        return
    count = count_text(len(kernels), "kernel")
    table = capture.lines()
    measure, verb = _measure(table)
    of = "known FLOPs" if measure == "FLOPs" and count_limits(graph).unknown else measure
    row = max((row for row in table if row.line), key=lambda row: _share(row, measure, table.seconds), default=None)
    if row is None or _share(row, measure, table.seconds) < _WORTH:
        yield Fact("cost", f"{count}.", 1.0, "hlo", tuple(kernels))
        return
    of_line = tuple(np.intersect1d(graph.attribution.nodes(row.file, row.line), kernels).tolist())
    note = f", {ONE_ITERATION}" if row.one_iteration and measure != "time" else ""
    where = line_text(capture, row.file, row.line)
    if len(of_line) == len(kernels) and sum(row.kernels > 0 for row in table) == 1:
        yield Fact("cost", f"{count}, all of {where}.", 1.0, "hlo", of_line)
        return
    text = f"{count}; {where} {verb} {share_text(_share(row, measure, table.seconds))} of the {of}{note}."
    yield Fact("cost", text, 1.0, "hlo", of_line)


def _measure(table: LineTable) -> tuple[str, str]:
    """What a program's time goes by: itself where it was measured."""
    if table.seconds:
        return "time", "takes"
    return ("FLOPs", "does") if table.flops > INTENSE * table.bytes else ("bytes", "moves")


def _share(row: LineRow, measure: str, whole: float | None) -> float:
    if measure == "time":
        return (row.seconds or 0.0) / whole if whole else 0.0
    return row.flops_share if measure == "FLOPs" else row.bytes_share
