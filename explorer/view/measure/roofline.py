"""Rooflines as figures: each kernel below the machine's limits, with how far up it could go."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path as FilePath

from explorer.model.results.roofline import BOUNDS, Point, Roofline
from explorer.model.units import duration_text, rate_text, share_text
from explorer.view.chart import Table
from explorer.view.figure import GREY, INK, Bars, Figure, Label, Mark, Panel, Path, Points, add_headline, rows_of_text
from explorer.view.interface import FigureView
from explorer.view.measure.roofline_layout import (
    COLOURS,
    HIGH,
    ROOF_NAME_AT,
    SYMBOLS,
    WIDE,
    Layout,
    Roof,
    layout_of,
    unknown_text,
)
from explorer.view.measure.roofline_layout import (
    Mark as Kernel,
)
from explorer.view.scale import Scale

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
    def known(value: float, text: str) -> str:
        return "" if math.isnan(value) else text

    return (
        point.name,
        f"{FilePath(point.file).name}:{point.line}" if point.line else "",
        duration_text(point.seconds),
        f"{point.seconds / whole:.1%}",
        point.bound,
        known(point.efficiency, f"{point.efficiency:.0%}"),
        known(point.least, duration_text(point.least)),
        known(point.flops, rate_text(point.flops, "").removesuffix("/s")),
        known(point.bytes, rate_text(point.bytes, "B").removesuffix("/s")),
        known(point.intensity, f"{point.intensity:.3g}"),
    )


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
    """Return a roof within the panel, and its name."""
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
    """Return the kernels by what limits them, each with a stem to its limit, some with names."""
    # The longest come first, and stand in front: what is drawn last.
    by_bound = [(bound, [mark for mark in layout.marks if mark.bound == bound]) for bound in BOUNDS]
    cap = (layout.x[1] / layout.x[0]) ** (5 / WIDE)  # five pixels to each side, as a factor
    stems = [path for _, marks in by_bound for mark in marks for path in _stem(mark, cap)]
    symbols = [_symbols(bound, marks[::-1]) for bound, marks in by_bound]
    return [*stems, *symbols, *(_label(mark) for mark in layout.marks if mark.side)]


def _stem(kernel: Kernel, cap: float) -> list[Mark]:
    """Return a line from a kernel up to the rate that it could reach; none if that is near or the kernel small."""
    if kernel.roof <= 1.05 * kernel.y or kernel.radius <= 4:
        return []
    x, colour = kernel.x, COLOURS[kernel.bound]
    return [
        Path([x, x], [kernel.y, kernel.roof], colour, 1.4, opacity=0.55),
        Path([x / cap, x * cap], [kernel.roof] * 2, colour, 1.4, opacity=0.8),
    ]


def _symbols(bound: str, kernels: Sequence[Kernel]) -> Mark:
    x, y, radii = [k.x for k in kernels], [k.y for k in kernels], [k.radius for k in kernels]
    hover = ["\n".join(kernel.tooltip) for kernel in kernels]
    return Points(x, y, COLOURS[bound], SYMBOLS[bound], radii, opacity=0.85, hover=hover)


def _label(kernel: Kernel) -> Mark:
    """Return a kernel's name, on its free side."""
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
