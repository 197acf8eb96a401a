"""A figure as a plotly chart: the same places as the static picture, with tooltips and panels that zoom."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from explorer.errors import MissingPackageError
from explorer.model.text import code_parts, install_hint
from explorer.view.figure import BLUE, GREY, GRID, INK, Band, Bars, Figure, Label, Mark, Panel, Path, Points
from explorer.view.scale import Scale

_MIDDLE = "#7a828d"  # text and lines that read on light and dark pages
_GRID = "rgba(128,128,128,.2)"
_ON_ANY_GROUND = {INK: _MIDDLE, GREY: _MIDDLE, GRID: _GRID}
_ANCHORS = {"start": "left", "middle": "center", "end": "right"}
_HEADLINE = 15  # pixels
_RISE = 0.36  # of the size of a letter: from its baseline to its middle


def plotly_of(figure: Figure) -> Any:
    """Return the figure as a `plotly.graph_objects.Figure` of the same size.

    Raises:
        MissingPackageError: plotly is not installed.
    """
    chart = empty_chart()
    shapes: list[dict[str, Any]] = []
    labels: list[dict[str, Any]] = []
    layout: dict[str, Any] = {}
    # The page comes first, below the panels: what is on top gets the mouse.
    for number, panel in enumerate([figure.page_panel(), *figure.panels]):
        suffix = number + 1 if number else ""
        axes = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
        layout |= _axes(figure, panel, axes, is_page=not number)
        if panel.x_title:
            labels.append(_x_title(panel, axes))
        if panel.strong is not None:
            line = {"color": _MIDDLE, "width": 1.5}
            ends = {"x0": panel.strong, "x1": panel.strong, "y0": panel.y.low, "y1": panel.y.high}
            shapes.append({"type": "line", "xref": axes["xaxis"], "yref": axes["yaxis"], "line": line, **ends})
        for mark in panel.marks:
            _add(chart, shapes, labels, panel, mark, axes)
    chart.update_layout(
        width=figure.width, height=figure.height, margin={side: 0 for side in "ltrb"}, showlegend=False,
        barmode="overlay", hovermode="closest", shapes=shapes, annotations=labels, **layout,
    )  # fmt: skip
    return chart


def empty_chart() -> Any:
    """Return an empty plotly figure with colors that are readable on light and dark pages.

    Raises:
        MissingPackageError: plotly is not installed.
    """
    try:
        from plotly.graph_objects import Figure
    except ImportError:
        raise MissingPackageError(
            "a chart needs the package plotly, which draws it. "
            f"Hint: {install_hint('plotly', 'lab')}; to_html and the view of a ledger need no package."
        ) from None
    chart = Figure()
    chart.update_layout(
        template="none",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif", "size": 12, "color": _MIDDLE},
        margin={"l": 8, "r": 12, "t": 40, "b": 36},
        legend={"orientation": "h", "x": 1, "xanchor": "right", "y": 1.02, "yanchor": "bottom"},
    )
    return chart


def markup(text: str) -> str:
    """Return text escaped for plotly, which reads `<…>` as markup."""
    return escape(text, quote=False)


def _axes(figure: Figure, panel: Panel, axes: dict[str, str], is_page: bool) -> dict[str, Any]:
    width, height = figure.width, figure.height
    x = _axis(panel.x, [panel.left / width, panel.right / width], axes["yaxis"], is_page, panel.grid == "x")
    y = _axis(panel.y, [1 - panel.bottom / height, 1 - panel.top / height], axes["xaxis"], is_page, panel.grid == "y")
    return {axes["xaxis"].replace("x", "xaxis"): x, axes["yaxis"].replace("y", "yaxis"): y}


def _axis(scale: Scale, domain: list[float], anchor: str, is_fixed: bool, has_grid: bool) -> dict[str, Any]:
    return {
        "type": "log" if scale.is_log else "linear",
        "range": [math.log10(end) if scale.is_log else end for end in (scale.low, scale.high)],
        "domain": [min(max(end, 0.0), 1.0) for end in domain],
        "anchor": anchor,
        "visible": bool(scale.ticks),
        "fixedrange": is_fixed,
        "tickvals": list(scale.ticks),
        "ticktext": [markup(text) for text in scale.texts],
        "tickfont": {"size": 11},
        "tickangle": 0,
        "showgrid": has_grid,
        "gridcolor": _GRID,
        "zeroline": False,
        "minor": {"showgrid": False},
    }


def _add(chart: Any, shapes: list[Any], labels: list[Any], panel: Panel, mark: Mark, axes: dict[str, str]) -> None:
    match mark:
        case Points():
            look = {
                "color": _colour(mark.colour), "symbol": mark.symbol + "-open" * mark.hollow, "opacity": mark.opacity,
                "size": [2 * radius for radius in mark.radii()], "line": {"width": 2.0 if mark.hollow else 0.6},
            }  # fmt: skip
            chart.add_scatter(x=[*mark.x], y=[*mark.y], mode="markers", marker=look, **_hover(mark.hover), **axes)
        case Path():
            line = {"color": _colour(mark.colour), "width": mark.width, "dash": mark.dash or "solid"}
            chart.add_scatter(
                x=[*mark.x], y=[*mark.y], mode="lines", line=line, opacity=mark.opacity, hoverinfo="skip", **axes
            )
        case Bars():
            chart.add_bar(
                orientation="h", base=[box[0] for box in mark.boxes], x=[box[1] - box[0] for box in mark.boxes],
                y=[(box[2] + box[3]) / 2 for box in mark.boxes], width=[abs(box[3] - box[2]) for box in mark.boxes],
                marker={"color": _colour(mark.colour), "opacity": mark.opacity}, **_hover(mark.hover), **axes,
            )  # fmt: skip
        case Band():
            shapes.append(
                {"type": "rect", "xref": axes["xaxis"], "yref": axes["yaxis"], "x0": mark.left, "x1": mark.right,
                 "y0": mark.top, "y1": mark.bottom, "fillcolor": _colour(mark.colour), "opacity": mark.opacity,
                 "line": {"width": 0}}
            )  # fmt: skip
        case Label():
            labels.append(_label(mark, panel, axes))


def _hover(lines: Any) -> dict[str, Any]:
    if not lines:
        # Without it, plotly cuts off the half of a symbol that is beyond an axis.
        return {"hoverinfo": "skip", "cliponaxis": False}
    texts = ["<br>".join(map(markup, text.split("\n"))) for text in lines]
    return {"customdata": [[text] for text in texts], "hovertemplate": "%{customdata[0]}<extra></extra>",
            "cliponaxis": False}  # fmt: skip


def _label(mark: Label, panel: Panel, axes: dict[str, str]) -> dict[str, Any]:
    text = "".join(
        f'<span style="font-family:monospace">{markup(part)}</span>' if is_code else markup(part)
        for part, is_code in code_parts(mark.text)
    )
    is_headline = mark.bold and mark.size >= _HEADLINE and mark.colour == INK  # of the middle grey, it would not lead
    return {
        # Of a logarithmic axis, plotly takes the place of an annotation for a logarithm.
        "x": math.log10(mark.x) if panel.x.is_log else mark.x, "y": math.log10(mark.y) if panel.y.is_log else mark.y,
        "xref": axes["xaxis"], "yref": axes["yaxis"], "text": f"<b>{text}</b>" if mark.bold else text,
        "xanchor": _ANCHORS[mark.anchor], "yanchor": "middle", "xshift": mark.dx, "yshift": _RISE * mark.size - mark.dy,
        "textangle": mark.angle, "showarrow": False, "borderpad": 0,
        "font": {"size": mark.size, "color": BLUE if is_headline else _colour(mark.colour)},
    }  # fmt: skip


def _x_title(panel: Panel, axes: dict[str, str]) -> dict[str, Any]:
    return {
        "x": 0.5, "y": 0, "xref": f"{axes['xaxis']} domain", "yref": f"{axes['yaxis']} domain", "showarrow": False,
        "text": markup(panel.x_title), "yanchor": "middle", "yshift": -30, "font": {"size": 11},
    }  # fmt: skip


def _colour(colour: str) -> str:
    return _ON_ANY_GROUND.get(colour, colour)
