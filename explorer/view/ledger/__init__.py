"""A ledger as text, picture, page, chart and live view. Imports no JAX."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from html import escape
from typing import Any
from uuid import uuid4

from explorer.model.events.ledger import Ledger
from explorer.model.text import cut_end
from explorer.model.units import count_text, duration_text
from explorer.view.chart import Chart, Table, static_html
from explorer.view.figure_plotly import empty_chart, markup
from explorer.view.figure_svg import STEPS, box, canvas, text
from explorer.view.interface import View
from explorer.view.ledger.calls import (
    Call,
    Group,
    calls_of,
    cause_of,
    cure_of,
    flat,
    group_by_family,
    plain,
    times,
    verdict_of,
)
from explorer.view.ledger.link import LedgerLink, show_live
from explorer.view.ledger.message import encode_message, is_on, tables_of
from explorer.view.ledger.message import message as message_of
from explorer.view.page import interactive
from explorer.view.session import Output, in_kernel

__all__ = ["LedgerView", "display_live"]


class LedgerView(View[Ledger]):
    """The interactive view, updated by a running kernel; a picture and tables where no script runs."""

    def title(self, value: Ledger) -> str:
        return "recompile ledger"

    def html(self, value: Ledger) -> str:
        return fragment(value, invites=False)

    def output(self, value: Ledger) -> dict[str, Any]:
        return {"text/html": fragment(value, LedgerLink.of(value) if in_kernel() else None)}

    def svg(self, value: Ledger) -> str:
        return picture(calls_of(value.events))

    def chart(self, value: Ledger) -> Chart:
        return LedgerChart(value)


def display_live(ledger: Ledger) -> None:
    """Display a ledger that still grows; see `show_live`."""
    show_live(LedgerLink.of, ledger, is_on(ledger))


_LONG = 0.2  # of all the busy time: a wait longer than that is cut, if it lasts a second
_CUT = 0.04  # of all the busy time: what is left of it


@dataclass(frozen=True)
class _Stretch:
    since: float
    until: float
    at: float  # where it begins on the axis


class Clock:
    """Mapping from seconds since 1970 to seconds on the chart's axis, which starts at 0 and cuts long waits."""

    def __init__(self, calls: Sequence[Call]) -> None:
        spans = sorted((call.start, call.start + call.seconds) for call in calls)
        busy = sum(until - since for since, until in spans)
        joined: list[tuple[float, float]] = []
        for since, until in spans:
            if joined and since - joined[-1][1] <= max(_LONG * busy, 1.0):
                joined[-1] = joined[-1][0], max(joined[-1][1], until)
            else:
                joined.append((since, until))
        self._stretches: list[_Stretch] = []
        at = 0.0
        for since, until in joined:
            self._stretches.append(_Stretch(since, until, at))
            at += until - since + _CUT * busy
        self.begin = joined[0][0] if joined else 0.0

    def at(self, moment: float) -> float:
        """Return the place on the axis, in seconds, of a moment since 1970; in a wait, the place where it begins."""
        index = bisect_right(self._stretches, moment, key=lambda stretch: stretch.since) - 1
        if index < 0:
            return 0.0
        stretch = self._stretches[index]
        return stretch.at + min(moment, stretch.until) - stretch.since

    def ticks(self, most: int = 8) -> list[tuple[float, str]]:
        """Return (place, label) of ticks: the start of each busy stretch, and even steps in long ones."""
        step = _even(sum(stretch.until - stretch.since for stretch in self._stretches) / most)
        ticks: list[tuple[float, str]] = []
        for stretch in self._stretches:
            first, last = stretch.since - self.begin, stretch.until - self.begin
            for moment in (first, *(n * step for n in range(int(first / step) + 1, int(last / step) + 1))):
                at = self.at(self.begin + moment)
                if not ticks or at - ticks[-1][0] > 0.6 * step:
                    ticks.append((at, f"{moment:.3g} s" if moment < 1000 else f"{moment:,.0f} s"))
        return ticks


def _even(least: float) -> float:
    """Return the smallest step of …, 0.5, 1, 2, 5, 10, … that is at least `least`."""
    power = 1e-6
    while power * 10 < least:
        power *= 10
    return next(power * part for part in (1, 2, 5, 10) if power * part >= least)


_FUNCTIONS = 12
_CHART_ROW = 30  # pixels
_BANDS = 200  # cells
_NAMED = 0.05  # of the axis: cells as long as that have their name
_EVERY = 2.0  # seconds between two updates within a cell


class LedgerChart(Chart):
    """A chart of a ledger, updated while the ledger grows."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger: Ledger
        calls = calls_of(ledger.events)
        text = f"Chart(timeline: {count_text(sum(not call.is_miss for call in calls), 'compile')})"
        image, words, shown = picture(calls), describe_picture(calls), tables(calls)
        super().__init__(_figure(ledger, calls), "timeline", image, words, shown, text)
        # Chart is frozen.
        object.__setattr__(self, "_ledger", ledger)

    def _ipython_display_(self) -> None:
        ledger = self._ledger
        # On NotImplementedError, IPython displays the MIME bundle.
        if not is_on(ledger) or not in_kernel():
            raise NotImplementedError
        output = Output(f"explorer-{uuid4().hex[:16]}", lambda: LedgerChart(ledger)._repr_mimebundle_(), _EVERY)
        LedgerLink.of(ledger).keep(output)


def _lanes(calls: Sequence[Call]) -> dict[int, str]:
    """Return the name of each call's row, by `id(call)`; functions without a row of their own share the last one."""
    groups, lanes = group_by_family(calls), dict[int, str]()
    for number, group in enumerate(groups):
        # Two families may share a name: their line distinguishes them. Plotly reads `<…>` as markup.
        line = f" (line {group.family.line})" if group.family.line else ""
        own = number < _FUNCTIONS
        name = markup(f"{group.family.name}{line}") if own else f"{len(groups) - _FUNCTIONS:,} more functions"
        lanes |= {id(call): name for call in group.calls}
    return lanes


def _figure(ledger: Ledger, calls: Sequence[Call]) -> Any:
    chart, lanes, clock = empty_chart(), _lanes(calls), Clock(calls)
    names = list(dict.fromkeys(lanes.values()))
    hover: list[list[str]] = []
    for call in calls:
        reason = call.reason
        changed = ": ".join(filter(None, (reason.leaf, reason.change))) if reason.leaf else str(reason)
        hover.append(["<br>".join(map(markup, (call.id, str(call.place or ""), changed)))])
    starts = [clock.at(call.start) for call in calls]
    for step, title, colour in STEPS:
        seconds = [getattr(call, step) for call in calls]
        chart.add_bar(
            orientation="h",
            name=title,
            y=[lanes[id(call)] for call in calls],
            x=seconds,
            base=starts,
            marker={"color": colour, "line": {"color": colour, "width": 0.8}},
            customdata=hover,
            hovertemplate=f"{title} %{{x:.3g}} s<br>%{{customdata[0]}}<extra></extra>",
        )
        starts = [start + took for start, took in zip(starts, seconds, strict=True)]  # the steps follow each other
    chart.update_layout(
        barmode="overlay",
        bargap=0.35,
        height=110 + _CHART_ROW * max(len(names), 1),
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


def _cells(ledger: Ledger, calls: Sequence[Call], clock: Clock) -> list[tuple[str, float, float]]:
    """Return (label, start, end) on the axis for the latest cells, or for the calls' places if no cell is recorded."""
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
    """Return a plotly shape for each cell: its background, with its name if there is room."""
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


WIDTH = 960
_ROW = 26
_BARS_SHOWN = 12
_NAME, _BARS = 190, 250  # pixels


def picture(calls: Sequence[Call], invites: bool = False) -> str:
    """Return the picture of a ledger's calls as SVG; `invites` adds a hint at the interactive view."""
    groups, verdict = group_by_family(calls), verdict_of(calls)
    parts = [text(16, 28, cut_end(flat(verdict.text), 110), "f" if verdict.kind == "again" else "b")]
    y = 46.0
    if verdict.cause:
        parts.append(text(16, y + 4, cut_end(flat(verdict.cause), 120)))
        y += 22
    if verdict.cure:
        parts.append(text(16, y + 4, cut_end(f"fix: {verdict.cure.splitlines()[0]}", 120), "m"))
        y += 22
    y += 6
    # Calls that missed the cache without a compile may have no seconds, and nothing is divided by 0.
    longest = max((group.seconds for group in groups), default=0) or 1
    for group in groups[:_BARS_SHOWN]:
        parts += _bar(group, y, longest)
        y += _ROW
    if len(groups) > _BARS_SHOWN:
        rest = groups[_BARS_SHOWN:]
        parts.append(text(16, y + 13, f"and {len(rest):,} more: {duration_text(sum(g.seconds for g in rest))}", "m"))
        y += _ROW
    parts += _key(y + 8, invites)
    return canvas(WIDTH, y + 36, parts)


def _bar(group: Group, y: float, longest: float) -> list[str]:
    name = cut_end(group.family.name, 20)
    parts = [text(16, y + 13, name, "b"), text(16 + 7.3 * (len(name) + 1), y + 13, f"×{group.compiles:,}", "m")]
    x = 16.0 + _NAME
    for step, _, colour in STEPS:
        width = _BARS * sum(getattr(call, step) for call in group.calls) / longest
        parts.append(box(x, y + 2, width, 14, colour, 1))
        x += width
    parts.append(text(x + 8, y + 13, duration_text(group.seconds), "m"))
    if cause := flat(cause_of(group)):
        # Right of the bar, which is at most as long as `_BARS`.
        at = 16.0 + _NAME + _BARS + 78
        parts.append(text(at, y + 13, cut_end(cause, int((WIDTH - 16 - at) / 7.3)), "f"))
    return parts


def _key(y: float, invites: bool) -> list[str]:
    parts: list[str] = []
    x = 16.0
    for _, name, colour in STEPS:
        parts += [box(x, y, 12, 10, colour, 2), text(x + 18, y + 9, name, "m")]
        x += 34 + 7.3 * len(name)
    if invites:
        parts.append(text(x + 12, y + 9, "trust the notebook for the interactive view", "m"))
    return parts


def describe_picture(calls: Sequence[Call]) -> str:
    """Return the picture in words: what recompiled most, the cause, and the compiles of the first functions."""
    verdict = verdict_of(calls)
    counts = [f"{group.family.name} compiled {times(group.compiles)}" for group in group_by_family(calls)[:_BARS_SHOWN]]
    return ". ".join(filter(None, (flat(verdict.text), flat(verdict.cause), "; ".join(counts))))


_MOST = 100  # rows of a table


def fragment(ledger: Ledger, link: LedgerLink | None = None, invites: bool = True) -> str:
    """Return the HTML of a ledger's view, without the page around it; with a link, it can send requests to Python."""
    if link is not None:
        data = encode_message(link.data())
        return interactive(link.id, data, static(link.tables.fold.calls, invites), "ledger")
    tables, left_out = tables_of(ledger)
    data = encode_message(message_of(ledger, tables, None, left_out))
    name = blake2b(data, digest_size=8).hexdigest()
    return interactive(name, data, static(tables.fold.calls, invites), "ledger")


def static(calls: Sequence[Call], invites: bool = True) -> str:
    """Return an image with its description, and tables: HTML that every sanitizer keeps."""
    cure = f"<pre>{escape(cure)}</pre>" if (cure := verdict_of(calls).cure) else ""
    shown = static_html(picture(calls, invites), describe_picture(calls), tables(calls), cure)
    return f'<div class="explorer-static">{shown}</div>'


def tables(calls: Sequence[Call]) -> list[Table]:
    """Return a table of functions with their costs, and one of recompiles if there are any; nothing without calls."""
    groups = group_by_family(calls)
    if not groups:
        return []
    compiles = [_compile(call, calls[0].start) for group in groups for call in group.calls if call.is_again]
    left = len(compiles) - _MOST
    head = ("function", "compiles", "seconds", "trace", "lower", "XLA", "why again", "fix", "first at")
    again = ("compile", "after", "seconds", "what changed", "before", "after", "where", "line")
    tables = [Table("what compiled, by function", head, [_row(group) for group in groups[:_MOST]])]
    if compiles:
        more = f"and {left:,} more" if left > 0 else ""
        tables.append(Table("recompiles", again, compiles[:_MOST], more))
    return tables


def _row(group: Group) -> tuple[str, ...]:
    sums = (sum(getattr(call, step) for call in group.calls) for step in ("trace", "lower", "compile"))
    place = next((str(call.place) for call in group.calls if call.place), "")
    seconds = duration_text(group.seconds)
    why, cure = plain(cause_of(group)), cure_of(group)
    return (group.family.name, f"{group.compiles:,}", seconds, *map(duration_text, sums), why, cure, place)


def _compile(call: Call, start: float) -> tuple[str, ...]:
    place, reason = call.place, call.reason
    what = reason.leaf or reason.text or reason.kind
    where, line = (str(place), place.text) if place else ("", "")
    after = f"+{call.start - start:.1f} s"
    return (
        call.id or call.family.name, after, duration_text(call.seconds), what, reason.before, reason.after, where, line
    )  # fmt: skip
