"""A comparison as a chart: how many times as long as the baseline each takes, with the interval of that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from explorer.model.results.benchmark_comparison import Comparison, Ratio
from explorer.model.units import duration_text
from explorer.view.chart import Chart, Table, figure
from explorer.view.drawing import box, canvas, shortened
from explorer.view.interface import FigureView
from explorer.view.measure.showing import markup, small
from explorer.view.measure.strokes import BLUE, GREY, INK, ORANGE, circle, diamond, line, words, wrapped
from explorer.view.measure.timing_picture import machine_of, rows_of

__all__ = ["ComparisonView", "comparison_chart", "described", "picture", "tables"]

_WIDTH = 860
_LEFT, _RIGHT, _TOLD = 236, 580, 604  # of the axis, and where the words begin
_TOP, _ROW = 96, 34
_TICKS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_FINE = (0.8, 0.9, 0.95, 0.98, 1, 1.02, 1.05, 1.1, 1.2, 1.5)


class ComparisonView(FigureView[Comparison]):
    """The chart with its tables."""

    def title(self, value: Comparison) -> str:
        return f"comparison of {', '.join(value.samples)}"

    def description(self, value: Comparison) -> str:
        return described(value)

    def tables(self, value: Comparison) -> Sequence[Table]:
        return tables(value)

    def svg(self, value: Comparison) -> str:
        return picture(value)

    def chart(self, value: Comparison) -> Chart:
        return comparison_chart(value)


def comparison_chart(compared: Comparison) -> Chart:
    """The chart of a comparison.

    Raises:
        MissingPackageError: plotly is not installed.
    """
    return Chart(
        _figure(compared), "comparison", picture(compared), described(compared), tables(compared),
        f"Chart(comparison of {', '.join(compared.samples)})",
    )  # fmt: skip


def described(compared: Comparison) -> str:
    """The picture in words."""
    return ". ".join([compared.headline, *(f"{ratio.name}: {ratio}" for ratio in compared)])


def tables(compared: Comparison) -> list[Table]:
    """The figures of the chart."""
    head = ("name", "median", "interval", "fastest", "spread", "samples", "calls a sample")
    ratios = [
        (ratio.name, f"{ratio.ratio:.4g}", f"{ratio.low:.4g} … {ratio.high:.4g}", str(ratio)) for ratio in compared
    ]
    found = [
        Table("times", head, rows_of(compared.samples.items())),
        Table(f"ratios to {compared.baseline}", ("name", "ratio", "interval", "in words"), ratios),
    ]
    if compared.notes:
        found.append(Table("notes", ("what to know",), [(note,) for note in compared.notes]))
    return found


def picture(compared: Comparison) -> str:
    """The picture as SVG: a row for each name, on an axis of ratios, with a line where they are equal."""
    low, high = _span(compared)
    bottom = _TOP + _ROW * len(compared)

    def x(ratio: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * math.log(ratio / low) / math.log(high / low)

    notes = wrapped([f"note: {note}" for note in compared.notes], 128, 4)
    parts = [
        words(24, 34, shortened(compared.headline, 74), size=19, bold=True),
        words(24, 56, _heading(compared), size=12.5, fill=GREY),
        words(x(1) - 8, _TOP - 12, "← faster", size=11.5, fill=GREY, at="end"),
        words(x(1) + 8, _TOP - 12, "slower →", size=11.5, fill=GREY),
    ]
    for tick in _ticks(low, high):
        strong = tick == 1
        parts.append(
            line(x(tick), _TOP - 4, x(tick), bottom, INK if strong else GREY, opacity=0.75 if strong else 0.18)
        )
        parts.append(words(x(tick), bottom + 16, f"{tick:g}×", size=11, fill=GREY, at="middle"))
    for number, name in enumerate(compared.samples):
        parts += _row(compared, name, _TOP + _ROW * number + _ROW / 2, x)
    told = machine_of(compared.environment)
    parts.append(words(24, bottom + 40, told, size=11, fill=GREY))
    parts += [words(24, bottom + 62 + 17 * i, note, size=11.5, fill=GREY) for i, note in enumerate(notes)]
    return canvas(_WIDTH, bottom + 56 + 17 * len(notes) + (4 if notes else 0), parts)


def _row(compared: Comparison, name: str, y: float, x: Any) -> list[str]:
    took = duration_text(compared.samples[name].median)
    parts = [
        words(24, y + 4, shortened(name, 18), size=13, bold=True),
        words(_LEFT - 18, y + 4, took, size=12, fill=GREY, at="end"),
    ]
    if name == compared.baseline:
        return [*parts, diamond(x(1), y, 6, INK), words(_TOLD, y + 4, "the baseline", fill=GREY)]
    ratio = compared.ratios[name]
    colour = _colour(ratio)
    band = box(x(ratio.low), y - 6, max(x(ratio.high) - x(ratio.low), 2), 12, colour, 6, 0.25)
    mark = circle(x(ratio.ratio), y, 5, colour, hollow=ratio.is_same, opacity=1)
    return [*parts, band, mark, words(_TOLD, y + 4, str(ratio), fill=GREY if ratio.is_same else colour, bold=True)]


def _heading(compared: Comparison) -> str:
    of = f"{compared.signature}: " if compared.signature not in ("", "()") else ""
    return f"{shortened(of, 70)}times as long as {compared.baseline}, {compared.rounds:,} rounds in turns"


def _colour(ratio: Ratio) -> str:
    return GREY if ratio.is_same else BLUE if ratio.ratio < 1 else ORANGE


def _span(compared: Comparison) -> tuple[float, float]:
    """What the axis of ratios spans: all intervals, 1, and some room."""
    low = min((ratio.low for ratio in compared), default=1.0)
    high = max((ratio.high for ratio in compared), default=1.0)
    low, high = min(low, 1.0), max(high, 1.0)
    room = max((high / low) ** 0.08, 1.02)
    return low / room, high * room


def _ticks(low: float, high: float) -> list[float]:
    """1 and what is round around it; at most seven."""
    found = [tick for tick in (_FINE if high / low < 2 else _TICKS) if low <= tick <= high]
    while len(found) > 7:
        at = found.index(1)
        found = found[at % 2 :: 2]
    return found


def _figure(compared: Comparison) -> Any:
    made = figure()
    names = list(compared.samples)
    for ratio in compared:
        colour = _colour(ratio)
        made.add_scatter(
            name=ratio.name, mode="markers+text", x=[ratio.ratio], y=[markup(ratio.name)], cliponaxis=False,
            marker={"size": 12, "color": colour, "symbol": "circle-open" if ratio.is_same else "circle"},
            error_x={"array": [ratio.high - ratio.ratio], "arrayminus": [ratio.ratio - ratio.low], "color": colour,
                     "thickness": 4, "width": 0},
            customdata=[[str(ratio), duration_text(compared.samples[ratio.name].median)]],
            hovertemplate="%{y}: %{customdata[0]}<br>%{customdata[1]}<extra></extra>",
        )  # fmt: skip
        made.add_annotation(
            x=1.02, xref="paper", y=markup(ratio.name), text=f"<b>{markup(str(ratio))}</b>", xanchor="left",
            showarrow=False, font={"color": colour},
        )  # fmt: skip
    base = markup(compared.baseline)
    made.add_scatter(
        name=base, mode="markers", x=[1], y=[base], marker={"size": 12, "symbol": "diamond", "color": "#7a828d"},
        hovertemplate=f"the baseline: {duration_text(compared.samples[compared.baseline].median)}<extra></extra>",
    )  # fmt: skip
    made.add_annotation(x=1.02, xref="paper", y=base, text="the baseline", xanchor="left", showarrow=False)
    low, high = _span(compared)
    ticks = _ticks(low, high)
    notes = wrapped([f"note: {note}" for note in compared.notes], 120, 4)
    made.add_shape(type="line", x0=1, x1=1, y0=0, y1=1, yref="paper", line={"color": "#7a828d", "width": 1.5})
    made.update_layout(
        title={
            "text": f"<b>{markup(compared.headline)}</b><br>{small(markup(_heading(compared)))}", "x": 0,
            "xref": "paper", "xanchor": "left", "font": {"size": 17, "color": BLUE},
        },
        showlegend=False,
        height=150 + 36 * len(names) + 17 * len(notes),
        margin={"l": 12, "r": 270, "t": 84, "b": 44 + 17 * len(notes)},
    )  # fmt: skip
    rows = [f"<b>{markup(name)}</b>  {duration_text(compared.samples[name].median)} " for name in names]
    made.update_yaxes(
        categoryorder="array", categoryarray=[markup(name) for name in names][::-1], automargin=True, showgrid=False,
        tickvals=[markup(name) for name in names], ticktext=rows, range=[-0.6, len(names) - 0.4], fixedrange=True,
    )  # fmt: skip
    made.update_xaxes(
        type="log", range=[math.log10(low), math.log10(high)], gridcolor="rgba(128,128,128,.2)", zeroline=False,
        tickvals=ticks, ticktext=[f"{tick:g}×" for tick in ticks],
        minor={"showgrid": False},
    )  # fmt: skip
    for number, note in enumerate(notes):
        made.add_annotation(
            text=markup(note), x=0, y=0, xref="paper", yref="paper", xanchor="left", yanchor="top",
            yshift=-30 - 17 * number, showarrow=False, font={"size": 11},
        )  # fmt: skip
    return made
