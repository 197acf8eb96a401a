"""A what-if as a plotly chart: time against the plain one's, and memory; its picture stands where no script runs."""

from __future__ import annotations

import math
import textwrap
from math import isfinite
from typing import Any

from explorer.model.results.measured import size_text
from explorer.model.results.what_if import Variant, WhatIf
from explorer.model.units import duration_text
from explorer.view.chart import Chart, figure
from explorer.view.measure.showing import markup, small
from explorer.view.measure.strokes import BLUE, ORANGE
from explorer.view.measure.what_if_picture import (
    colour_of,
    described,
    picture,
    ratio_text,
    span,
    subtitle,
    tables,
    ticks,
)  # fmt: skip

__all__ = ["what_if_chart"]

_TIME = [0.0, 0.5]  # of the width
_MEMORY = [0.72, 0.88]


def what_if_chart(what_if: WhatIf) -> Chart:
    """The chart of a what-if.

    Raises:
        MissingPackageError: plotly is not installed.
    """
    made = figure()
    names = [markup(row.name) for row in what_if]
    is_timed = what_if.plain.steady is not None
    if is_timed:
        _times(made, what_if)
    _memory(made, what_if, [_TIME[0], _MEMORY[1]] if not is_timed else _MEMORY)
    for row in what_if:
        _told(made, row, is_timed)
    first, _, rest = what_if.headline.partition("; ")
    told = [*textwrap.wrap(rest, 124)[:2], subtitle(what_if)]
    title = (
        f"<b>{markup(textwrap.shorten(first, 100, placeholder=' …'))}</b><br>{small('<br>'.join(map(markup, told)))}"
    )
    top = 92 + 18 * len(told)
    height = top + 60 + 34 * len(names)
    made.update_layout(
        title={"text": title, "x": 0.012, "xref": "container", "xanchor": "left", "yref": "container",
               "y": 1 - 14 / height, "yanchor": "top", "font": {"size": 17, "color": BLUE}},
        height=height, margin={"l": 12, "r": 16, "t": top, "b": 44}, showlegend=False, bargap=0.5,
        yaxis={"categoryorder": "array", "categoryarray": names[::-1], "automargin": True, "showgrid": False,
               "zeroline": False, "range": [-0.6, len(names) - 0.4], "fixedrange": True, "tickvals": names,
               "ticktext": [f"<b>{name}</b> " for name in names]},
    )  # fmt: skip
    text = f"Chart(what if: {what_if.function}, {len(names):,} variants)"
    return Chart(made, f"what if: {what_if.function}", picture(what_if), described(what_if), tables(what_if), text)


def _times(made: Any, what_if: WhatIf) -> None:
    for row in what_if:
        if row.ratio is not None:
            colour = colour_of(row)
            made.add_scatter(
                name=row.name, mode="markers", x=[row.ratio.ratio], y=[markup(row.name)], cliponaxis=False,
                marker={"size": 12, "color": colour, "symbol": "circle" if row.time_saved else "circle-open"},
                error_x={"array": [row.ratio.high - row.ratio.ratio], "color": colour, "thickness": 3, "width": 6,
                         "arrayminus": [row.ratio.ratio - row.ratio.low]},
                customdata=[[str(row.ratio), duration_text(row.seconds)]],
                hovertemplate="%{y}: %{customdata[0]}<br>%{customdata[1]}<extra></extra>",
            )  # fmt: skip
    made.add_scatter(
        name="plain", mode="markers", x=[1], y=["plain"], cliponaxis=False,
        marker={"size": 12, "symbol": "diamond", "color": "#7a828d"},
        hovertemplate=f"plain: {duration_text(what_if.plain.seconds)}<extra></extra>",
    )  # fmt: skip
    low, high = span(what_if)
    at = ticks(low, high)
    made.add_shape(type="line", x0=1, x1=1, y0=0, y1=1, yref="paper", line={"color": "#7a828d", "width": 1.5})
    made.update_layout(
        xaxis={"type": "log", "range": [math.log10(low), math.log10(high)], "domain": _TIME, "zeroline": False,
               "gridcolor": "rgba(128,128,128,.2)", "tickvals": at, "ticktext": [f"{tick:g}×" for tick in at],
               "minor": {"showgrid": False}},
    )  # fmt: skip
    for said, anchor, shift in (("← faster", "right", -8), ("slower →", "left", 8)):
        made.add_annotation(
            x=0, xref="x", y=1, yref="paper", text=said, xanchor=anchor, xshift=shift, yanchor="bottom",
            showarrow=False, font={"size": 11},
        )  # fmt: skip
    _head(made, "time", 0.705, "right")


def _memory(made: Any, what_if: WhatIf, domain: list[float]) -> None:
    rows = [row for row in what_if if isfinite(row.peak) and not row.error]
    saved = [row.saved(what_if.plain) for row in rows]
    colours = ["#7a828d" if not one else BLUE if one > 0 else ORANGE for one in saved]
    made.add_bar(
        orientation="h", x=[row.peak for row in rows], y=[markup(row.name) for row in rows], xaxis="x2",
        marker={"color": colours, "opacity": [1 if one else 0.45 for one in saved]}, cliponaxis=False,
        text=[f" {size_text(row.peak)}" for row in rows], textposition="outside",
        hovertemplate="%{y}: memory %{text}<extra></extra>",
    )  # fmt: skip
    most = max((row.peak for row in rows), default=1.0)
    made.update_layout(xaxis2={"domain": domain, "anchor": "y", "visible": False, "range": [0, 1.3 * most]})
    _head(made, "memory", domain[0], "left")
    _head(made, "compile", 0.995, "right")


def _told(made: Any, row: Variant, is_timed: bool) -> None:
    """What stands beside the marks of a row: figures, or why it failed."""
    name = markup(row.name)
    if row.error:
        _beside(made, name, f"<b>{markup(row.error[:100])}</b>", 0.0, "left", {"color": ORANGE})
        return
    if is_timed:
        said = f"<b>{ratio_text(row)}</b>" if row.time_saved else ratio_text(row)
        _beside(made, name, said, _TIME[1] + 0.01, "left", {"color": colour_of(row)})
        _beside(made, name, duration_text(row.seconds), 0.705, "right", {})
    if isfinite(row.compile_seconds):
        _beside(made, name, duration_text(row.compile_seconds), 0.995, "right", {})


def _beside(made: Any, name: str, text: str, x: float, anchor: str, font: dict[str, Any]) -> None:
    made.add_annotation(x=x, xref="paper", y=name, text=text, xanchor=anchor, showarrow=False, font=font)


def _head(made: Any, text: str, x: float, anchor: str) -> None:
    made.add_annotation(
        x=x, y=1, xref="paper", yref="paper", text=text, xanchor=anchor, yanchor="bottom", showarrow=False,
        font={"size": 11},
    )  # fmt: skip
