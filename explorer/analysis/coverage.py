"""How much of a stage belongs to a line of the source, and how surely it is linked to equations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.errors import UnknownNameError
from explorer.model.capture import Capture
from explorer.model.graph import Graph
from explorer.model.links import GRADES


class StageCoverage(NamedTuple):
    """Shares, 0 to 1, of the nodes of a stage that do something: parameters, constants and tuples don't count.

    Args:
        lines: Of those that belong to a line of the source, as `node.place` says it; 0 for a stage without any.
        links: By each of `GRADES`, of those that carry an `op_name`: the others are the compiler's own. 1 together.
    """

    lines: float
    links: Mapping[str, float]


def stage_coverages(capture: Capture) -> dict[str, StageCoverage]:
    """The coverage of every stage of a capture, by name; reads and links the stages that were not yet."""
    lines, links = _lines(capture), capture.links
    grades = [links.grades(stage.name)[_carries_name(stage.graph)] for stage in capture.stages]
    coverages = map(StageCoverage, lines.values(), map(_shares, grades))
    return dict(zip(lines, coverages, strict=True))


def coverage(capture: Capture, stage: str, grade: str = "") -> float:
    """One of these shares: of the nodes that belong to a line, or of a grade; see `Capture.coverage`."""
    graph = capture.stage(stage).graph
    if not grade:
        return _lines(capture, stage)[stage]
    if grade not in GRADES:
        raise UnknownNameError(f"no link is {grade!r}; grades are: {', '.join(GRADES)}")
    return _shares(capture.links.grades(stage)[graph.is_equation])[grade]


def _lines(capture: Capture, only: str = "") -> dict[str, float]:
    columns = [
        (stage.name, stage.graph.attribution.line, stage.graph.is_equation)
        for stage in capture.stages
        if only in ("", stage.name)
    ]
    return {name: float((line[does] >= 0).mean()) if does.any() else 0.0 for name, line, does in columns}


def _carries_name(graph: Graph) -> NDArray[np.bool_]:
    """The nodes that do something and have an `op_name`, which StableHLO has as the name of a location."""
    return graph.is_equation & np.asarray([*map(bool, graph.scopes), False])[graph.scope]


def _shares(grades: np.ndarray) -> dict[str, float]:
    """How much has each grade; all of nothing is unknown."""
    counts = np.bincount(grades, minlength=len(GRADES)) if len(grades) else np.eye(len(GRADES))[0]
    return dict(zip(GRADES, (counts / counts.sum()).tolist(), strict=True))
