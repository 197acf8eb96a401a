"""How much of each instruction's time the machine would not need."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from explorer.analysis.cost.lines import line_parts
from explorer.analysis.profile.costs import OpCost, costs_of_bound, op_costs
from explorer.model.capture import Capture
from explorer.model.graph import Floats, Graph
from explorer.model.results.profile import LineTime, OpTime, Profile
from explorer.model.results.roofline import Peaks
from explorer.model.stage import Stage

BOUNDS = ("unknown", "memory", "compute", "overhead")
"""What the measure `bound` of a graph counts: what holds an instruction back, as `Peaks.bound` calls it."""


def with_peaks(profile: Profile, peaks: Peaks) -> Profile:
    """The profile with the seconds wasted of each op and line: what is over the least that `peaks` allow.

    The graphs of its captures get them too, as the measure `wasted`, and as `bound` the place in `BOUNDS` of what holds
    each instruction back.
    """
    costs = [costs_of_bound(op, cost) for op, cost in zip(profile.ops, op_costs(profile), strict=True)]
    ops = [replace(op, wasted=_wasted(op, cost, peaks)) for op, cost in zip(profile.ops, costs, strict=True)]
    lines = _lines(profile, ops)
    bounds = [_bound(op, cost, peaks) for op, cost in zip(ops, costs, strict=True)]
    captures = {number: _judged(capture, number, ops, bounds) for number, capture in profile.captures.items()}
    return replace(profile, ops=ops, lines=lines, captures=captures)


def _how(cost: OpCost) -> dict[str, Any]:
    return {"is_matmul": cost.is_matmul, "runs": cost.runs, "special": cost.special}


def _wasted(op: OpTime, cost: OpCost, peaks: Peaks) -> float | None:
    least = peaks.least_seconds(cost.flops, cost.bytes, cost.dtype, **_how(cost))
    return None if math.isnan(least) else max(op.seconds - least, 0.0)


def _bound(op: OpTime, cost: OpCost, peaks: Peaks) -> int:
    return BOUNDS.index(peaks.bound(cost.flops, cost.bytes, cost.dtype, **_how(cost), seconds=op.seconds))


def _judged(capture: Capture, number: int, ops: Sequence[OpTime], bounds: Sequence[int]) -> Capture:
    """A program's capture with the measures `wasted` and `bound` of its `hlo` stage; NaN where neither is known."""
    stage = capture.hlo
    text, graph = stage.text, stage.graph
    node = {name: at for at, name in enumerate(graph.names)}
    wasted, bound = np.full((2, len(graph.names)), np.nan)
    for op, code in zip(ops, bounds, strict=True):
        if op.program == number and op.wasted is not None and op.seconds > 0 and op.name in node:
            wasted[node[op.name]], bound[node[op.name]] = op.wasted, code

    def measures(_: Graph) -> Mapping[str, Floats]:
        return {**graph.measures, "wasted": wasted, "bound": bound}

    judged = Stage("hlo", lambda: (text, replace(graph, measure=measures)))
    return replace(capture, stages=tuple(judged if each is stage else each for each in capture.stages))


def _lines(profile: Profile, ops: list[OpTime]) -> list[LineTime]:
    """Each line has the part of an op's waste that it has of its time."""
    share = {(op.program, op.name): op.wasted / op.seconds for op in ops if op.wasted is not None and op.seconds > 0}
    wasted: dict[tuple[str, int], float] = {}
    for number, capture in profile.captures.items():
        names = capture.hlo.graph.names
        for node, file, line, seconds in line_parts(capture):
            part = share.get((number, names[node]))
            if part is not None:
                wasted[file, line] = wasted.get((file, line), 0.0) + part * seconds
    return [replace(line, wasted=wasted.get((line.file, line.line))) for line in profile.lines]
