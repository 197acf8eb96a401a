"""The same as a static picture, and for plotly."""

from __future__ import annotations

from collections.abc import Iterator

from explorer.analysis.padding_summary import dimensions_text, obstacles
from explorer.model.results.dynamic_report import DynamicReport
from explorer.model.text import cut_end
from explorer.view.figure import BLUE, GREY, ORANGE, Figure, Label, Mark, Panel, Path, Points, headline
from explorer.view.padding.plots import Plot, across_title, bucket_places, elements, plots_of

_WIDTH, _HEIGHT, _GAP = 960, 200, 70
_ACROSS = (_WIDTH - 30) / 2 - _GAP - 30  # pixels of a panel
_APART = 54  # pixels from a bucket's name to the next one's
_MOST = 8  # obstacles


def figure(report: DynamicReport) -> Figure:
    page = Figure(_WIDTH)
    first, _, rest = report.headline.replace("`", "").partition("; ")
    y = headline(page, first, rest, f"{report.function}: {dimensions_text(report)}")
    for obstacle in obstacles(report)[:_MOST]:
        page.text(24, y + 14, cut_end(f"{obstacle.place}: {obstacle.reason}".replace("`", ""), 130), colour=ORANGE)
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
    page.height = y + (40 + _HEIGHT + 56 if plots else 30)
    return page


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
