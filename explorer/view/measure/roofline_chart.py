"""A roofline as a plotly chart; its picture and tables stand where no script runs."""

from __future__ import annotations

import math
import textwrap
from typing import Any

from explorer.model.results.roofline import BOUNDS, Roofline
from explorer.model.units import rate_text, share_text
from explorer.view.chart import Chart, figure
from explorer.view.measure.roofline_layout import COLOURS, SYMBOLS, Layout, layout_of, unknown_text
from explorer.view.measure.roofline_picture import described, picture, tables
from explorer.view.measure.showing import headline_rows

__all__ = ["roofline_chart"]

_SIDES = {"right": "middle right", "left": "middle left", "below": "bottom center", "": "middle right"}
_GREY = "rgba(128,136,148,1)"
_ROOFS = {"memory": (2.4, "solid"), "cache": (1.2, "dash"), "fresh": (1.2, "dot"), "matmul": (2.4, "solid"),
          "fma": (1.2, "solid")}  # fmt: skip


def roofline_chart(roofline: Roofline) -> Chart:
    """The chart of a roofline.

    Raises:
        MissingPackageError: plotly is not installed.
    """
    made = figure()
    layout = layout_of(roofline)
    _roofs(made, layout)
    for bound in BOUNDS:
        _kernels(made, roofline, layout, bound)
    _axes(made, layout)
    _words(made, roofline)
    count = f"{len(roofline.points):,} kernel{'' if len(roofline.points) == 1 else 's'}"
    text = f"Chart(roofline: {roofline.function}, {count})"
    title = f"roofline of {roofline.function}"
    return Chart(made, title, picture(roofline), described(roofline), tables(roofline), text)


def _roofs(made: Any, layout: Layout) -> None:
    for roof in layout.roofs:
        width, dash = _ROOFS[roof.kind]
        made.add_scatter(
            x=list(roof.x),
            y=list(roof.y),
            mode="lines",
            line={"color": _GREY, "width": width, "dash": dash},
            hoverinfo="skip",
            showlegend=False,
        )
        is_flat = roof.kind in ("matmul", "fma")
        start = max(roof.x[0], layout.x[0], layout.y[0] * roof.x[1] / roof.y[1])  # where it enters the picture
        x = 1.25 * roof.x[0] if is_flat else math.sqrt(start * roof.x[1])
        made.add_annotation(
            x=math.log10(x), y=math.log10(roof.y[1] * (1.0 if is_flat else x / roof.x[1])), text=roof.name,
            showarrow=False, xanchor="left" if is_flat else "right",
            yanchor="top" if roof.kind == "fma" else "bottom", font={"size": 11},
        )  # fmt: skip


def _kernels(made: Any, roofline: Roofline, layout: Layout, bound: str) -> None:
    """The kernels that one thing holds back, each with a line to where it could be."""
    marks = [mark for mark in layout.marks if mark.bound == bound]
    share = roofline.shares.get(bound, 0.0)
    if not marks:
        return
    colour, name = COLOURS[bound], f"bound by {bound} {share_text(share)}"
    stems = [mark for mark in marks if mark.roof > 1.05 * mark.y and mark.radius > 4]
    made.add_scatter(
        x=[x for mark in stems for x in (mark.x, mark.x, None)],
        y=[y for mark in stems for y in (mark.y, mark.roof, None)],
        mode="lines", line={"color": colour, "width": 1.4}, opacity=0.6, hoverinfo="skip", showlegend=False,
        legendgroup=bound,
    )  # fmt: skip
    made.add_scatter(
        x=[mark.x for mark in marks],
        y=[mark.y for mark in marks],
        mode="markers+text",
        name=name,
        legendgroup=bound,
        marker={
            "color": colour,
            "symbol": SYMBOLS[bound],
            "size": [2 * mark.radius for mark in marks],
            "opacity": 0.85,
            "line": {"width": 1, "color": "rgba(255,255,255,.7)"},
        },
        text=[_plain(mark.label) for mark in marks],
        textposition=[_SIDES[mark.side] for mark in marks],
        customdata=[["<br>".join(map(_plain, mark.told))] for mark in marks],
        hovertemplate="%{customdata[0]}<extra></extra>",
        cliponaxis=False,
    )


def _axes(made: Any, layout: Layout) -> None:
    powers = range(math.ceil(math.log10(layout.x[0])), math.floor(math.log10(layout.x[1])) + 1)
    ticks = [(10.0**power, f"{10.0**power:g}") for power in powers]
    if layout.column is not None:
        ticks = [(layout.column, "0"), *(tick for tick in ticks if tick[0] > 2 * layout.column)]
    made.update_xaxes(
        type="log", range=[math.log10(value) for value in layout.x], title="FLOPs for each byte moved",
        tickvals=[at for at, _ in ticks], ticktext=[text for _, text in ticks], showgrid=False, zeroline=False,
    )  # fmt: skip
    rates = range(math.ceil(math.log10(layout.y[0])), math.floor(math.log10(layout.y[1])) + 1)
    made.update_yaxes(
        type="log", range=[math.log10(value) for value in layout.y], automargin=True, zeroline=False,
        gridcolor="rgba(128,128,128,.2)",
        tickvals=[10.0**power for power in rates], ticktext=[rate_text(10.0**power) for power in rates],
    )  # fmt: skip


def _words(made: Any, roofline: Roofline) -> None:
    rows = headline_rows(roofline.headline, 110)
    head = "<br>".join(f"<b>{_plain(row)}</b>" if is_bold else _plain(row) for row, is_bold in rows)
    notes = filter(None, (unknown_text(roofline), *roofline.notes[:3]))
    below = "<br>".join(_plain(row) for note in notes for row in textwrap.wrap(note, 120))
    lines = below.count("<br>") + 1 if below else 0
    made.update_layout(
        title={"text": head, "x": 0.01, "xanchor": "left", "y": 0.98, "yanchor": "top", "font": {"size": 14}},
        height=480 + 20 * len(rows) + 15 * lines,
        margin={"l": 8, "r": 16, "t": 56 + 20 * len(rows), "b": 60 + 15 * lines},
        legend={
            "itemsizing": "constant",
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1.02,
            "yanchor": "bottom",
        },
    )
    if below:
        made.add_annotation(
            text=below, x=0, y=0, xref="paper", yref="paper", yshift=-54, xanchor="left", yanchor="top", align="left",
            showarrow=False, font={"size": 11},
        )  # fmt: skip


def _plain(text: str) -> str:
    """Plotly reads `<…>` as markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
