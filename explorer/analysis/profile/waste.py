"""How much of each instruction's time the machine would not need."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from explorer.analysis.cost.lines import line_parts
from explorer.analysis.profile.costs import OpCost, costs_of_bound, op_costs
from explorer.model.results.peaks import Peaks
from explorer.model.results.profile import Profile
from explorer.model.results.profile_rows import LineTime, OpTime


def with_peaks(profile: Profile, peaks: Peaks) -> Profile:
    """The profile with the seconds wasted of each op and line: what is over the least that `peaks` allow."""
    ops = [
        replace(op, wasted=_wasted(op, costs_of_bound(op, cost), peaks))
        for op, cost in zip(profile.ops, op_costs(profile), strict=True)
    ]
    return replace(profile, ops=ops, lines=_lines(profile, ops))


def _wasted(op: OpTime, cost: OpCost, peaks: Peaks) -> float | None:
    how: Any = {"is_matmul": cost.is_matmul, "runs": cost.runs, "special": cost.special}
    least = peaks.least_seconds(cost.flops, cost.bytes, cost.dtype, **how)
    return None if math.isnan(least) else max(op.seconds - least, 0.0)


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
