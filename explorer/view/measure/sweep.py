"""Sweeps as figures: a panel for each figure against a number, or a row of bars for each kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite

from explorer.analysis.measure_summary import growths, is_power
from explorer.model.results.sweep import FIGURES, Series, Sweep, SweepRow, size_text
from explorer.model.text import cut_end
from explorer.model.units import duration_text
from explorer.view.chart import Table
from explorer.view.figure import (
    COLOURS,
    GREY,
    INK,
    ORANGE,
    Bars,
    Figure,
    Label,
    Mark,
    Panel,
    Path,
    Points,
    machine_text,
    series_style,
)
from explorer.view.figure import headline as add_headline
from explorer.view.interface import FigureView
from explorer.view.scale import Scale, rows_scale, scale_of, without_crowding

_WIDTH = 960
_LETTER, _BOLD = 6.6, 7.6  # pixels at 12
_TOP, _HEIGHT, _GAP = 34, 196, 66  # pixels of a panel's title, of its plot, and left of each
_ROW, _MOST = 26, 40  # pixels of a row of bars, and how many there are at most


@dataclass(frozen=True)
class Measure:
    """One figure of a sweep.

    Args:
        name: Property of a row.
        title: Its title.
        growth: `as n^2.9`; empty if unknown.
        scale: Scale of its values.
        text: Formats a value.
    """

    name: str
    title: str
    growth: str
    scale: Scale
    text: Callable[[float], str]

    def values(self, row: SweepRow) -> list[float]:
        """Return the figure's value in a row, and for time the ends of its interval; empty if unknown."""
        value = getattr(row, self.name)
        if not isfinite(value):
            return []
        return [value, row.steady.low, row.steady.high] if self.name == "seconds" and row.steady else [value]


class SweepView(FigureView[Sweep]):
    """Lines for numbers, bars for kinds."""

    def title(self, value: Sweep) -> str:
        return f"sweep of {value.function}"

    def chart_text(self, value: Sweep) -> str:
        return f"sweep: {_over(value)}, {len(value.rows):,} points"

    def description(self, value: Sweep) -> str:
        return f"{_over(value)}: {value.headline}"

    def tables(self, value: Sweep) -> Sequence[Table]:
        head, *rows = value.table()
        if any(len(row) > len(head) for row in rows):
            head = (*head, "error")
        keep = [i for i, name in enumerate(head) if name]  # bars are for terminals
        cells = [[row[i] if i < len(row) else "" for i in keep] for row in rows]
        title = f"{value.function}: {len(value.rows):,} points as a table"
        return [Table(title, [head[i] for i in keep], cells, " · ".join(value.notes))]

    def figure(self, value: Sweep) -> Figure:
        page = Figure(_WIDTH)
        first, _, rest = value.headline.partition("; ")
        colour = ORANGE if len(value.failed) == len(value.rows) else INK
        y = add_headline(page, first, rest, _subtitle(value), colour) - 10
        is_line = value.axes[value.over].numbers is not None
        has_points = any(isfinite(row.compile_seconds) for row in value.rows)
        page.height = (_panels if is_line and has_points else _bars)(page, value, y)
        return page


def _over(sweep: Sweep) -> str:
    return f"{sweep.function} over {', '.join(axis.name for axis in sweep.axes)}"


def _subtitle(sweep: Sweep) -> str:
    """Return `step over batch, dtype: 12 points · cpu · jax 0.10.2`."""
    where = machine_text(sweep.environment)
    names = ", ".join(axis.title for axis in sweep.axes)
    return f"{sweep.function} over {names}: {len(sweep.rows):,} points" + f" · {where}" * bool(where)


def measures(sweep: Sweep) -> list[Measure]:
    """Return those figures (`FIGURES`) that a row of the sweep has a value for."""
    result: list[Measure] = []
    for name, title in FIGURES:
        text = size_text if name == "peak" else duration_text
        measure = Measure(name, title, _growth(sweep, name), Scale(0.0, 1.0, (), ()), text)
        values = [value for row in sweep.rows for value in measure.values(row)]
        if values:
            result.append(Measure(name, title, measure.growth, scale_of(values, text, most=5), text))
    return result


def _growth(sweep: Sweep, name: str) -> str:
    """Return the growth as text, such as `as n^2.0 … 2.9`; empty unless all series fit a power well."""
    exponents = [growth for _, growth in growths(sweep, name)]
    good = [growth for growth in exponents if growth is not None and is_power(growth) and growth.spread > 1.5]
    if not good or len(good) < len(exponents):
        return ""
    axis, powers = sweep.axes[sweep.over].name, sorted({f"{growth.power:.1f}" for growth in good}, key=float)
    return f"as {axis}^{powers[0]}" + f" … {powers[-1]}" * (len(powers) > 1)


def swept_scale(sweep: Sweep, room: float = 230) -> Scale:
    """Return the scale of the swept numbers, with ticks for as many as fit in `room` pixels."""
    axis = sweep.axes[sweep.over]
    numbers = axis.numbers or tuple(map(float, range(len(axis))))
    texts = [f"{number:,.0f}" for number in numbers] if axis.unit else [cut_end(name, 14) for name in axis.labels]
    ticks = sorted(zip(numbers, texts, strict=True))
    return without_crowding(ticks, scale_of(numbers, "{:g}".format, marked=ticks), room, _LETTER)


def _panels(page: Figure, sweep: Sweep, y: float) -> float:
    series, measured, across = sweep.series, measures(sweep), swept_scale(sweep)
    if len(series) > 1:
        y = _key(page, series, y + 14)
    width = (_WIDTH - 40) / max(len(measured), 2) - _GAP
    top, bottom = y + _TOP, y + _TOP + _HEIGHT
    for number, measure in enumerate(measured):
        left = 20 + _GAP + number * (width + _GAP)
        page.text(left - _GAP + 4, top - 14, measure.title, size=13.0, bold=True)
        page.text(left - _GAP + 4 + 9 * (len(measure.title) + 1), top - 14, measure.growth, colour=GREY)
        marks = [mark for i, one in enumerate(series) for mark in _line(sweep, measure, across, one, i)]
        title = sweep.axes[sweep.over].title
        page.panels.append(Panel(left, left + width, top, bottom, across, measure.scale, marks, title))
    y = bottom + 60
    for row in sweep.failed[:3]:
        page.text(24, y, cut_end(f"× {sweep.label(row)}: {row.error}", 118), colour=ORANGE, bold=True)
        y += 18
    return y + 2


def _key(page: Figure, series: Sequence[Series], y: float) -> float:
    x = 24.0
    for number, one in enumerate(series):
        name, (symbol, colour) = cut_end(one.label, 48), series_style(number)
        if x + 24 + _LETTER * len(name) > _WIDTH - 24:
            x, y = 24.0, y + 20
        page.page.append(Points([x + 6], [y + 4], colour, symbol, 5))
        page.text(x + 17, y + 8, name)
        x += 36 + _LETTER * len(name)
    return y + 12


def _line(sweep: Sweep, measure: Measure, across: Scale, series: Series, number: int) -> list[Mark]:
    """Return the marks of a series: a line through its points, intervals, and crosses for failures."""
    symbol, colour = series_style(number)
    measured = [(_swept(sweep, row), row, values) for row in series.rows if (values := measure.values(row))]
    xs, ys = [x for x, _, _ in measured], [values[0] for _, _, values in measured]
    hover = [_hover(sweep, measure, row, values) for _, row, values in measured]
    marks: list[Mark] = [Path([x, x], ends, colour, 5, opacity=0.3) for x, _, (_, *ends) in measured if ends]
    if len(measured) > 1:
        marks.append(Path(xs, ys, colour, 1.8, opacity=0.75))
    marks.append(Points(xs, ys, colour, symbol, hover=hover))
    marks.append(_failures(sweep, measure, series))
    return marks


def _failures(sweep: Sweep, measure: Measure, series: Series) -> Points:
    """Return a cross at the bottom of the panel of times for each point that failed."""
    rows = [row for row in series.rows if row.error and measure.name == "seconds"]
    errors = [f"failed at {sweep.label(row)}: {row.error}" for row in rows]
    xs = [_swept(sweep, row) for row in rows]
    return Points(xs, [measure.scale.low] * len(rows), ORANGE, "x", 5, hover=errors)


def _swept(sweep: Sweep, row: SweepRow) -> float:
    """Return the swept number of a row."""
    return (sweep.axes[sweep.over].numbers or ())[row.at[sweep.over]]


def _hover(sweep: Sweep, measure: Measure, row: SweepRow, values: Sequence[float]) -> str:
    return f"{sweep.label(row)}\n{measure.title} {measure.text(values[0])}"


def _bars(page: Figure, sweep: Sweep, y: float) -> float:
    """Draw a row for each combination, with bars for its figures; return the y where that ends."""
    rows = [row for series in sweep.series for row in series.rows]
    drawn, figures = rows[:_MOST], measures(sweep)
    names = [cut_end(_kind(sweep, row), 44) for row in drawn]
    left = 24 + min(max(map(len, names), default=0) * 7.2 + 24, 330)
    width = (_WIDTH - 24 - left) / max(len(figures), 1)
    top = y + 34
    for number, (name, row) in enumerate(zip(names, drawn, strict=True)):
        page.text(24, top + _ROW * number + 16, name, size=12.5)
        if row.error:
            error = cut_end(row.error, int((_WIDTH - 24 - left) / _BOLD))
            page.text(left, top + _ROW * number + 16, error, colour=ORANGE, bold=True)
    bottom = top + _ROW * len(drawn)
    for number, measure in enumerate(figures):
        x = left + number * width
        page.text(x, top - 8, measure.title, size=13.0, bold=True)
        across = Scale(0.0, _greatest(measure, rows), (), ())
        if across.high > 0:
            marks, down = _bar_marks(sweep, measure, drawn), rows_scale(len(drawn))
            page.panels.append(Panel(x, x + min(width - 90, 220), top, bottom, across, down, marks, grid=""))
    if len(rows) > _MOST:
        page.text(24, bottom + 16, f"and {len(rows) - _MOST:,} more, in the table", colour=GREY)
        bottom += _ROW
    return bottom + 16


def _greatest(measure: Measure, rows: Sequence[SweepRow]) -> float:
    return max(value for row in rows for value in measure.values(row))


def _kind(sweep: Sweep, row: SweepRow) -> str:
    """Return a row's name from its values on the axes that have several, or on all axes if none has."""
    several = [(axis, at) for axis, at in zip(sweep.axes, row.at, strict=True) if len(axis) > 1]
    return ", ".join(axis.named(at) for axis, at in several or zip(sweep.axes, row.at, strict=True))


def _bar_marks(sweep: Sweep, measure: Measure, rows: Sequence[SweepRow]) -> list[Mark]:
    """Return a bar for each row that did not fail, with its interval and its value."""
    is_time = measure.name == "seconds"
    colour = INK if is_time else GREY
    bars = [(i + 0.5, row, values) for i, row in enumerate(rows) if (values := measure.values(row)) and not row.error]
    boxes = [(0.0, values[0], at - 0.31, at + 0.31) for at, _, values in bars]
    hover = [_hover(sweep, measure, row, values) for _, row, values in bars]
    marks: list[Mark] = [Bars(boxes, *((COLOURS[0], 1) if is_time else (GREY, 0.45)), hover)]
    for at, _, (value, *ends) in bars:
        if ends:
            marks.append(Path(ends, [at, at], INK, 1.5))
        marks.append(Label(max([value, *ends]), at, measure.text(value), colour, bold=is_time, dx=7, dy=4))
    return marks
