"""The fates of a stage's equations as rows, by source line."""

from __future__ import annotations

from explorer.model.capture import Capture
from explorer.model.fates import FateRow, FateTable


def fate_table(capture: Capture, by: str | int | None = None, stage: str = "jaxpr") -> FateTable:
    """What became of every equation, or what one pass did to them; see `Capture.fate_table`."""
    fates, graph = capture.fates_of(stage), capture.stage(stage).graph
    rows: list[FateRow] = []
    for node in graph.nodes:
        fate, place = fates[node.index], graph.attribution.place(node.index)
        if not fate.kind or (by is not None and by not in (fate.pass_name, fate.pass_number)):
            continue
        file, line = (place.file, place.line) if place is not None else ("", 0)
        by_pass = fate.pass_name, fate.pass_number
        lines = fate.before, fate.after
        rows.append(FateRow(file, line, node.name, node.op, fate.kind, fate.why, *by_pass, *lines, fate.inferred))
    return FateTable(rows)
