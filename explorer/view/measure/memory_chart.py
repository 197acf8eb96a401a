"""Memory as a plotly chart; its picture and tables stand where no script runs."""

from __future__ import annotations

import math
from typing import Any

from explorer.model.results.memory_use import USES, MemoryUse
from explorer.model.units import bytes_text
from explorer.view.chart import Chart, figure
from explorer.view.measure.memory_picture import (
    COLOURS,
    LIMIT,
    WIDTHS,
    curves,
    described,
    is_curve,
    known,
    picture,
    scales,
    tables,
)
from explorer.view.measure.showing import headline_rows

__all__ = ["memory_chart"]

_ALL = "rgba(128,136,148,1)"


def memory_chart(use: MemoryUse) -> Chart:
    """The chart of memory.

    Raises:
        MissingPackageError: plotly is not installed.
    """
    made = figure()
    rows = headline_rows(use.headline, 110)
    head = "<br>".join(f"<b>{_plain(row)}</b>" if is_bold else _plain(row) for row, is_bold in rows)
    made.update_layout(
        title={"text": head, "x": 0.01, "xanchor": "left", "y": 0.98, "yanchor": "top", "font": {"size": 14}},
        margin={"l": 8, "r": 16, "t": 56 + 20 * len(rows), "b": 48},
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"},
    )
    if is_curve(use):
        _curves(made, use)
    else:
        _bars(made, use)
    text = f"Chart(memory: {use.function}, {len(use.rows):,} size{'' if len(use.rows) == 1 else 's'})"
    return Chart(made, f"memory of {use.function}", picture(use), described(use), tables(use), text)


def _curves(made: Any, use: MemoryUse) -> None:
    across, up = scales(use)
    for key, name, points in curves(use):
        made.add_scatter(
            x=[x for x, _ in points], y=[max(size, up.low) for _, size in points], mode="lines+markers", name=name,
            line={"color": COLOURS.get(key, _ALL), "width": WIDTHS[key]},
            marker={"size": 8 if key == "needed" else 5},
            customdata=[[bytes_text(round(size))] for _, size in points],
            hovertemplate=f"{_plain(use.axes[0].name)} = %{{x:,}}<br>{name} %{{customdata[0]}}<extra></extra>",
        )  # fmt: skip
    largest = use.largest
    if largest is not None and largest.size:
        last = curves(use)[0][2][-1]
        made.add_scatter(
            x=[last[0], largest.size], y=[last[1], largest.needed], mode="lines+markers+text",
            name=f"{_plain(largest.name)} = {largest.size:,} fits", line={"color": _ALL, "dash": "dot", "width": 1.5},
            marker={"symbol": "circle-open", "size": [0, 11]}, cliponaxis=False, textposition="top left",
            text=["", f"{_plain(largest.name)} = {largest.size:,} fits"],
            hovertemplate="%{x:,}<extra></extra>", showlegend=False,
        )  # fmt: skip
    if use.limit and up.low <= use.limit <= up.high:
        made.add_hline(y=use.limit, line={"color": LIMIT, "dash": "dash", "width": 1.6})
        # Of a line on a logarithmic axis, plotly takes the place of an annotation for a logarithm.
        made.add_annotation(
            x=0.01, xref="paper", y=math.log10(use.limit) if up.is_log else use.limit, yanchor="bottom",
            xanchor="left", text=f"limit {bytes_text(use.limit)}", showarrow=False, font={"color": LIMIT, "size": 11},
        )  # fmt: skip
    made.update_xaxes({**across.plotly, "title": _plain(use.axes[0].title), "showgrid": False, "zeroline": False})
    made.update_yaxes({**up.plotly, "gridcolor": "rgba(128,128,128,.2)", "zeroline": False, "automargin": True})
    made.update_layout(height=440)


def _bars(made: Any, use: MemoryUse) -> None:
    rows = known(use)
    names = [_plain(use.label(row)) or " " for row in rows]
    for key, name in USES:
        sizes = [use.parts(row)[key] for row in rows]
        if any(sizes):
            made.add_bar(
                orientation="h", y=names, x=sizes, name=f"{name} {bytes_text(sizes[0])}" if len(rows) == 1 else name,
                marker={"color": COLOURS[key]}, customdata=[[bytes_text(size)] for size in sizes],
                hovertemplate=f"{name} %{{customdata[0]}}<extra></extra>",
            )  # fmt: skip
    most = max((row.needed for row in rows), default=1.0)
    if 0 < use.limit < 3 * most:
        made.add_vline(
            x=use.limit, line={"color": LIMIT, "dash": "dash", "width": 1.6},
            annotation={"text": f"limit {bytes_text(use.limit)}", "font": {"color": LIMIT}},
        )  # fmt: skip
        most = max(most, use.limit)
    ticks = [most * part / 4 for part in range(5)]
    made.update_xaxes(
        tickvals=ticks, ticktext=[bytes_text(round(tick)) for tick in ticks], range=[0, 1.05 * most],
        gridcolor="rgba(128,128,128,.2)", zeroline=False,
    )  # fmt: skip
    made.update_yaxes(autorange="reversed", automargin=True, fixedrange=True)
    made.update_layout(barmode="stack", bargap=0.3, height=170 + 28 * max(len(rows), 1))


def _plain(text: str) -> str:
    """Plotly reads `<…>` as markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
