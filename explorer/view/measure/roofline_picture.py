"""A roofline's static picture, its description and its table."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path

from explorer.model.results.roofline import Point, Roofline
from explorer.model.units import duration_text, rate_text, share_text
from explorer.view.chart import Table
from explorer.view.drawing import canvas
from explorer.view.measure.roofline_layout import COLOURS, HIGH, WIDE, Layout, Mark, Roof, layout_of, unknown_text
from explorer.view.measure.showing import headline_rows
from explorer.view.measure.strokes import GREY, INK, line, words, wrapped

__all__ = ["described", "picture", "tables"]

WIDTH = 960
_LEFT, _HEIGHT = 92, HIGH  # pixels
_CHARACTERS = 128  # of a line of the notes
_HEAD = 98  # of one of the headline
_HALO = 'stroke="#fff" stroke-width="3" stroke-linejoin="round" paint-order="stroke"'
_ROOFS = {"memory": (INK, 2.2, ""), "cache": (GREY, 1.2, "6 4"), "fresh": (GREY, 1.2, "2 4"),
          "matmul": (INK, 2.2, ""), "fma": (GREY, 1.2, "")}  # fmt: skip


def picture(roofline: Roofline) -> str:
    """The picture as SVG."""
    parts: list[str] = []
    y = 28.0
    for row, is_bold in headline_rows(roofline.headline, _HEAD):
        parts.append(words(20, y, row, size=15 if is_bold else 14, bold=is_bold))
        y += 21
    y = _bar(roofline, y + 2, parts)
    if any(point.bound != "unknown" for point in roofline.points):
        _Plot(layout_of(roofline), y + 16, parts).draw()
        y += 16 + _HEIGHT + 58
    notes = filter(None, (unknown_text(roofline), *roofline.notes))
    for row in wrapped([row for note in notes for row in textwrap.wrap(note, _CHARACTERS)], _CHARACTERS, 6):
        parts.append(words(20, y, row, fill=GREY))
        y += 18
    return canvas(WIDTH, y + 4, parts)


def described(roofline: Roofline) -> str:
    """The picture in words."""
    return f"{roofline.headline} {roofline.bounds_text}".strip()


def tables(roofline: Roofline) -> list[Table]:
    """Every kernel and every peak."""
    head = ("kernel", "line", "seconds", "share", "bound", "efficiency", "least", "FLOPs", "bytes", "FLOP/byte")
    rows = [_row(point, roofline.seconds or 1.0) for point in roofline.points]
    machine = [row.split(None, 1) for row in roofline.peaks.to_text().splitlines()[1:]]
    return [
        Table(f"{roofline.function}: {len(rows):,} kernels as a table", head, rows, " · ".join(roofline.notes)),
        Table(f"{roofline.peaks.device}: its peaks", ("of", "figures"), [row for row in machine if len(row) == 2]),
    ]


def _row(point: Point, whole: float) -> tuple[str, ...]:
    def known(value: float, text: str) -> str:
        return "" if math.isnan(value) else text

    return (
        point.name,
        f"{Path(point.file).name}:{point.line}" if point.line else "",
        duration_text(point.seconds),
        f"{point.seconds / whole:.1%}",
        point.bound,
        known(point.efficiency, f"{point.efficiency:.0%}"),
        known(point.least, duration_text(point.least)),
        known(point.flops, rate_text(point.flops, "").removesuffix("/s")),
        known(point.bytes, rate_text(point.bytes, "B").removesuffix("/s")),
        known(point.intensity, f"{point.intensity:.3g}"),
    )


def _bar(roofline: Roofline, y: float, parts: list[str]) -> float:
    """The time by what holds it back: a bar, and its key."""
    x, wide = 20.0, WIDTH - 40.0
    for bound, share in roofline.shares.items():
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(wide * share - 1, 0.5):.1f}" height="10" '
            f'fill="{COLOURS[bound]}"/>'
        )
        x += wide * share
    x, y = 20.0, y + 28
    for bound, share in roofline.shares.items():
        name = "no costs known" if bound == "unknown" else f"bound by {bound}"
        parts += [_symbol(x + 6, y - 4, 5, bound), words(x + 17, y, f"{name} {share_text(share)}", fill=INK)]
        x += 34 + 6.6 * len(f"{name} {share_text(share)}")
    return y


class _Plot:
    """The axes, the roofs, and the kernels below them."""

    def __init__(self, layout: Layout, top: float, parts: list[str]) -> None:
        self.layout, self.parts = layout, parts
        self.left, self.right, self.top, self.bottom = _LEFT, _LEFT + WIDE, top, top + _HEIGHT

    def x(self, value: float) -> float:
        low, high = map(math.log, self.layout.x)
        return self.left + (self.right - self.left) * (math.log(value) - low) / (high - low)

    def y(self, value: float) -> float:
        low, high = map(math.log, self.layout.y)
        part = (math.log(max(value, self.layout.y[0])) - low) / (high - low)
        return self.bottom - (self.bottom - self.top) * min(part, 1.0)

    def draw(self) -> None:
        self.axes()
        for roof in self.layout.roofs:
            self.roof(roof)
        for mark in self.layout.marks:
            self.stem(mark)
        for mark in reversed(self.layout.marks):
            self.parts.append(_symbol(self.x(mark.x), self.y(mark.y), mark.radius, mark.bound))
        self.labels()

    def axes(self) -> None:
        parts = self.parts
        for tick in _decades(*self.layout.y):
            at = self.y(tick)
            parts.append(line(self.left, at, self.right, at, "#e9ebee"))
            parts.append(words(self.left - 8, at + 4, rate_text(tick), fill=GREY, size=11, at="end"))
        for tick in _decades(*self.layout.x):
            if self.layout.column is None or tick > 2 * self.layout.column:
                at = self.x(tick)
                parts.append(line(at, self.bottom, at, self.bottom + 4, GREY))
                parts.append(words(at, self.bottom + 17, f"{tick:g}", fill=GREY, size=11, at="middle"))
        if self.layout.column is not None:
            parts.append(words(self.x(self.layout.column), self.bottom + 17, "0", fill=GREY, size=11, at="middle"))
        parts.append(line(self.left, self.bottom, self.right, self.bottom, GREY))
        middle = (self.left + self.right) / 2
        parts.append(words(middle, self.bottom + 34, "FLOPs for each byte moved", fill=GREY, size=11, at="middle"))

    def roof(self, roof: Roof) -> None:
        colour, width, dash = _ROOFS[roof.kind]
        x, to_x = self.x(max(roof.x[0], self.layout.x[0])), self.x(roof.x[1])
        y, to_y = self.y(roof.y[0]), self.y(roof.y[1])
        if roof.y[0] < self.layout.y[0] < roof.y[1]:  # it begins below the picture
            x = self.x(roof.x[0] * self.layout.y[0] / roof.y[0])
        self.parts.append(line(x, y, to_x, to_y, colour, width, dash))
        if roof.kind in ("matmul", "fma"):
            self.parts.append(
                _haloed(words(x + 14, to_y + (-6 if roof.kind == "matmul" else 14), roof.name, fill=colour, size=11))
            )
            return
        angle = math.degrees(math.atan2(to_y - y, to_x - x))
        at_x, at_y = x + (to_x - x) * 0.62, y + (to_y - y) * 0.62
        turned = f'<g transform="rotate({angle:.1f} {at_x:.1f} {at_y:.1f})">'
        name = _haloed(words(at_x, at_y - 6, roof.name, fill=colour, size=11, at="middle"))
        self.parts.append(f"{turned}{name}</g>")

    def stem(self, mark: Mark) -> None:
        """From where a kernel is to where it could be."""
        if mark.roof > 1.05 * mark.y and mark.radius > 4:
            x, colour = self.x(mark.x), COLOURS[mark.bound]
            self.parts.append(line(x, self.y(mark.y), x, self.y(mark.roof), colour, 1.4, "", 0.55))
            self.parts.append(line(x - 5, self.y(mark.roof), x + 5, self.y(mark.roof), colour, 1.4, "", 0.8))

    def labels(self) -> None:
        for mark in self.layout.marks:
            x, y, away = self.x(mark.x), self.y(mark.y), mark.radius + 6
            if mark.side == "below":
                self.parts.append(_haloed(words(x, y + mark.radius + 16, mark.label, size=11, at="middle")))
            elif mark.side:
                start = mark.side == "right"
                at = "start" if start else "end"
                self.parts.append(_haloed(words(x + (away if start else -away), y + 4, mark.label, size=11, at=at)))


def _haloed(words: str) -> str:
    """Words that can be read over lines."""
    return words.replace("<text ", f"<text {_HALO} ", 1)


def _decades(low: float, high: float) -> list[float]:
    powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    return [10.0**power for power in powers][:: max(1, math.ceil(len(powers) / 7))]


def _symbol(x: float, y: float, radius: float, bound: str) -> str:
    look = f'fill="{COLOURS[bound]}" fill-opacity=".85" stroke="#fff" stroke-width="1"'
    if bound == "memory":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" {look}/>'
    corners = {
        "compute": ((0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)),
        "overhead": ((0, -1.2), (1.1, 0.8), (-1.1, 0.8)),
        "unknown": ((-0.8, -0.8), (0.8, -0.8), (0.8, 0.8), (-0.8, 0.8)),
    }[bound]
    path = "L".join(f"{x + radius * dx:.1f} {y + radius * dy:.1f}" for dx, dy in corners)
    return f'<path d="M{path}Z" {look}/>'
