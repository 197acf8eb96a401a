"""Positions of the kernels and roofs of a roofline.

Across is intensity in FLOPs per byte, up is the rate reached. A kernel without arithmetic has no place on a
logarithmic axis: it is in a column left of it, as high below memory's slope as its bandwidth is below memory's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from explorer.model.results.roofline import Peaks, Point, Roofline
from explorer.model.units import duration_text, rate_text, share_text

# By what holds a kernel back: colours that colour-blind people tell apart on light and dark, and a shape of its own.
COLOURS = {"memory": "#2f7fc1", "compute": "#d0640a", "overhead": "#8a6fc8", "unknown": "#868e99"}
SYMBOLS = {"memory": "circle", "compute": "diamond", "overhead": "triangle-up", "unknown": "square"}
_MOST = 80  # kernels that are drawn, the longest
_NAMED = 5
_INTENSE = 1e15  # FLOPs a byte: what has more, as next to no bytes, stands at the right end
_WORTH = 0.03  # of the time: what has a name beside it
_LARGEST, _SMALLEST = 13.0, 3.5  # pixels, radius
_ROOM = 1.6  # a factor at the ends of the axes
WIDE, HIGH = 840.0, 330.0  # pixels of the plot, about
_LETTER = 6.3  # pixels of a letter, about
ROOF_NAME_AT = {"matmul": (14.0, -6.0), "fma": (14.0, 14.0)}  # pixels right of and below where a level roof begins
_COLUMN = 6.0  # a factor left of everything: where the kernels without arithmetic stand


@dataclass(frozen=True)
class Mark:
    """One kernel.

    Args:
        x, y: Its place.
        roof: The highest y that it could reach.
        radius: Pixels; its area is its share of the time.
        bound: What limits it.
        label: Its label; empty for most.
        side: Side of the label: `right`, `left` or `below`.
        tooltip: Its lines.
    """

    x: float
    y: float
    roof: float
    radius: float
    bound: str
    label: str
    tooltip: tuple[str, ...]
    side: str = ""


@dataclass(frozen=True)
class Roof:
    """A limit of the machine, as a line; `kind` is `memory`, `cache`, `fresh`, `matmul` or `fma`."""

    kind: str
    name: str
    x: tuple[float, float]
    y: tuple[float, float]


@dataclass(frozen=True)
class Layout:
    """Positions of everything; `column` is the x of kernels without arithmetic, None if there are none."""

    x: tuple[float, float]
    y: tuple[float, float]
    roofs: Sequence[Roof]
    marks: Sequence[Mark]
    column: float | None


def layout_of(roofline: Roofline) -> Layout:
    peaks, whole = roofline.peaks, roofline.seconds or 1.0
    points = _drawn(roofline)
    ceilings = _ceilings(peaks, points)
    top = max((rate for _, _, rate in ceilings), default=1e9)
    low, high = _intensities(points, ridge=top / peaks.bandwidth if peaks.bandwidth else 1.0)
    column = low / _COLUMN if any(point.intensity == 0 for point in points) else None
    left = column or low
    marks = [_mark(point, roofline, number, left, high, whole) for number, point in enumerate(points)]
    floor = _floor(points, marks, top, whole)
    x, y = (left / _ROOM, high * _ROOM), (floor, top * 2.2)
    marks = [mark for mark in marks if mark.y >= floor]
    roofs = _roofs(peaks, ceilings, x)
    return Layout(x, y, roofs, _sided(_merged(marks, x, y), roofs, x, y), column)


def _drawn(roofline: Roofline) -> list[Point]:
    """Return the longest kernels whose costs are known."""
    return [point for point in roofline.points if point.bound != "unknown" and point.least > 0][:_MOST]


def _intensities(points: Sequence[Point], ridge: float) -> tuple[float, float]:
    """Return the ends of the axis of intensity: those of the kernels, and both sides of the ridge."""
    finite = [point.intensity for point in points if 0 < point.intensity < _INTENSE]
    return min([*finite, ridge / 20]), max([*finite, ridge * 4])


def _floor(points: Sequence[Point], marks: Sequence[Mark], top: float, whole: float) -> float:
    """Return where the axis of rates begins.

    The roofs and most of the time matter: a tiny kernel far below must not make everything small.
    """
    pairs = zip(points, marks, strict=True)
    rates = [mark.y for point, mark in pairs if point.seconds > 0.001 * whole and mark.y > 0]
    return max(min([*rates, top / 100]) / 2, top * 1e-7)


def unknown_text(roofline: Roofline, most: int = 3) -> str:
    """Return a sentence on the kernels without costs, which the picture can't show."""
    without = [point for point in roofline.points if point.bound == "unknown"]
    if not without:
        return ""
    named = [f"{point.name} {duration_text(point.seconds)}" for point in without[:most]]
    more = f" and {len(without) - most:,} more" if len(without) > most else ""
    if roofline.is_estimated:
        return f"Nothing is known of: {', '.join(point.name for point in without[:most])}{more}"
    share = share_text(roofline.unknown / roofline.seconds)
    return f"No costs are known of: {', '.join(named)}{more} ({share} of the time)"


def _ceilings(peaks: Peaks, points: Sequence[Point]) -> list[tuple[str, str, float]]:
    """Return the horizontal roofs (kind, dtype, rate) of the dtypes that the kernels compute in, and of f32."""
    wanted = {point.dtype for point in points} | {"f32"}
    ceilings: list[tuple[str, str, float]] = []
    for kind, rates in (("matmul", peaks.matmul), ("fma", peaks.fma)):
        ceilings += [(kind, dtype, rate) for dtype, rate in rates.items() if dtype in wanted or len(rates) == 1]
    return ceilings


def _roofs(peaks: Peaks, ceilings: Sequence[tuple[str, str, float]], x: tuple[float, float]) -> list[Roof]:
    top = max((rate for _, _, rate in ceilings), default=0.0)
    slopes = [("memory", f"memory {rate_text(peaks.bandwidth, 'B')}", peaks.bandwidth)]
    fastest = max(peaks.caches.values(), default=0.0)
    if fastest > 1.15 * peaks.bandwidth:
        slopes.append(("cache", f"cache {rate_text(fastest, 'B')}", fastest))
    if 0 < peaks.fresh < peaks.bandwidth / 1.3:
        slopes.append(("fresh", f"new memory {rate_text(peaks.fresh, 'B')}", peaks.fresh))
    roofs = [
        Roof(kind, name, (x[0], min(top / rate, x[1])), (x[0] * rate, min(top, x[1] * rate)))
        for kind, name, rate in slopes
        if rate > 0 and top > 0
    ]
    widest = max(fastest, peaks.bandwidth) or 1.0
    titles = {"matmul": "matmul", "fma": "arithmetic"}
    return roofs + [
        Roof(kind, f"{titles[kind]} {dtype} {rate_text(rate)}", (rate / widest, x[1]), (rate, rate))
        for kind, dtype, rate in ceilings
    ]


def _mark(point: Point, roofline: Roofline, number: int, column: float, high: float, whole: float) -> Mark:
    if point.intensity == 0:
        x, y, roof = column, column * point.bytes / point.seconds, column * point.bytes / point.least
    else:
        x, y, roof = min(point.intensity, high), point.rate, point.flops / point.least
    share = point.seconds / whole
    longest = roofline.points[0].seconds / whole
    radius = max(_LARGEST * math.sqrt(share / longest), _SMALLEST)
    named = number < _NAMED and share >= _WORTH
    return Mark(x, y, roof, radius, point.bound, _label(point) if named else "", _tooltip(point, share))


def _merged(marks: Sequence[Mark], x: tuple[float, float], y: tuple[float, float]) -> list[Mark]:
    """Keep one label of marks that have the same label and place, such as a layer's in each layer, with their count."""
    counts: dict[int, int] = {}  # by the number of each that keeps its label
    places = [(_share(mark.x, x) * WIDE, _share(mark.y, y) * HIGH) for mark in marks]
    for number, mark in enumerate(marks):
        same = (
            first
            for first in counts
            if marks[first].label == mark.label
            and math.dist(places[first], places[number]) <= marks[first].radius + mark.radius
        )
        if mark.label:
            first = next(same, number)
            counts[first] = counts.get(first, 0) + 1
    labels = {first: marks[first].label + f" ×{count}" * (count > 1) for first, count in counts.items()}
    return [replace(mark, label=labels.get(number, "")) for number, mark in enumerate(marks)]


def _sided(marks: Sequence[Mark], roofs: Sequence[Roof], x: tuple[float, float], y: tuple[float, float]) -> list[Mark]:
    """Choose a side for each label so that no two overlap; one without a free side is left out."""
    taken: list[tuple[float, float, float]] = [
        (_share(mark.x, x) * WIDE - mark.radius, _share(mark.x, x) * WIDE + mark.radius, _share(mark.y, y) * HIGH)
        for mark in marks
        if mark.radius > _SMALLEST
    ]
    for roof in roofs:
        if roof.kind in ROOF_NAME_AT:  # those of the others follow their slopes
            start = _share(max(roof.x[0], x[0]), x) * WIDE + ROOF_NAME_AT[roof.kind][0]
            level = _share(roof.y[0], y) * HIGH - ROOF_NAME_AT[roof.kind][1]
            taken.append((start, start + _LETTER * len(roof.name), level))
    sided: list[Mark] = []
    for mark in marks:
        side = _side(mark, _share(mark.x, x) * WIDE, _share(mark.y, y) * HIGH, taken) if mark.label else ""
        sided.append(replace(mark, side=side, label=mark.label if side else ""))
    return sided


def _side(mark: Mark, x: float, y: float, taken: list[tuple[float, float, float]]) -> str:
    wide, away = _LETTER * len(mark.label), mark.radius + 6
    places = {"right": (x + away, y), "left": (x - away - wide, y), "below": (x - wide / 2, y - mark.radius - 12)}
    for side, (start, at) in places.items():
        is_free = all(start > end or start + wide < since or abs(at - level) > 13 for since, end, level in taken)
        if is_free and start >= 0 and start + wide <= WIDE and at > 0:
            taken.append((start, start + wide, at))
            return side
    return ""


def _share(value: float, span: tuple[float, float]) -> float:
    return math.log(value / span[0]) / math.log(span[1] / span[0])


def _label(point: Point) -> str:
    what = point.computes or point.text or point.name  # of a line there may be several fusions
    what = what if len(what) <= 26 else f"{what[:25]}…"
    return f"{point.line}: {what}" if point.line else what


def _tooltip(point: Point, share: float) -> tuple[str, ...]:
    place = f"{Path(point.file).name}:{point.line}  {point.text}".rstrip() if point.line else "no line is known"
    runs = f", {point.runs:,.0f} runs" if point.runs > 1 else ""
    lines = [
        *filter(None, [point.computes]),
        f"{point.name} ({point.op}{f' of {point.dtype}' if point.dtype else ''})",
        place,
        f"{duration_text(point.seconds)} a call, {share_text(share)} of the time{runs}",
        f"bound by {point.bound}: reaches {share_text(point.efficiency)}, could take {duration_text(point.least)}",
        f"{rate_text(point.rate)}, {rate_text(point.bytes / point.seconds, 'B')}, {point.intensity:.3g} FLOPs a byte",
    ]
    if point.special:
        lines.append("computes " + ", ".join(f"{op} ×{count:,.0f}" for op, count in point.special.items()))
    return tuple(lines)
