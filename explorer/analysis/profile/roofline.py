"""A profile against the peaks of a machine: each kernel's least time, and what holds it back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from explorer.analysis.attribution import own_frame
from explorer.analysis.cost.lines import LineShares, line_parts, shares_by_line
from explorer.analysis.profile.costs import OpCost, costs_of_bound, op_costs
from explorer.analysis.profile.first_touch import first_touch_note
from explorer.model.results.profile import OpTime, Profile
from explorer.model.results.roofline import Peaks, Point, Roofline
from explorer.model.units import duration_text

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
    """Of each op, the lines that its time comes from with their share of it, the largest first."""
    parts: dict[tuple[int, str], dict[tuple[str, int], float]] = {}
    for program, capture in profile.captures.items():
        names = capture.hlo.graph.names
        for node, file, line, seconds in line_parts(capture):
            of_op = parts.setdefault((program, names[node]), {})
            of_op[file, line] = of_op.get((file, line), 0.0) + seconds
    return {key: shares_by_line(of_op) for key, of_op in parts.items()}


def _unknown_note(roofline: Roofline) -> str:
    """Which kernels no costs are known of, where they take much of the time."""
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
