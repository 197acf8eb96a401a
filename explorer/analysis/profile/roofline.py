"""A profile against the peaks of a machine: each kernel's least time, what holds it back, and what of it is waste."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from explorer.analysis.attribution import own_frame
from explorer.analysis.cost.lines import LineShares, line_parts, shares_by_line
from explorer.analysis.profile.costs import OpCost, costs_of_bound, op_costs
from explorer.model.capture import Capture
from explorer.model.graph import Floats, Graph
from explorer.model.results.peaks import Peaks
from explorer.model.results.profile import Profile
from explorer.model.results.profile_rows import LineTime, OpTime
from explorer.model.results.roofline import Point, Roofline
from explorer.model.stage import Stage
from explorer.model.units import bytes_text, duration_text, rate_text

_MUCH = 0.02  # of the time: what is worth a note
_OVER = 1.1  # times the peak: more than what measuring is uncertain by


def build_roofline(profile: Profile, peaks: Peaks) -> Roofline:
    """The kernels of a profile as points under the roofs of a machine."""
    points = points_of(profile, peaks)
    roofline = Roofline(profile.function, profile.signature, peaks, points)
    notes = [
        "" if math.isnan(profile.seconds) else f"a call takes {duration_text(profile.seconds)}",
        _unknown_note(roofline),
        _too_fast_note(roofline),
        first_touch_note(profile, points, peaks),
        *peaks.warnings,
        *profile.notes,
    ]
    return Roofline(profile.function, profile.signature, peaks, points, tuple(dict.fromkeys(filter(None, notes))))


def points_of(profile: Profile, peaks: Peaks) -> tuple[Point, ...]:
    """Each instruction of a profile that took time, in its order."""
    parts = _parts(profile)
    texts = {(row.file, row.line): row.text for row in profile.lines}
    return tuple(
        _point(op, costs_of_bound(op, cost), peaks, parts.get((op.program, op.name), ()), texts)
        for op, cost in zip(profile.ops, op_costs(profile), strict=True)
        if op.seconds > 0
    )


def _point(op: OpTime, cost: OpCost, peaks: Peaks, parts: LineShares, texts: Mapping[tuple[str, int], str]) -> Point:
    how: Any = {"is_matmul": cost.is_matmul, "runs": cost.runs, "special": cost.special}
    work = (cost.flops, cost.bytes, cost.dtype)
    frame = own_frame(op.stack)
    lines = tuple(parts) or (((frame.file, frame.line, 1.0),) if frame else ())
    file, line = lines[0][:2] if lines else ("", 0)
    return Point(
        name=op.name,
        op=op.op,
        module=op.module,
        seconds=op.seconds,
        flops=cost.flops,
        bytes=cost.bytes,
        intensity=_ratio(cost.flops, cost.bytes),
        rate=cost.flops / op.seconds,
        least=peaks.least_seconds(*work, **how),
        bound=peaks.bound(*work, **how, seconds=op.seconds),
        file=file,
        line=line,
        text=texts.get((file, line), ""),
        dtype=cost.dtype,
        is_matmul=cost.is_matmul,
        runs=cost.runs,
        lines=lines,
        special=cost.special,
        computes=op.computes,
    )


def _ratio(flops: float, moved: float) -> float:
    if moved:
        return flops / moved
    return math.inf if flops > 0 else math.nan


def _parts(profile: Profile) -> dict[tuple[int, str], LineShares]:
    parts: dict[tuple[int, str], dict[tuple[str, int], float]] = {}
    for program, capture in profile.captures.items():
        names = capture.hlo.graph.names
        for node, file, line, seconds in line_parts(capture):
            of_op = parts.setdefault((program, names[node]), {})
            of_op[file, line] = of_op.get((file, line), 0.0) + seconds
    return {key: shares_by_line(of_op) for key, of_op in parts.items()}


def _unknown_note(roofline: Roofline) -> str:
    if roofline.unknown <= _MUCH * roofline.seconds:
        return ""
    without = [point for point in roofline.points if point.bound == "unknown"]
    names = ", ".join(dict.fromkeys(_called(point) for point in without[:3]))
    more = f" and {len(without) - 3:,} more" if len(without) > 3 else ""
    return (
        f"no least costs are known of {names}{more}, which take {roofline.unknown / roofline.seconds:.0%} of the time"
    )


def _too_fast_note(roofline: Roofline) -> str:
    """Which kernel beats the peaks most, where one does that counts."""
    least = _MUCH * roofline.seconds
    over = [point for point in roofline.points if point.efficiency > _OVER and point.seconds > least]
    if not over:
        return ""
    best = max(over, key=lambda point: point.efficiency)
    return (
        f"{best.name} is faster than the peaks of this machine allow ({best.efficiency:.0%}): they were measured "
        "while it did other things, or the kernel's data was in a cache; peaks(refresh=True) measures again"
    )


def _called(point: Point) -> str:
    return f"{point.name} ({Path(point.file).name}:{point.line})" if point.line else point.name


_LARGE = 32 << 20  # bytes: smaller ones, the C library hands out again (M_MMAP_THRESHOLD_MAX of mallopt(3))
_SLOWER = 1.5  # times
_MUCH_OF_ALL = 0.1  # of the time


def first_touch_note(profile: Profile, points: Sequence[Point], peaks: Peaks) -> str:
    """What is to be said of the kernel that most of the time writes such a result; empty if none does."""
    whole = sum(point.seconds for point in points)
    if not 0 < peaks.fresh < peaks.bandwidth / _SLOWER:
        return ""
    for point in points:
        if point.seconds < _MUCH_OF_ALL * whole:
            break
        size = _result(profile, point) if point.bytes >= _LARGE else 0
        if size >= _LARGE:
            return (
                f"{point.name} writes a result of {bytes_text(size)} into memory that was not used before, which here "
                f"no kernel does faster than {rate_text(peaks.fresh, 'B')}; a donated argument of the same type would "
                "be written over at full speed"
            )
    return ""


def _result(profile: Profile, point: Point) -> int:
    for capture in profile.captures.values():
        if point.name in capture.hlo.graph:
            alive = capture.live_memory.buffers
            return sum(one.bytes for one in alive if one.kind == "output" and one.node.name == point.name)
    return 0


BOUNDS = ("unknown", "memory", "compute", "overhead")
"""What the measure `bound` of a graph counts: what holds an instruction back, as `Peaks.bound` calls it."""


def with_peaks(profile: Profile, peaks: Peaks) -> Profile:
    """The profile with the seconds wasted of each op and line: what is over the least that `peaks` allow.

    The graphs of its captures get them too, as the measure `wasted`, and as `bound` the place in `BOUNDS` of what holds
    each instruction back.
    """
    costs = [costs_of_bound(op, cost) for op, cost in zip(profile.ops, op_costs(profile), strict=True)]
    ops = [replace(op, wasted=_wasted(op, cost, peaks)) for op, cost in zip(profile.ops, costs, strict=True)]
    lines = _judged_lines(profile, ops)
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


def _judged_lines(profile: Profile, ops: list[OpTime]) -> list[LineTime]:
    share = {(op.program, op.name): op.wasted / op.seconds for op in ops if op.wasted is not None and op.seconds > 0}
    wasted: dict[tuple[str, int], float] = {}
    for number, capture in profile.captures.items():
        names = capture.hlo.graph.names
        for node, file, line, seconds in line_parts(capture):
            part = share.get((number, names[node]))
            if part is not None:
                wasted[file, line] = wasted.get((file, line), 0.0) + part * seconds
    return [replace(line, wasted=wasted.get((line.file, line.line))) for line in profile.lines]
