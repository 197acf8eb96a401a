"""View of how an executable serves sizes that vary: page, figure, tables, and plots of time and padding by size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import prod
from typing import Any, NamedTuple

from explorer.analysis.padding_summary import (
    Obstacle,
    binary_rows,
    bucket_text,
    dimensions_text,
    facts,
    obstacles,
    size_rows,
    sizes_text,
    total_waste,
    waste_of,
)
from explorer.model.results.dynamic_report import DynamicReport, PaddedSizes
from explorer.model.text import cut_end
from explorer.model.units import count_text, duration_text, share_text
from explorer.view.chart import Table, html_table
from explorer.view.figure import BLUE, GREY, ORANGE, Bars, Figure, Label, Mark, Panel, Path, Points, headline
from explorer.view.findings.text_parts import code_html
from explorer.view.hotpath.html import fact, style
from explorer.view.interface import FigureView
from explorer.view.page import bundle
from explorer.view.scale import Scale, scale_of, without_crowding

_OPEN = 4  # unfolded obstacles
_MAX_ROWS = 200
_WISHES = {
    "auto": "pads where it is proven and worthwhile",
    "pad": "pads, or raises an error",
    "specialise": "a binary for each size",
}


__all__ = ["DynamicReportView", "content"]


class DynamicReportView(FigureView[DynamicReport]):
    """Verdict, obstacles to padding or its cost at each size, and the binaries."""

    def title(self, value: DynamicReport) -> str:
        return f"sizes of {value.function}"

    def html(self, value: DynamicReport) -> str:
        return fragment(value)

    def output(self, value: DynamicReport) -> dict[str, Any]:
        return {"text/html": fragment(value)}

    def figure(self, value: DynamicReport) -> Figure:
        return figure(value)

    def description(self, value: DynamicReport) -> str:
        return f"{value.function}: {value.headline}"

    def tables(self, value: DynamicReport) -> Sequence[Table]:
        return tables(value)


def fragment(report: DynamicReport) -> str:
    return (
        '<div class="explorer-hot explorer-padding" data-lm-suppress-shortcuts="true">'
        f"<style>{style()}</style>{content(report)}</div>"
        f'<script type="module">{bundle("hotpath")}</script>'
    )


def content(report: DynamicReport) -> str:
    blocking = obstacles(report)
    blocks = "".join(_obstacle(each, number < _OPEN) for number, each in enumerate(blocking))
    rows = "".join(fact(name, code_html(text)) for name, text in facts(report) if name != "can be")
    fact_rows = f'<div class="pd-facts">{rows}</div>' if rows else ""
    faults = "".join(f'<p class="xf-fault">{code_html(fault)}</p>' for fault in report.faults)
    shown = "".join(
        f'<div class="hp-rest">{html_table(each, is_open=number == 0)}</div>'
        for number, each in enumerate(tables(report))
    )
    drawn = f"{plots_html(report)}{grid_html(report)}"
    return f'{_head(report)}<div class="xf-list">{blocks}</div>{drawn}{fact_rows}{shown}{faults}'


def _head(report: DynamicReport) -> str:
    subtitle = [
        f"<code>{escape(report.function)}</code>",
        escape(dimensions_text(report)),
        f"dynamic=<code>{report.choice!r}</code>: {_WISHES[report.choice]}",
    ]
    what = "".join(f"<span>{part}</span>" for part in subtitle if part)
    headline = f'<p class="hp-headline">{code_html(report.headline)}</p>'
    return f'<div class="hp-head">{headline}<p class="hp-sub">{what}</p></div>'


def _obstacle(obstacle: Obstacle, is_open: bool) -> str:
    first = obstacle.first
    line = (
        f'<pre class="xf-line"><span class="xf-number">{first.line}</span> {escape(first.text)}</pre>'
        if first.text
        else ""
    )
    equations = f"<code>{escape(first.equation)}</code>" + (
        f" and {obstacle.count - 1:,} more of this line" if obstacle.count > 1 else ""
    )
    equation = fact("equation", equations) if first.equation else ""
    cure = fact("fix", code_html(first.hint), " xf-cure") if first.hint else ""
    place = f'<span class="hp-where" data-line="{first.line}">{escape(obstacle.place)}</span>' if obstacle.place else ""
    return (
        f'<details class="xf-one xf-warning"{" open" * is_open}><summary><span class="hp-state">'
        f'<b aria-hidden="true">✖</b> prevents it</span> <span class="xf-what">{code_html(obstacle.reason)}</span> '
        f'<span class="xf-place"><span class="pd-place">{escape(first.place)}</span></span></summary>'
        f'<div class="xf-body">{line}{equation}{cure}{fact("where", place) if place else ""}</div></details>'
    )


def tables(report: DynamicReport) -> list[Table]:
    result: list[Table] = []
    if report.binaries:
        result.append(_table("the binaries", binary_rows(report)))
    if report.sizes:
        title = f"{count_text(len(report.sizes), 'size')} that {'was' if len(report.sizes) == 1 else 'were'} padded"
        result.append(_table(title, size_rows(report, report.sizes)))
    return result


def _table(title: str, rows: Sequence[tuple[str, ...]]) -> Table:
    head, *body = rows
    left = len(body) - _MAX_ROWS
    return Table(title, head, body[:_MAX_ROWS], f"and {left:,} more: to_frame() has them" if left > 0 else "")


_ROOM, _LETTER = 300.0, 7.0  # pixels, of a plot's width and of a letter
_MAX_POINTS = 400  # more would overlap


@dataclass(frozen=True)
class Plot:
    title: str
    x: Scale
    y: Scale
    points: Sequence[PaddedSizes]
    values: Sequence[float]  # of each point
    hover: Sequence[str]


def elements(row: PaddedSizes) -> float:
    return float(prod(row.sizes.values()))


def across_title(report: DynamicReport) -> str:
    return " × ".join(name for name, (least, _, most) in report.dimensions.items() if least < most)


def bucket_places(report: DynamicReport) -> list[tuple[float, str]]:
    return [(float(prod(row.sizes.values())), bucket_text(row.sizes)) for row in report.binaries if row.is_padded]


def plots_of(report: DynamicReport) -> list[Plot]:
    rows = sorted(report.sizes, key=lambda row: -row.calls)[:_MAX_POINTS]
    if not rows:
        return []
    buckets = [at for at, _ in bucket_places(report)]
    scale = scale_of([*map(elements, rows), *buckets], "{:,.0f}".format, most=5)
    x = without_crowding(list(zip(scale.ticks, scale.texts, strict=True)), scale, _ROOM, _LETTER)
    what = total_waste(report)[1]
    took, waste = [row.median_seconds for row in rows], [waste_of(row, what) for row in rows]
    waited = {row.is_waited for row in rows}
    until = "until it returned" if True not in waited else "until its results were there"
    hover = [_hover(row, what) for row in rows]
    title = f"a call, median, {until}" + ", or it returned" * (len(waited) > 1)
    whole = Scale(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), ("0%", "25%", "50%", "75%", "100%"))
    return [
        Plot(title, x, scale_of(took, duration_text, most=5), rows, took, hover),
        Plot(f"padding, part of the {what}", x, whole, rows, waste, hover),
    ]


def _hover(row: PaddedSizes, what: str) -> str:
    until = "" if row.is_waited else " until it returned"
    return (
        f"{sizes_text(row.sizes)} in {bucket_text(row.bucket)}: {duration_text(row.median_seconds)}{until}, "
        f"{share_text(waste_of(row, what))} padding, {count_text(row.calls, 'call')}"
    )


def plots_html(report: DynamicReport) -> str:
    plots = plots_of(report)
    if not plots:
        return ""
    key = (
        f'<div class="hp-key"><span>across: {escape(across_title(report))}</span>'
        '<span><i class="hp-point hp-compiled"></i> one size</span>'
        '<span><i class="pd-line"></i> a bucket that is compiled</span></div>'
    )
    return f'<div class="pd-plots">{"".join(_plot(plot, report) for plot in plots)}</div>{key}'


def _plot(plot: Plot, report: DynamicReport) -> str:
    marks = [
        *(f'<i class="hp-tick" style="bottom:{plot.y.at(tick, 0, 100):.1f}%"><b>{text}</b></i>'
          for tick, text in zip(plot.y.ticks, plot.y.texts, strict=True)),
        *(f'<i class="pd-x" style="left:{plot.x.at(tick, 0, 100):.1f}%">{text}</i>'
          for tick, text in zip(plot.x.ticks, plot.x.texts, strict=True)),
        *(f'<i class="pd-bucket" style="left:{plot.x.at(at, 0, 100):.1f}%" title="bucket {escape(text)}"></i>'
          for at, text in bucket_places(report)),
        *(f'<i class="hp-point hp-compiled" style="left:{plot.x.at(elements(row), 0, 100):.1f}%;'
          f'bottom:{plot.y.at(value, 0, 100):.1f}%" title="{escape(hover)}"></i>'
          for row, value, hover in zip(plot.points, plot.values, plot.hover, strict=True)),
    ]  # fmt: skip
    title = escape(plot.title)
    label = escape(f"{plot.title}, of {count_text(len(plot.points), 'size')}; the table below has them")
    return (
        f'<div class="pd-plot"><p>{title}</p><div class="hp-plot" role="img" aria-label="{label}">'
        f"{''.join(marks)}</div></div>"
    )


_CELLS = 32  # along a dimension; with more sizes, several share a cell
_HIGH, _LINE = 150.0, 7.0  # pixels, of the grid's height and of half a line
LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Cell:
    """Cell of the grid, in data coordinates, with the padded share of its calls."""

    left: float
    right: float
    low: float
    high: float
    waste: float
    hover: str

    @property
    def level(self) -> float:
        return min(LEVELS, key=lambda level: abs(level - self.waste))


@dataclass(frozen=True)
class Grid:
    """Grid of the sizes of two dimensions; a size extends half a unit to both sides."""

    across: str  # name of the horizontal dimension
    upwards: str
    x: Scale
    y: Scale
    cells: Sequence[Cell]
    buckets: Sequence[tuple[float, float, str]]  # of each padded binary: (right, high, text)
    what: str  # unit of the padded share: FLOPs or bytes

    @property
    def title(self) -> str:
        return f"padding by {self.across} and {self.upwards}, part of the {self.what}"


def grid_of(report: DynamicReport) -> Grid | None:
    """Return the grid; None unless exactly two dimensions vary and a call was padded."""
    ranges = [(name, least, most) for name, (least, _, most) in report.dimensions.items() if least < most]
    # A size of 0 has its own binary and is never padded.
    varying = [_Dimension(name, max(1, least), most) for name, least, most in ranges]
    if len(varying) != 2 or not report.sizes:
        return None
    across, upwards = varying
    what, rungs = total_waste(report)[1], report.buckets or {}
    buckets = [
        (binary.sizes[across.name] + 0.5, binary.sizes[upwards.name] + 0.5, bucket_text(binary.sizes))
        for binary in report.binaries
        if binary.is_padded
    ]
    x = _scale(across, rungs.get(across.name, ()), _ROOM, _LETTER)
    y = _scale(upwards, rungs.get(upwards.name, ()), _HIGH, _LINE)
    cells = _cells(report.sizes, across, upwards, what)
    return Grid(across.name, upwards.name, x, y, cells, buckets, what)


class _Dimension(NamedTuple):
    name: str
    least: int
    most: int

    @property
    def step(self) -> int:
        return -(-(self.most - self.least + 1) // _CELLS)


def _scale(its: _Dimension, rungs: Sequence[int], room: float, letter: float) -> Scale:
    ticks = sorted({its.least, *(rung for rung in rungs if its.least < rung < its.most), its.most})
    # Half a size to each side: a cell is centered at its size.
    scale = Scale(its.least - 0.5, its.most + 0.5, (), ())
    return without_crowding([(float(tick), f"{tick:,}") for tick in ticks], scale, room, letter)


def _cells(rows: Sequence[PaddedSizes], x: _Dimension, y: _Dimension, what: str) -> list[Cell]:
    together: dict[tuple[int, int], list[PaddedSizes]] = {}
    for row in rows:
        place = (row.sizes[x.name] - x.least) // x.step, (row.sizes[y.name] - y.least) // y.step
        together.setdefault(place, []).append(row)
    cells: list[Cell] = []
    for (column, line), members in sorted(together.items()):
        left, low = x.least + column * x.step - 0.5, y.least + line * y.step - 0.5
        right, high = min(left + x.step, x.most + 0.5), min(low + y.step, y.most + 0.5)
        calls = sum(row.calls for row in members)
        waste = sum(row.calls * waste_of(row, what) for row in members) / max(calls, 1)
        first, others = members[0], f" and {count_text(len(members) - 1, 'size')} near it" * (len(members) > 1)
        text = f"{sizes_text(first.sizes)}{others}: {share_text(waste)} padding, {count_text(calls, 'call')}"
        cells.append(Cell(left, right, low, high, waste, text))
    return cells


def grid_html(report: DynamicReport) -> str:
    grid = grid_of(report)
    if grid is None:
        return ""
    marks = [
        *(f'<i class="hp-tick pd-bare" style="bottom:{grid.y.at(tick, 0, 100):.1f}%"><b>{text}</b></i>'
          for tick, text in zip(grid.y.ticks, grid.y.texts, strict=True)),
        *(f'<i class="pd-x" style="left:{grid.x.at(tick, 0, 100):.1f}%">{text}</i>'
          for tick, text in zip(grid.x.ticks, grid.x.texts, strict=True)),
        *(_cell(cell, grid) for cell in grid.cells),
        *(f'<i class="pd-border" style="width:{grid.x.at(right, 0, 100):.1f}%;height:{grid.y.at(high, 0, 100):.1f}%"'
          f' title="bucket {escape(text)}"></i>' for right, high, text in grid.buckets),
    ]  # fmt: skip
    label = escape(f"{grid.title}, of {count_text(len(report.sizes), 'size')}; the table below has them")
    swatch = '<span><i class="pd-cell" style="--pd-waste:{0}"></i> {0}</span>'
    levels = "".join(swatch.format(f"{level:.0%}") for level in LEVELS)
    axes = f"<span>across: {escape(grid.across)}, upwards: {escape(grid.upwards)}</span>"
    key = f'{axes}{levels}<span><i class="pd-box"></i> a bucket that is compiled</span>'
    return (
        f'<div class="pd-plot pd-grid"><p>{escape(grid.title)}</p><div class="hp-plot" role="img" aria-label="{label}">'
        f'{"".join(marks)}</div><div class="hp-key">{key}</div></div>'
    )


def _cell(cell: Cell, grid: Grid) -> str:
    left, right = (grid.x.at(at, 0, 100) for at in (cell.left, cell.right))
    low, high = (grid.y.at(at, 0, 100) for at in (cell.low, cell.high))
    return (
        f'<i class="pd-cell" style="left:{left:.2f}%;bottom:{low:.2f}%;width:{right - left:.2f}%;'
        f'height:{high - low:.2f}%;--pd-waste:{cell.waste:.0%}" title="{escape(cell.hover)}"></i>'
    )


_WIDTH, _HEIGHT, _GAP = 960, 200, 70
_ACROSS = (_WIDTH - 30) / 2 - _GAP - 30  # pixels of a panel
_APART = 54  # least pixels between names of buckets
_MAX_OBSTACLES = 8


def figure(report: DynamicReport) -> Figure:
    page = Figure(_WIDTH)
    first, _, rest = report.headline.partition("; ")
    y = headline(page, first, rest, f"{report.function}: {dimensions_text(report)}")
    for obstacle in obstacles(report)[:_MAX_OBSTACLES]:
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
