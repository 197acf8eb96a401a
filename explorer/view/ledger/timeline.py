"""The ledger as a chart: when each function was traced, lowered and compiled, and in which cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from explorer.model.events.ledger import Ledger
from explorer.view.chart import Chart
from explorer.view.drawing import STEPS
from explorer.view.figure_plotly import empty_chart, markup
from explorer.view.ledger.calls import Call, Group, calls_of, group_by_family
from explorer.view.ledger.clock import Clock
from explorer.view.ledger.html import tables
from explorer.view.ledger.link import link_to
from explorer.view.ledger.message import is_on
from explorer.view.ledger.picture import describe_picture, picture
from explorer.view.ledger.verdict import verdict_of
from explorer.view.live_output import Output
from explorer.view.session import in_kernel

_FUNCTIONS = 12
_ROW = 30  # pixels
_BANDS = 200  # cells
_NAMED = 0.05  # of the axis: cells as long as that have their name
_EVERY = 2.0  # seconds between two updates within a cell


class LedgerChart(Chart):
    """A chart of a ledger; while that grows, what is displayed of it is brought up to date."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger: Ledger
        calls = calls_of(ledger.events)
        verdict = verdict_of(calls)
        compiles = sum(not call.is_miss for call in calls)
        super().__init__(
            _figure(ledger, calls),
            "timeline",
            picture(calls, verdict),
            describe_picture(calls, verdict),
            tables(calls),
            f"Chart(timeline: {compiles:,} compile{'' if compiles == 1 else 's'})",
        )
        object.__setattr__(self, "_ledger", ledger)

    def _ipython_display_(self) -> None:
        ledger = self._ledger
        if not is_on(ledger) or not in_kernel():
            raise NotImplementedError
        link_to(ledger).keep(
            Output(f"explorer-{uuid4().hex[:16]}", lambda: LedgerChart(ledger)._repr_mimebundle_(), _EVERY)
        )


def timeline(ledger: Ledger) -> Chart:
    """The chart of what is in a ledger now.

    Raises:
        MissingPackageError: plotly is not installed.
    """
    return LedgerChart(ledger)


def _lanes(calls: Sequence[Call]) -> dict[int, str]:
    """By the id of each call, the name of its row; those of the functions that get no row share the last one."""
    groups = group_by_family(calls)
    others = f"{len(groups) - _FUNCTIONS:,} more functions"
    return {
        id(call): _name(group) if number < _FUNCTIONS else others
        for number, group in enumerate(groups)
        for call in group.calls
    }


def _figure(ledger: Ledger, calls: Sequence[Call]) -> Any:
    chart = empty_chart()
    lanes = _lanes(calls)
    names = list(dict.fromkeys(lanes.values()))
    clock = Clock(calls)
    for step, title, colour in STEPS:
        chart.add_bar(
            orientation="h",
            name=title,
            y=[lanes[id(call)] for call in calls],
            x=[getattr(call, step) for call in calls],
            base=[clock.at(call.start) + _before(call, step) for call in calls],
            marker={"color": colour, "line": {"color": colour, "width": 0.8}},
            customdata=[[_hover_text(call)] for call in calls],
            hovertemplate=f"{title} %{{x:.3g}} s<br>%{{customdata[0]}}<extra></extra>",
        )
    chart.update_layout(
        barmode="overlay",
        bargap=0.35,
        height=110 + _ROW * max(len(names), 1),
        shapes=_bands(_cells(ledger, calls, clock)),
    )
    ticks = clock.ticks()
    chart.update_xaxes(
        title="since the first compile; long waits are cut",
        gridcolor="rgba(128,128,128,.2)",
        zeroline=False,
        tickvals=[at for at, _ in ticks],
        ticktext=[text for _, text in ticks],
    )
    # Above the first row is room for the cells' names.
    span = [-0.6, len(names) - 0.05]
    chart.update_yaxes(categoryorder="array", categoryarray=names[::-1], range=span, automargin=True, fixedrange=True)
    if not names:
        chart.update_xaxes(visible=False)
        chart.update_yaxes(visible=False)
        chart.update_layout(title="nothing has compiled yet", height=90, showlegend=False)
    return chart


def _name(group: Group) -> str:
    """Two families may have one name: then where they are defined tells them apart. Plotly reads `<…>` as markup."""
    line = f" (line {group.family.line})" if group.family.line else ""
    return markup(f"{group.family.name}{line}")


def _before(call: Call, step: str) -> float:
    """Seconds of a call before a step: tracing, lowering and compiling come one after the other."""
    return {"trace": 0.0, "lower": call.trace, "compile": call.trace + call.lower}[step]


def _hover_text(call: Call) -> str:
    reason = call.reason
    changed = ": ".join(filter(None, (reason.leaf, reason.change))) if reason.leaf else str(reason)
    return "<br>".join(map(markup, (call.id, str(call.place or ""), changed)))


def _cells(ledger: Ledger, calls: Sequence[Call], clock: Clock) -> list[tuple[str, float, float]]:
    """The cells that ran, on the axis; if nobody noted them, what the calls were chart from."""
    ran: Sequence[tuple[str, float, float]] = getattr(ledger, "cells", ()) or _callers(calls)
    cells = [(label, clock.at(since), clock.at(until)) for label, since, until in ran]
    return [cell for cell in cells if cell[1] < cell[2]][-_BANDS:]


def _callers(calls: Sequence[Call]) -> list[tuple[str, float, float]]:
    stretches: list[tuple[str, float, float]] = []
    for call in calls:
        label = call.stack[-1].label if call.stack else ""
        if stretches and stretches[-1][0] == label:
            stretches[-1] = label, stretches[-1][1], call.start + call.seconds
        elif label:
            stretches.append((label, call.start, call.start + call.seconds))
    return stretches


def _bands(cells: Sequence[tuple[str, float, float]]) -> list[dict[str, Any]]:
    """A ground for each cell, with its name where there is room for it."""
    room = _NAMED * max((until for _, _, until in cells), default=0.0)
    return [
        {
            "type": "rect", "xref": "x", "yref": "paper", "x0": since, "x1": until, "y0": 0, "y1": 1, "layer": "below",
            "fillcolor": f"rgba(128,128,128,{0.14 if number % 2 else 0.07})", "line": {"width": 0},
            "label": {"text": markup(label) if until - since > room else "", "textposition": "top left",
                      "font": {"size": 10}},
        }
        for number, (label, since, until) in enumerate(cells)
    ]  # fmt: skip
