"""The flame graph as a chart: plotly's icicle, and the same as a static picture and a table."""

from __future__ import annotations

from typing import Any

from explorer.model.results.flame import By, Flame, FlameNode
from explorer.model.results.profile import Profile
from explorer.view.chart import Chart, Table
from explorer.view.drawing import box, canvas, shortened, text
from explorer.view.figure_plotly import empty_chart, markup
from explorer.view.measure.profile.picture import hot
from explorer.view.measure.profile.told import share_text, time_text

__all__ = ["flame_chart", "flame_picture"]

_BOXES = 600
_WIDTH, _ROW, _LETTER = 960.0, 22, 7.3
_DEEPEST = 24
_ROWS = 100  # of the table
_LEAST = 1.0  # pixels
_BY = {"scope": "named scope", "stack": "Python call stack"}


def flame_chart(profile: Profile, by: By = "stack") -> Chart:
    """The chart of where the device's time went.

    Raises:
        MissingPackageError: plotly is not installed.
    """
    made = profile.flame(by).pruned(_BOXES)
    hottest = sorted(
        (i for i, node in enumerate(made.nodes) if node.kind == "kernel"), key=lambda i: -made.nodes[i].own
    )
    named = "; ".join(f"{' › '.join(made.path(i))}: {_told(made.nodes[i], made)}" for i in hottest[:5])
    return Chart(
        _figure(made),
        f"{profile.function}: time by {_BY[by]}",
        flame_picture(made),
        f"Where the device's time went, by {_BY[by]}. {named}",
        [_table(made)],
        f"Chart({made!r})",
    )


def flame_picture(made: Flame) -> str:
    """The flame graph as SVG, the root on top."""
    whole, hottest = made.seconds or 1.0, _hottest(made)
    inner = _WIDTH - 24
    left = [12.0] * len(made)
    used = [0.0] * len(made)
    parts: list[str] = []
    deepest = 0
    for i, node in enumerate(made.nodes):
        width = inner * node.seconds / whole
        if node.parent >= 0:
            left[i] = left[node.parent] + used[node.parent]
            used[node.parent] += width
        depth = made.depths[i]
        if width < _LEAST or depth > _DEEPEST:
            continue
        deepest = max(deepest, depth)
        y = 12 + depth * _ROW
        shown = max(width - 1, 0.5)
        parts.append(box(left[i], y, shown, _ROW - 2, _colour(node, hottest), 2))
        letters = int((width - 8) / _LETTER)
        if letters >= 3:
            label = f"{node.name} {share_text(node.seconds / whole)}"
            parts.append(text(left[i] + 4, y + 14, shortened(label if len(label) <= letters else node.name, letters)))
    return canvas(_WIDTH, 24 + (deepest + 1) * _ROW, parts)


def _figure(made: Flame) -> Any:
    from plotly.graph_objects import Icicle

    drawn = empty_chart()
    hottest = _hottest(made)
    drawn.add_trace(
        Icicle(
            ids=[str(i) for i in range(len(made))],
            parents=["" if node.parent < 0 else str(node.parent) for node in made.nodes],
            labels=[markup(node.name) for node in made.nodes],
            values=[node.seconds * 1e3 for node in made.nodes],
            branchvalues="remainder" if not made.seconds else "total",
            customdata=[[_told(node, made)] for node in made.nodes],
            hovertemplate="%{label}<br>%{customdata[0]}<extra></extra>",
            tiling={"orientation": "v"},
            marker={"colors": [_colour(node, hottest) for node in made.nodes], "line": {"color": "#fff", "width": 1}},
            textfont={"color": "#1d2129"},
            root={"color": "rgba(0,0,0,0)"},
        )
    )
    drawn.update_layout(
        height=60 + 26 * (min(max(made.depths), _DEEPEST) + 1), margin={"l": 4, "r": 4, "t": 24, "b": 4}
    )
    return drawn


def _colour(node: FlameNode, hottest: float) -> str:
    if node.kind == "kernel":
        return hot(node.own / hottest)
    return "#f2f3f4" if node.kind == "more" else "#e4e6e9"


def _hottest(made: Flame) -> float:
    return max((node.own for node in made.nodes if node.kind == "kernel"), default=0.0) or 1.0


def _told(node: FlameNode, made: Flame) -> str:
    return f"{time_text(node.seconds)}, {share_text(node.seconds / (made.seconds or 1.0))}"


def _table(made: Flame) -> Table:
    order = sorted(range(len(made)), key=lambda i: -made.nodes[i].seconds)
    rows = [
        (" › ".join(made.path(i)), made.nodes[i].kind, time_text(made.nodes[i].seconds), time_text(made.nodes[i].own))
        for i in order[:_ROWS]
    ]
    more = f"and {len(made) - _ROWS:,} more" if len(made) > _ROWS else ""
    return Table(f"time by {_BY[made.by]}", ("box", "kind", "time", "of its own"), rows, more)
