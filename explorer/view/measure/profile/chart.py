"""The flame graph as a chart: plotly's icicle, a static picture and a table."""

from __future__ import annotations

from typing import Any

from explorer.model.results.profile import Profile
from explorer.model.results.profile_events import By, Flame, FlameNode
from explorer.model.text import cut_end
from explorer.model.units import duration_text, fine_share_text
from explorer.view.chart import Chart, Table
from explorer.view.figure_plotly import empty_chart, markup
from explorer.view.figure_svg import box, canvas, text
from explorer.view.measure.profile.picture import hot

_BOXES = 600
_WIDTH, _ROW, _LETTER = 960.0, 22, 7.3
_DEEPEST = 24
_ROWS = 100  # of the table
_LEAST = 1.0  # pixels
_BY = {"scope": "named scope", "stack": "Python call stack"}


def flame_chart(profile: Profile, by: By = "stack") -> Chart:
    """Return the flame graph of the device's time as a chart; raise MissingPackageError without plotly."""
    flame = profile.flame(by).pruned(_BOXES)
    hottest = sorted(
        (i for i, node in enumerate(flame.nodes) if node.kind == "kernel"), key=lambda i: -flame.nodes[i].own
    )
    named = "; ".join(f"{' › '.join(flame.path(i))}: {_time_and_share(flame.nodes[i], flame)}" for i in hottest[:5])
    return Chart(
        _figure(flame),
        f"{profile.function}: time by {_BY[by]}",
        flame_picture(flame),
        f"Time of the device, by {_BY[by]}. {named}",
        [_table(flame)],
        f"Chart({flame!r})",
    )


def flame_picture(flame: Flame) -> str:
    """Return the flame graph as SVG, the root on top."""
    whole, hottest = flame.seconds or 1.0, _hottest(flame)
    inner = _WIDTH - 24
    left = [12.0] * len(flame)
    used = [0.0] * len(flame)
    parts: list[str] = []
    deepest = 0
    for i, node in enumerate(flame.nodes):
        width = inner * node.seconds / whole
        if node.parent >= 0:
            left[i] = left[node.parent] + used[node.parent]
            used[node.parent] += width
        depth = flame.depths[i]
        if width < _LEAST or depth > _DEEPEST:
            continue
        deepest = max(deepest, depth)
        y = 12 + depth * _ROW
        shown = max(width - 1, 0.5)
        parts.append(box(left[i], y, shown, _ROW - 2, _colour(node, hottest), 2))
        letters = int((width - 8) / _LETTER)
        if letters >= 3:
            label = f"{node.name} {fine_share_text(node.seconds / whole)}"
            parts.append(text(left[i] + 4, y + 14, cut_end(label if len(label) <= letters else node.name, letters)))
    return canvas(_WIDTH, 24 + (deepest + 1) * _ROW, parts)


def _figure(flame: Flame) -> Any:
    from plotly.graph_objects import Icicle

    drawn = empty_chart()
    hottest = _hottest(flame)
    drawn.add_trace(
        Icicle(
            ids=[str(i) for i in range(len(flame))],
            parents=["" if node.parent < 0 else str(node.parent) for node in flame.nodes],
            labels=[markup(node.name) for node in flame.nodes],
            values=[node.seconds * 1e3 for node in flame.nodes],
            branchvalues="remainder" if not flame.seconds else "total",
            customdata=[[_time_and_share(node, flame)] for node in flame.nodes],
            hovertemplate="%{label}<br>%{customdata[0]}<extra></extra>",
            tiling={"orientation": "v"},
            marker={"colors": [_colour(node, hottest) for node in flame.nodes], "line": {"color": "#fff", "width": 1}},
            textfont={"color": "#1d2129"},
            root={"color": "rgba(0,0,0,0)"},
        )
    )
    drawn.update_layout(
        height=60 + 26 * (min(max(flame.depths), _DEEPEST) + 1), margin={"l": 4, "r": 4, "t": 24, "b": 4}
    )
    return drawn


def _colour(node: FlameNode, hottest: float) -> str:
    if node.kind == "kernel":
        return hot(node.own / hottest)
    return "#f2f3f4" if node.kind == "more" else "#e4e6e9"


def _hottest(flame: Flame) -> float:
    return max((node.own for node in flame.nodes if node.kind == "kernel"), default=0.0) or 1.0


def _time_and_share(node: FlameNode, flame: Flame) -> str:
    return f"{duration_text(node.seconds)}, {fine_share_text(node.seconds / (flame.seconds or 1.0))}"


def _table(flame: Flame) -> Table:
    order = sorted(range(len(flame)), key=lambda i: -flame.nodes[i].seconds)
    rows = [
        (
            " › ".join(flame.path(i)),
            flame.nodes[i].kind,
            duration_text(flame.nodes[i].seconds),
            duration_text(flame.nodes[i].own),
        )
        for i in order[:_ROWS]
    ]
    more = f"and {len(flame) - _ROWS:,} more" if len(flame) > _ROWS else ""
    return Table(f"time by {_BY[flame.by]}", ("box", "kind", "time", "of its own"), rows, more)
