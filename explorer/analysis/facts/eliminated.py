"""Equations of the user's that the compiler found to be of no use."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from explorer.analysis.facts.lines import lines_of
from explorer.model.answers import Fact
from explorer.model.capture import Capture
from explorer.model.fates import KINDS
from explorer.model.units import count_text

_LARGEST = 2_000  # equations: the fates of more take longer than what is shown first may


def eliminated(capture: Capture) -> Iterator[Fact]:
    """One fact, of those for which the compiler itself says so."""
    if not any(stage.name == "jaxpr" for stage in capture.stages) or len(capture.jaxpr.graph) > _LARGEST:
        return
    if not capture.has_passes:  # a sentence is no reason to record them
        return
    graph, fates = capture.jaxpr.graph, capture.all_fates["jaxpr"]
    rows = np.flatnonzero((fates.kind == KINDS.index("eliminated")) & ~fates.inferred & graph.is_equation).tolist()
    if not rows:
        return
    equations = int(graph.is_equation.sum())
    where = lines_of(capture, graph, rows)
    verb = "was" if len(rows) == 1 else "were"
    text = f"{len(rows):,} of {count_text(equations, 'equation')} {verb} eliminated" + (
        f", on {where}" if where else ""
    )
    yield Fact("eliminated", f"{text}.", len(rows) / equations * 0.2, "jaxpr", tuple(rows))
