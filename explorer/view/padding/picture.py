"""The same as a static picture, and for plotly."""

from __future__ import annotations

from collections.abc import Iterator

from explorer.analysis.padding_summary import dimensions_text, obstacles
from explorer.model.results.dynamic_report import DynamicReport
from explorer.model.text import cut_end
from explorer.view.figure import BLUE, GREY, ORANGE, Bars, Figure, Label, Mark, Panel, Path, Points, headline
from explorer.view.padding.grid import LEVELS, Grid, grid_of
from explorer.view.padding.plots import Plot, across_title, bucket_places, elements, plots_of

_WIDTH, _HEIGHT, _GAP = 960, 200, 70
_ACROSS = (_WIDTH - 30) / 2 - _GAP - 30  # pixels of a panel
_APART = 54  # pixels from a bucket's name to the next one's
_MOST = 8  # obstacles


def figure(report: DynamicReport) -> Figure:
    page = Figure(_WIDTH)
    first, _, rest = report.headline.partition("; ")
    y = headline(page, first, rest, f"{report.function}: {dimensions_text(report)}")
    for obstacle in obstacles(report)[:_MOST]:
        page.text(24, y + 14, cut_end(f"{obstacle.place}: {obstacle.reason}", 130), colour=ORANGE)
        y += 18
        if obstacle.first.hint:
            page.text(40, y + 14, cut_end(obstacle.first.hint, 128), colour=GREY)
            y += 18
    plots = plots_of(report)
    for number, plot in enumerate(plots):
        left = 20 + _GAP + number * (_ACROSS + _GAP + 20)
        page.text(left - _GAP + 4, y + 12, plot.title, size=13.0, bold=True)
        panel = Panel(
            left, left + _ACROSS, y + 40, y + 40 + _HEIGHT, plot.x, plot.y, list(_marks(plot, report)),
            across_title(report),
        )  # fmt: skip
        page.panels.append(panel)
    y += 40 + _HEIGHT + 56 if plots else 30
    grid = grid_of(report)
    page.height = y if grid is None else _add_grid(page, grid, y)
    return page


def _add_grid(page: Figure, grid: Grid, y: float) -> float:
    """Add the grid and its key below `y`; returns where they end."""
    page.text(24, y + 12, grid.title, size=13.0, bold=True)
    left, title = 20 + _GAP, f"across {grid.across}, upwards {grid.upwards}"
    marks = list(_grid_marks(grid))
    page.panels.append(Panel(left, left + _ACROSS, y + 40, y + 40 + _HEIGHT, grid.x, grid.y, marks, title, grid=""))
    at = left + _ACROSS + 40
    for number, level in enumerate(LEVELS):
        page.page.append(Bars([(at, at + 12, y + 44 + 20 * number, y + 56 + 20 * number)], ORANGE, _opacity(level)))
        page.text(at + 20, y + 54 + 20 * number, f"{level:.0%} padding", size=12.0)
    page.text(at, y + 60 + 20 * len(LEVELS), "frames: the buckets that are compiled", colour=GREY)
    return y + 40 + _HEIGHT + 56


def _opacity(level: float) -> float:
    return 0.1 + 0.85 * level


def _grid_marks(grid: Grid) -> Iterator[Mark]:
    for level in LEVELS:
        cells = [cell for cell in grid.cells if cell.level == level]
        if cells:
            boxes = [(cell.left, cell.right, cell.high, cell.low) for cell in cells]
            yield Bars(boxes, ORANGE, _opacity(level), [cell.hover for cell in cells], rounded=0.0)
    for right, high, _ in grid.buckets:
        yield Path([grid.x.low, right, right], [high, high, grid.y.low], GREY, 1.4)


def _marks(plot: Plot, report: DynamicReport) -> Iterator[Mark]:
    labelled: list[float] = []
    for at, text in bucket_places(report):
        yield Path([at, at], [plot.y.low, plot.y.high], GREY, 1.0, "dash", 0.6)
        place = plot.x.at(at, 0, _ACROSS)
        if all(abs(place - other) > _APART for other in labelled):
            labelled.append(place)
            yield Label(at, plot.y.high, text, GREY, 10.5, anchor="middle", dy=-4)
    xs = [elements(row) for row in plot.points]
    yield Points(xs, plot.values, BLUE, "circle", 3.6, opacity=0.75, hover=plot.hover)
