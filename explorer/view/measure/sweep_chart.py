"""A sweep as a plotly chart; its picture and table stand where no script runs."""

from __future__ import annotations

import textwrap
from math import isfinite
from typing import Any

from explorer.model.results.sweep import Series, Sweep, SweepRow
from explorer.view.chart import Chart, figure
from explorer.view.measure.axes import COLOURS, Scale, marker_of
from explorer.view.measure.showing import markup, small
from explorer.view.measure.sweep_picture import (
    Panel,
    clauses,
    described,
    kind,
    panels,
    picture,
    subtitle,
    tables,
    x_scale,
)  # fmt: skip

__all__ = ["sweep_chart"]

_GRID = "rgba(128,128,128,.2)"


def sweep_chart(sweep: Sweep) -> Chart:
    """The chart of a sweep: lines over numbers, bars of kinds.

    Raises:
        MissingPackageError: plotly is not installed.
    """
    made = figure()
    shown, is_kinds = panels(sweep), sweep.axes[sweep.over].numbers is None
    first, rest = clauses(sweep.headline)
    told = [*textwrap.wrap(rest, 124)[:2], subtitle(sweep)]
    for number, panel in enumerate(shown):
        (_bars if is_kinds else _lines)(made, sweep, panel, number, len(shown))
        _title(made, panel, number, len(shown))
    names = ", ".join(axis.name for axis in sweep.axes)
    has_key = len(sweep.series) > 1 and not is_kinds
    top = 84 + 18 * len(told) + 26 * has_key
    height = top + (60 + 30 * len(sweep.rows) if is_kinds else 290 if shown else 0)
    title = f"<b>{markup(shorter(first))}</b><br>{small('<br>'.join(map(markup, told)))}"
    made.update_layout(
        title={"text": title, "x": 0.012, "xref": "container", "xanchor": "left", "yref": "container",
               "y": 1 - 14 / height, "yanchor": "top", "font": {"size": 17, "color": COLOURS[0]}},
        height=height,
        margin={"l": 64, "r": 16, "t": top, "b": 50},
        showlegend=has_key,
        legend={"orientation": "h", "x": -0.05, "xanchor": "left", "yanchor": "bottom", "yref": "paper",
                "y": 1 + 30 / 240, "traceorder": "normal"},
        **({} if shown else {"xaxis": {"visible": False}, "yaxis": {"visible": False}}),
    )  # fmt: skip
    text = f"Chart(sweep: {sweep.function} over {names}, {len(sweep.rows):,} points)"
    return Chart(made, f"sweep of {sweep.function}", picture(sweep), described(sweep), tables(sweep), text)


def shorter(text: str) -> str:
    """A title that fits: the table and the text have all of it."""
    return textwrap.shorten(text, 100, placeholder=" …")


def _lines(made: Any, sweep: Sweep, panel: Panel, at: int, count: int) -> None:
    for number, series in enumerate(sweep.series):
        _trace(made, sweep, panel, series, number, at)
    if panel.figure == "seconds" and sweep.failed:
        numbers = sweep.axes[sweep.over].numbers or ()
        made.add_scatter(
            x=[numbers[row.at[sweep.over]] for row in sweep.failed], y=[panel.scale.low] * len(sweep.failed),
            mode="markers", marker={"symbol": "x", "size": 9, "color": COLOURS[1]}, showlegend=False, cliponaxis=False,
            customdata=[[markup(f"{sweep.label(row)}: {row.error}")] for row in sweep.failed],
            hovertemplate="failed at %{customdata[0]}<extra></extra>",
        )  # fmt: skip
    scale: Scale = x_scale(sweep)
    made.update_layout(
        {
            f"xaxis{_axis(at)}": {**scale.plotly, "domain": _domain(at, count), "anchor": f"y{_axis(at)}",
                                  "title": {"text": markup(sweep.axes[sweep.over].title), "font": {"size": 12}},
                                  "showgrid": False, "zeroline": False, "ticks": "outside", "ticklen": 4,
                                  "minor": {"showgrid": False}},
            f"yaxis{_axis(at)}": {**panel.scale.plotly, "anchor": f"x{_axis(at)}", "gridcolor": _GRID,
                                  "zeroline": False, "minor": {"showgrid": False}},
        }
    )  # fmt: skip


def _trace(made: Any, sweep: Sweep, panel: Panel, series: Series, number: int, at: int) -> None:
    rows = [row for row in series.rows if isfinite(getattr(row, panel.figure))]
    numbers = sweep.axes[sweep.over].numbers or ()
    symbol, colour = marker_of(number)
    made.add_scatter(
        x=[numbers[row.at[sweep.over]] for row in rows],
        y=[getattr(row, panel.figure) for row in rows],
        mode="lines+markers",
        name=markup(series.label) or sweep.function,
        legendgroup=str(number),
        showlegend=at == 0,
        xaxis=f"x{_axis(at)}",
        yaxis=f"y{_axis(at)}",
        line={"color": colour, "width": 1.8},
        marker={"color": colour, "symbol": symbol, "size": 8},
        error_y=_interval(rows) if panel.figure == "seconds" else None,
        customdata=[[markup(sweep.label(row)), panel.text(getattr(row, panel.figure))] for row in rows],
        hovertemplate=f"%{{customdata[0]}}<br>{panel.title} %{{customdata[1]}}<extra></extra>",
    )


def _bars(made: Any, sweep: Sweep, panel: Panel, at: int, count: int) -> None:
    """Kinds: a row for each combination; where one failed there is no bar, and the reason on hover."""
    rows = [row for series in sweep.series for row in series.rows]
    names = [markup(kind(sweep, row)) for row in rows]
    strong = panel.figure == "seconds"
    there = [(name, row) for name, row in zip(names, rows, strict=True) if isfinite(getattr(row, panel.figure))]
    made.add_bar(
        orientation="h",
        x=[getattr(row, panel.figure) for _, row in there],
        y=[name for name, _ in there],
        xaxis=f"x{_axis(at)}",
        yaxis=f"y{_axis(at)}",
        marker={"color": COLOURS[0] if strong else "#7a828d", "opacity": 1 if strong else 0.45},
        error_x=_interval([row for _, row in there]) if strong else None,
        text=[f" {panel.text(getattr(row, panel.figure))}" for _, row in there],
        textposition="outside",
        cliponaxis=False,
        customdata=[[markup(sweep.label(row)), panel.text(getattr(row, panel.figure))] for _, row in there],
        hovertemplate=f"%{{customdata[0]}}<br>{panel.title} %{{customdata[1]}}<extra></extra>",
    )
    most = max((getattr(row, panel.figure) for _, row in there), default=1.0)
    made.update_layout(
        {
            f"xaxis{_axis(at)}": {"domain": _domain(at, count), "anchor": f"y{_axis(at)}", "visible": False,
                                  "range": [0, 1.45 * most]},
            f"yaxis{_axis(at)}": {"categoryorder": "array", "categoryarray": names[::-1], "automargin": True,
                                  "anchor": f"x{_axis(at)}", "showgrid": False, "zeroline": False,
                                  "showticklabels": at == 0, "range": [-0.6, len(names) - 0.4], "fixedrange": True},
        }
    )  # fmt: skip
    for row, name in zip(rows, names, strict=True):
        if row.error and at == 0:
            made.add_annotation(
                x=0, xref="x", y=name, yref="y", text=f"<b>{markup(row.error[:110])}</b>", xanchor="left",
                showarrow=False, font={"color": COLOURS[1]},
            )  # fmt: skip


def _interval(rows: list[SweepRow]) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "array": [row.steady.high - row.seconds if row.steady else 0.0 for row in rows],
        "arrayminus": [row.seconds - row.steady.low if row.steady else 0.0 for row in rows],
        "thickness": 1.4,
        "width": 3,
    }


def _title(made: Any, panel: Panel, at: int, count: int) -> None:
    made.add_annotation(
        text=f"<b>{panel.title}</b> {markup(panel.grows)}", x=_domain(at, count)[0], y=1.0, xref="paper", yref="paper",
        showarrow=False, xanchor="left", yanchor="bottom", yshift=4, xshift=-2,
    )  # fmt: skip


def _axis(at: int) -> str:
    return str(at + 1) if at else ""


def _domain(at: int, count: int) -> list[float]:
    """The part of the width that a panel has, with room for the texts on its left."""
    return [at / count + (0.075 if at else 0.0), (at + 1) / count - 0.01]
