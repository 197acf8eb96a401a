"""Rooflines as figures: each kernel below the machine's limits, with how far up it could go."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath

from explorer.model.results.roofline import BOUNDS, Peaks, Point, Roofline
from explorer.model.units import duration_text, rate_text, share_text
from explorer.view.chart import Table
from explorer.view.figure import GREY, INK, Bars, Figure, Label, Mark, Panel, Path, Points, add_headline, rows_of_text
from explorer.view.interface import FigureView
from explorer.view.scale import Scale

# By what limits a kernel: colors that color-blind people can distinguish on light and dark, and a shape.
COLOURS = {"memory": "#2f7fc1", "compute": "#d0640a", "overhead": "#8a6fc8", "unknown": "#868e99"}
SYMBOLS = {"memory": "circle", "compute": "diamond", "overhead": "triangle-up", "unknown": "square"}
_MOST = 80  # kernels that are drawn, the longest
_NAMED = 5
_INTENSE = 1e15  # FLOPs a byte: a kernel with more, as it moves next to no bytes, is at the right end
_WORTH = 0.03  # of the time: kernels with a larger share are named
_LARGEST, _SMALLEST = 13.0, 3.5  # pixels, radius
_ROOM = 1.6  # a factor at the ends of the axes
WIDE, HIGH = 840.0, 330.0  # pixels of the plot, about
_LETTER = 6.3  # pixels of a letter, about
ROOF_NAME_AT = {"matmul": (14.0, -6.0), "fma": (14.0, 14.0)}  # pixels right of and below where a level roof begins
_COLUMN = 6.0  # a factor left of everything: the column of kernels without arithmetic


@dataclass(frozen=True)
class Kernel:
    """One kernel of the picture.

    Args:
        x, y: Its place.
        roof: The highest y that it could reach.
        radius: Pixels; its area is its share of the time.
        bound: Its limit, as `memory` or `compute`.
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
    """Axes, roofs and kernels in data units; `column` is the x of kernels without arithmetic, None without any."""

    x: tuple[float, float]
    y: tuple[float, float]
    roofs: Sequence[Roof]
    kernels: Sequence[Kernel]
    column: float | None


def layout_of(roofline: Roofline) -> Layout:
    peaks, whole = roofline.peaks, roofline.seconds or 1.0
    points = _drawn(roofline)
    ceilings = _ceilings(peaks, points)
    top = max((rate for _, _, rate in ceilings), default=1e9)
    # The axis of intensity has all kernels, and both sides of the ridge.
    ridge = top / peaks.bandwidth if peaks.bandwidth else 1.0
    finite = [point.intensity for point in points if 0 < point.intensity < _INTENSE]
    low, high = min([*finite, ridge / 20]), max([*finite, ridge * 4])
    column = low / _COLUMN if any(point.intensity == 0 for point in points) else None
    left = column or low
    kernels = [_kernel_of(point, roofline, number, left, high, whole) for number, point in enumerate(points)]
    floor = _floor(points, kernels, top, whole)
    x, y = (left / _ROOM, high * _ROOM), (floor, top * 2.2)
    kernels = [kernel for kernel in kernels if kernel.y >= floor]
    roofs = _roofs(peaks, ceilings, x)
    return Layout(x, y, roofs, _sided(_merged(kernels, x, y), roofs, x, y), column)


def _drawn(roofline: Roofline) -> list[Point]:
    """Return the longest kernels whose costs are known, at most 80."""
    return [point for point in roofline.points if point.bound != "unknown" and point.least > 0][:_MOST]


def _floor(points: Sequence[Point], kernels: Sequence[Kernel], top: float, whole: float) -> float:
    """Return the lowest rate on the axis, at most half of the lowest rate that matters.

    The roofs and most of the time matter: a tiny kernel far below must not make everything small.
    """
    pairs = zip(points, kernels, strict=True)
    rates = [kernel.y for point, kernel in pairs if point.seconds > 0.001 * whole and kernel.y > 0]
    return max(min([*rates, top / 100]) / 2, top * 1e-7)


def unknown_text(roofline: Roofline, most: int = 3) -> str:
    """Return a sentence on the kernels without costs, which the picture can't show; empty if all have costs."""
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


def _kernel_of(point: Point, roofline: Roofline, number: int, column: float, high: float, whole: float) -> Kernel:
    if point.intensity == 0:
        x, y, roof = column, column * point.bytes / point.seconds, column * point.bytes / point.least
    else:
        x, y, roof = min(point.intensity, high), point.rate, point.flops / point.least
    share = point.seconds / whole
    longest = roofline.points[0].seconds / whole
    # The area of a symbol shows the time.
    radius = max(_LARGEST * math.sqrt(share / longest), _SMALLEST)
    named = number < _NAMED and share >= _WORTH
    return Kernel(x, y, roof, radius, point.bound, _label(point) if named else "", _tooltip(point, share))


def _merged(kernels: Sequence[Kernel], x: tuple[float, float], y: tuple[float, float]) -> list[Kernel]:
    """Return the kernels, with one label and a count for equal labels at one place, such as one of each layer."""
    counts: dict[int, int] = {}  # by the number of each that keeps its label
    places = [(_share(kernel.x, x) * WIDE, _share(kernel.y, y) * HIGH) for kernel in kernels]
    for number, kernel in enumerate(kernels):
        same = (
            first
            for first in counts
            if kernels[first].label == kernel.label
            and math.dist(places[first], places[number]) <= kernels[first].radius + kernel.radius
        )
        if kernel.label:
            first = next(same, number)
            counts[first] = counts.get(first, 0) + 1
    labels = {first: kernels[first].label + f" ×{count}" * (count > 1) for first, count in counts.items()}
    return [replace(kernel, label=labels.get(number, "")) for number, kernel in enumerate(kernels)]


def _sided(
    kernels: Sequence[Kernel], roofs: Sequence[Roof], x: tuple[float, float], y: tuple[float, float]
) -> list[Kernel]:
    """Return the kernels with a side for each label, so that no two overlap; a label without a free side is removed."""
    taken: list[tuple[float, float, float]] = [
        (
            _share(kernel.x, x) * WIDE - kernel.radius,
            _share(kernel.x, x) * WIDE + kernel.radius,
            _share(kernel.y, y) * HIGH,
        )
        for kernel in kernels
        if kernel.radius > _SMALLEST
    ]
    for roof in roofs:
        if roof.kind in ROOF_NAME_AT:  # those of the others follow their slopes
            start = _share(max(roof.x[0], x[0]), x) * WIDE + ROOF_NAME_AT[roof.kind][0]
            level = _share(roof.y[0], y) * HIGH - ROOF_NAME_AT[roof.kind][1]
            taken.append((start, start + _LETTER * len(roof.name), level))
    sided: list[Kernel] = []
    for kernel in kernels:
        side = _side(kernel, _share(kernel.x, x) * WIDE, _share(kernel.y, y) * HIGH, taken) if kernel.label else ""
        sided.append(replace(kernel, side=side, label=kernel.label if side else ""))
    return sided


def _side(kernel: Kernel, x: float, y: float, taken: list[tuple[float, float, float]]) -> str:
    wide, away = _LETTER * len(kernel.label), kernel.radius + 6
    places = {"right": (x + away, y), "left": (x - away - wide, y), "below": (x - wide / 2, y - kernel.radius - 12)}
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
    place = f"{FilePath(point.file).name}:{point.line}  {point.text}".rstrip() if point.line else "no line is known"
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


_WIDTH, _LEFT = 960, 92
_ROOFS = {"memory": (INK, 2.2, ""), "cache": (GREY, 1.2, "dash"), "fresh": (GREY, 1.2, "dot"),
          "matmul": (INK, 2.2, ""), "fma": (GREY, 1.2, "")}  # fmt: skip


class RooflineView(FigureView[Roofline]):
    """The time by what limits it, then the kernels on axes of intensity and rate, below the roofs."""

    def title(self, value: Roofline) -> str:
        return f"roofline of {value.function}"

    def chart_text(self, value: Roofline) -> str:
        return f"roofline: {value.function}, {len(value.points):,} kernel{'s' * (len(value.points) != 1)}"

    def description(self, value: Roofline) -> str:
        return f"{value.headline} {value.bounds_text}".strip()

    def tables(self, value: Roofline) -> Sequence[Table]:
        head = ("kernel", "line", "seconds", "share", "bound", "efficiency", "least", "FLOPs", "bytes", "FLOP/byte")
        rows = [_row(point, value.seconds or 1.0) for point in value.points]
        if value.is_estimated:  # each is as fast as the peaks allow
            head = (*head[:2], "least, estimated", *head[3:5], *head[7:])
            rows = [(*row[:5], *row[7:]) for row in rows]
        machine = [row.split(None, 1) for row in value.peaks.to_text().splitlines()[1:]]
        return [
            Table(f"{value.function}: {len(rows):,} kernels as a table", head, rows, " · ".join(value.notes)),
            Table(f"{value.peaks.device}: its peaks", ("of", "figures"), [row for row in machine if len(row) == 2]),
        ]

    def figure(self, value: Roofline) -> Figure:
        page = Figure(_WIDTH)
        y = _shares(page, value, add_headline(page, value.headline) + 2)
        if any(point.bound != "unknown" for point in value.points):
            page.panels.append(_panel(layout_of(value), y + 16))
            y += 16 + HIGH + 58
        notes = [*filter(None, (unknown_text(value), *value.notes))]
        page.height = rows_of_text(page, y, notes, most=6, x=20) + 4
        return page


def _row(point: Point, whole: float) -> tuple[str, ...]:
    texts = (
        (point.efficiency, f"{point.efficiency:.0%}"),
        (point.least, duration_text(point.least)),
        (point.flops, rate_text(point.flops, "").removesuffix("/s")),
        (point.bytes, rate_text(point.bytes, "B").removesuffix("/s")),
        (point.intensity, f"{point.intensity:.3g}"),
    )
    place = f"{FilePath(point.file).name}:{point.line}" if point.line else ""
    figures = ("" if math.isnan(value) else text for value, text in texts)
    return point.name, place, duration_text(point.seconds), f"{point.seconds / whole:.1%}", point.bound, *figures


def _shares(page: Figure, roofline: Roofline, y: float) -> float:
    """Draw the time by what limits it, as a bar with a key; return the y where that ends."""
    x, wide, key = 20.0, _WIDTH - 40.0, 20.0
    for bound, share in roofline.shares.items():
        text = f"{'no costs known' if bound == 'unknown' else f'bound by {bound}'} {share_text(share)}"
        box = (x, x + max(wide * share - 1, 0.5), y, y + 10)
        page.page.append(Bars([box], COLOURS[bound], hover=[text], rounded=0))
        page.page.append(Points([key + 6], [y + 24], COLOURS[bound], SYMBOLS[bound], 5))
        page.text(key + 17, y + 28, text)
        x += wide * share
        key += 36 + 7.0 * len(text)
    return y + 28


def _panel(layout: Layout, top: float) -> Panel:
    y_ticks = _decades(*layout.y)
    x_ticks = [(tick, f"{tick:g}") for tick in _decades(*layout.x)]
    if layout.column is not None:  # of the kernels without arithmetic
        x_ticks = [(layout.column, "0"), *(tick for tick in x_ticks if tick[0] > 2 * layout.column)]
    across = Scale(*layout.x, tuple(at for at, _ in x_ticks), tuple(text for _, text in x_ticks), True)
    up = Scale(*layout.y, tuple(y_ticks), tuple(map(rate_text, y_ticks)), True)
    panel = Panel(_LEFT, _LEFT + WIDE, top, top + HIGH, across, up, x_title="FLOPs for each byte moved")
    marks = [mark for roof in layout.roofs for mark in _roof(roof, panel)] + _kernels(layout)
    return Panel(panel.left, panel.right, top, panel.bottom, across, up, marks, panel.x_title)


def _roof(roof: Roof, panel: Panel) -> list[Mark]:
    """Return the marks of a roof: its line within the panel, and its name."""
    colour, width, dash = _ROOFS[roof.kind]
    x, y = max(roof.x[0], panel.x.low), roof.y[0]
    if roof.y[0] < panel.y.low < roof.y[1]:  # it begins below the panel
        x, y = roof.x[0] * panel.y.low / roof.y[0], panel.y.low
    path = Path([x, roof.x[1]], [y, roof.y[1]], colour, width, dash)
    if roof.kind in ROOF_NAME_AT:
        dx, dy = ROOF_NAME_AT[roof.kind]
        return [path, Label(x, y, roof.name, colour, 11, dx=dx, dy=dy, halo=True)]
    start, end = panel.place(x, y), panel.place(roof.x[1], roof.y[1])
    angle = math.degrees(math.atan2(end[1] - start[1], end[0] - start[0]))
    middle = x ** (1 - 0.62) * roof.x[1] ** 0.62, y ** (1 - 0.62) * roof.y[1] ** 0.62  # on logarithmic axes
    return [path, Label(*middle, roof.name, colour, 11, anchor="middle", dy=-6, angle=angle, halo=True)]


def _kernels(layout: Layout) -> list[Mark]:
    """Return the marks of the kernels: stems up to their limits, then symbols by limit, then some names."""
    cap = (layout.x[1] / layout.x[0]) ** (5 / WIDE)  # five pixels to each side, as a factor
    stems: list[Mark] = []
    symbols: list[Mark] = []
    for bound in BOUNDS:
        kernels = [kernel for kernel in layout.kernels if kernel.bound == bound]
        stems += [path for kernel in kernels for path in _stem(kernel, cap)]
        shown = kernels[::-1]  # the longest come first, and are drawn last, in front
        hover = ["\n".join(kernel.tooltip) for kernel in shown]
        x, y, radii = [k.x for k in shown], [k.y for k in shown], [k.radius for k in shown]
        symbols.append(Points(x, y, COLOURS[bound], SYMBOLS[bound], radii, opacity=0.85, hover=hover))
    return [*stems, *symbols, *(_name_of(kernel) for kernel in layout.kernels if kernel.side)]


def _stem(kernel: Kernel, cap: float) -> list[Mark]:
    """Return a line with a cap from a kernel up to the rate that it could reach; empty if near, or the kernel small."""
    if kernel.roof <= 1.05 * kernel.y or kernel.radius <= 4:
        return []
    x, colour = kernel.x, COLOURS[kernel.bound]
    return [
        Path([x, x], [kernel.y, kernel.roof], colour, 1.4, opacity=0.55),
        Path([x / cap, x * cap], [kernel.roof] * 2, colour, 1.4, opacity=0.8),
    ]


def _name_of(kernel: Kernel) -> Mark:
    """Return the label with a kernel's name, on the side chosen for it."""
    away = kernel.radius + 6
    anchor, dx, dy = {
        "below": ("middle", 0.0, kernel.radius + 16),
        "right": ("start", away, 4),
        "left": ("end", -away, 4),
    }[kernel.side]
    return Label(kernel.x, kernel.y, kernel.label, INK, 11, anchor=anchor, dx=dx, dy=dy, halo=True)


def _decades(low: float, high: float) -> list[float]:
    powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    return [10.0**power for power in powers][:: max(1, math.ceil(len(powers) / 7))]
