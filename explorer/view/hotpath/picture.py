"""Hot paths as a figure: a curve for each function that was compiled, a row for each that stays eager."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isfinite

from explorer.model.results.hot_paths import HotPaths, HotRow, Way
from explorer.model.text import cut_end
from explorer.model.units import count_text, duration_text, factor_text
from explorer.view.figure import BLUE, FIRST, GREY, LIMIT, ORANGE, Figure, Label, Mark, Panel, Path, Points, headline
from explorer.view.hotpath.curve import WAYS, points_of
from explorer.view.scale import Scale, log_ticks

_WIDTH, _PANEL, _BETWEEN = 860, 110, 74
_LEFT, _RIGHT = 78, 770
_LETTERS = 13.0  # pixels from a figure to the one below
_MOST = 4  # functions with a curve
_STYLES: dict[Way, tuple[str, str, bool]] = {
    "eager": (ORANGE, "circle", True),
    "both": (FIRST, "diamond", False),
    "compiled": (BLUE, "circle", False),
    "missed": (LIMIT, "triangle-up", False),
}


def figure(paths: HotPaths) -> Figure:
    page = Figure(_WIDTH)
    y = headline(page, paths.headline, "", _key())
    drawn = [row for row in paths.functions if row.state != "eager" and len(row.times) > 1]
    for row in drawn[:_MOST]:
        page.text(24, y + 26, f"{row.name}: {_figures(row)}", size=13.5, bold=True)
        page.text(24, y + 42, points_of(row).what, size=11.0, colour=GREY)
        page.panels.append(_panel(row, y + 52))
        y += _PANEL + _BETWEEN
    for row in paths.functions:
        if row.state == "eager":
            where = f" ({paths.place(row.reason_file, row.reason_line)})" if row.reason_line else ""
            page.text(24, y + 22, cut_end(f"{row.name} stays eager: {row.reason}{where}", 120))
            y += 20
    page.height = y + 30
    return page


def _key() -> str:
    return "rings: eager; diamonds: both ways, compared; dots: compiled; triangles: a guard missed"


def _figures(row: HotRow) -> str:
    if not isfinite(row.speedup):
        return count_text(row.calls, "call")
    took = f"{duration_text(row.eager_seconds)} → {duration_text(row.compiled_seconds)}"
    return f"{factor_text(row.speedup)} as fast, {took}"


def _panel(row: HotRow, top: float) -> Panel:
    points = points_of(row)
    shown = [seconds for seconds in (*points.times.seconds, row.eager_seconds, row.compiled_seconds) if seconds > 0]
    low, high = min(shown, default=1e-6) / 1.5, max(shown, default=1.0) * 1.5
    ticks = log_ticks(low, high, 4)
    up = Scale(low, high, tuple(ticks), tuple(map(duration_text, ticks)), True)
    marks = [*_levels(row, up), *_marks(row, low)]
    return Panel(_LEFT, _RIGHT, top, top + _PANEL, Scale(0.0, 100.0, (), ()), up, marks)


def _levels(row: HotRow, up: Scale) -> Iterator[Mark]:
    """Both medians as lines with their figures; of two that are near each other the lower one's figure gives way."""
    levels = [(row.eager_seconds, ORANGE, "dash"), (row.compiled_seconds, BLUE, "")]
    last = -inf  # the place of the figure above, in pixels from the top
    for seconds, colour, dash in sorted((level for level in levels if 0 < level[0] < inf), reverse=True):
        level = up.at(seconds, _PANEL, 0.0)
        last = max(level + 4, last + _LETTERS)
        yield Path([0.0, 100.0], [seconds, seconds], colour, 1.5, dash, 0.7)
        yield Label(100.0, seconds, duration_text(seconds), colour, bold=True, dx=6, dy=last - level)


def _marks(row: HotRow, low: float) -> Iterator[Mark]:
    points = points_of(row)
    times = points.times
    for way, (colour, symbol, hollow) in _STYLES.items():
        own = [i for i, other in enumerate(times.ways) if other == way]
        if own:
            hover = [f"call {times.numbers[i]:,}, {WAYS[way]}: {duration_text(times.seconds[i])}" for i in own]
            seconds = [max(times.seconds[i], low) for i in own]
            yield Points([points.across[i] for i in own], seconds, colour, symbol, 3.6, hollow, hover=hover)
