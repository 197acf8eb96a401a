"""A timing as a chart: the warm-up curve, the steady samples with their interval, the steps of the first call."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import log10
from typing import Any

from explorer.model.results.timing import STEPS, Samples, Timing
from explorer.model.units import duration_text, range_text
from explorer.view.chart import Chart, Table, figure
from explorer.view.interface import FigureView
from explorer.view.measure.showing import markup, small
from explorer.view.measure.strokes import BLUE, FIRST, ORANGE, log_ticks, wrapped
from explorer.view.measure.timing_picture import (
    STEP_COLOURS,
    curve,
    described,
    heading,
    histogram,
    picture,
    result,
    rows_of,
    samples_text,
    sure_text,
)

__all__ = ["TimingView", "tables", "timing_chart"]

HEAD = ("what", "median", "interval", "fastest", "spread", "samples", "calls a sample")
_GRID = "rgba(128,128,128,.2)"


class TimingView(FigureView[Timing]):
    """The chart with its tables."""

    def title(self, value: Timing) -> str:
        return f"timing of {value.function}"

    def description(self, value: Timing) -> str:
        return described(value)

    def tables(self, value: Timing) -> Sequence[Table]:
        return tables(value)

    def svg(self, value: Timing) -> str:
        return picture(value)

    def chart(self, value: Timing) -> Chart:
        return timing_chart(value)


def timing_chart(timing: Timing) -> Chart:
    """The chart of a timing.

    Raises:
        MissingPackageError: plotly is not installed.
    """
    return Chart(
        _figure(timing), f"{timing.function}: timing", picture(timing), described(timing), tables(timing),
        f"Chart(timing of {timing.function})",
    )  # fmt: skip


def tables(timing: Timing) -> list[Table]:
    """The figures of the chart."""
    figures: list[tuple[str, Samples]] = [("steady", timing.steady)]
    if timing.eager is not None:
        figures.append(("eager", timing.eager))
    stages = [(step, duration_text(timing.stages[step])) for step in STEPS if step in timing.stages]
    stages.append(("first call", duration_text(timing.first_call.median)))
    found = [
        Table("calls", HEAD, rows_of(figures)),
        Table("the first call, step by step", ("step", "time"), stages),
    ]
    if timing.notes:
        found.append(Table("notes", ("what to know",), [(note,) for note in timing.notes]))
    return found


def _figure(timing: Timing) -> Any:
    made = figure()
    _curve(made, timing)
    _samples(made, timing.steady)
    _stages(made, timing)
    notes = wrapped([f"note: {note}" for note in timing.notes], 120, 4)
    made.update_layout(
        title={
            "text": f"<b>{markup(result(timing))}</b><br>{small(markup(heading(timing)))}",
            "x": 0, "xanchor": "left", "xref": "paper", "font": {"size": 19, "color": BLUE}, "yref": "container",
            "y": 0.955, "yanchor": "top",
        },
        height=420 + 17 * len(notes),
        margin={"l": 64, "r": 16, "t": 84, "b": 44 + 17 * len(notes)},
        showlegend=False,
        barmode="stack",
        bargap=0.06,
    )  # fmt: skip
    for number, note in enumerate(notes):
        made.add_annotation(
            text=markup(note), x=0, y=0, xref="paper", yref="paper", xanchor="left", yanchor="top",
            yshift=-18 - 17 * number, showarrow=False, font={"size": 11},
        )  # fmt: skip
    return made


def _curve(made: Any, timing: Timing) -> None:
    eager, compiled = curve(timing)
    first = len(eager) + 1
    if timing.eager is not None:
        made.add_scatter(
            name="eager", mode="markers", x=list(range(len(eager))), y=eager, customdata=_named(eager),
            marker={"symbol": "circle-open", "size": 8, "color": ORANGE, "line": {"width": 2}},
            hovertemplate="eager call %{x}: %{customdata}<extra></extra>",
        )  # fmt: skip
    made.add_scatter(
        name="first call", mode="markers+text", x=[first], y=compiled[:1], customdata=_named(compiled[:1]),
        text=[f"  first call {duration_text(compiled[0])}"], textposition="middle right",
        textfont={"color": FIRST, "size": 12}, marker={"symbol": "diamond", "size": 13, "color": FIRST},
        hovertemplate="first call: %{customdata}<extra></extra>",
    )  # fmt: skip
    at = [first + 1 + i for i in range(len(compiled) - 1)]
    made.add_scatter(
        name="compiled", mode="markers", x=at, y=compiled[1:], customdata=_named(compiled[1:]),
        marker={"size": 8, "color": BLUE}, hovertemplate="compiled call: %{customdata}<extra></extra>",
    )  # fmt: skip
    last = first + len(compiled) + 0.3
    low, high = min(*eager, *compiled, timing.steady.median) / 1.4, max(*eager, *compiled, 0.0) * 1.6
    made.add_shape(
        type="line", x0=first, x1=first, y0=low, y1=compiled[0], line={"color": FIRST, "width": 1}, opacity=0.6
    )
    for samples, start, colour, dash in (
        (timing.eager, -0.5, ORANGE, "dash"),
        (timing.steady, first + 0.5, BLUE, "solid"),
    ):
        if samples is not None:
            made.add_scatter(
                mode="lines+text", x=[start, last], y=[samples.median] * 2, hoverinfo="skip",
                line={"color": colour, "width": 1.5, "dash": dash}, text=["", f" {duration_text(samples.median)}"],
                textposition="middle right", textfont={"color": colour, "size": 12}, cliponaxis=False,
            )  # fmt: skip
    ticks = log_ticks(low, high)
    made.update_layout(
        xaxis={
            "domain": [0, 0.56], "range": [-1, last + 0.3], "showgrid": False, "zeroline": False, "anchor": "y",
            "tickvals": [len(eager) / 2 - 0.5, first + len(compiled) / 2][0 if eager else 1 :], "tickangle": 0,
            "ticktext": ["eager calls", "compiled calls"][0 if eager else 1 :],
        },
        yaxis={
            "type": "log", "domain": [0.32, 1], "gridcolor": _GRID, "range": _logs(low, high), "anchor": "x",
            "tickvals": [at for at, _ in ticks], "ticktext": [name for _, name in ticks], "minor": {"showgrid": False},
        },
    )  # fmt: skip


def _samples(made: Any, steady: Samples) -> None:
    counts, borders, beyond = histogram(steady)
    middles = [(a + b) / 2 for a, b in pairwise(borders)]
    made.add_bar(
        x=middles, y=counts, xaxis="x2", yaxis="y2", marker={"color": BLUE}, name="samples",
        customdata=[range_text(a, b) for a, b in pairwise(borders)],
        hovertemplate="%{y} samples of %{customdata}<extra></extra>",
    )  # fmt: skip
    made.add_shape(
        type="rect", xref="x2", yref="y2 domain", x0=steady.low, x1=steady.high, y0=0, y1=1, fillcolor=BLUE,
        opacity=0.22, line={"width": 0},
    )  # fmt: skip
    made.add_shape(
        type="line", xref="x2", yref="y2 domain", x0=steady.median, x1=steady.median, y0=0, y1=1,
        line={"width": 2, "color": ORANGE},
    )  # fmt: skip
    made.add_annotation(
        text=f"<b>{samples_text(steady)}</b><br>{sure_text(steady)}",
        xref="paper", yref="paper", x=1, y=1.0, xanchor="right", yanchor="bottom", align="right", showarrow=False,
    )  # fmt: skip
    low, high = borders[0], borders[-1]
    made.update_layout(
        xaxis2={
            "domain": [0.68, 1], "anchor": "y2", "showgrid": False, "zeroline": False, "range": [low, high],
            "tickvals": [low + 0.07 * (high - low), high - 0.12 * (high - low)], "tickangle": 0,
            "ticklabeloverflow": "allow",
            "ticktext": [duration_text(low), duration_text(high) + (f" (+{beyond})" if beyond else "")],
        },
        yaxis2={"domain": [0.32, 0.97], "anchor": "x2", "visible": False},
    )  # fmt: skip


def _stages(made: Any, timing: Timing) -> None:
    whole = sum(timing.stages.values()) or 1.0
    base = 0.0
    told: list[str] = []
    for step, seconds in ((step, timing.stages[step]) for step in STEPS if step in timing.stages):
        took = duration_text(seconds)
        made.add_bar(
            x=[seconds], base=base, y=[0], xaxis="x3", yaxis="y3", orientation="h", name=step, width=0.8,
            marker={"color": STEP_COLOURS[step]}, customdata=[took], hovertemplate=f"{step}: {took}<extra></extra>",
        )  # fmt: skip
        told.append(f"<span style='color:{STEP_COLOURS[step]}'>■</span> {step} {took}")
        base += seconds
    made.add_annotation(
        text=f"<b>first call {duration_text(timing.first_call.median)}</b>   {'   '.join(told)}",
        xref="paper", yref="paper", x=0, y=0.125, xanchor="left", yanchor="bottom", showarrow=False,
    )  # fmt: skip
    made.update_layout(
        xaxis3={"domain": [0, 1], "anchor": "y3", "visible": False, "range": [0, whole]},
        yaxis3={"domain": [0, 0.12], "anchor": "x3", "visible": False, "range": [-0.5, 0.5]},
    )


def _named(seconds: list[float]) -> list[str]:
    return [duration_text(one) for one in seconds]


def _logs(low: float, high: float) -> list[float]:
    return [log10(low), log10(high)]
