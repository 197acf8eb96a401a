"""Figure of a timeline of operations: how many ran when, one by one or compiled, and compiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explorer.model.results.hot_paths import OperationTimeline, ThreadOperations
from explorer.model.text import cut_end
from explorer.model.units import duration_text
from explorer.view.chart import Table
from explorer.view.figure import BLUE, FIRST, GREY, ORANGE, Bars, Figure, Label, Mark, Panel, headline
from explorer.view.interface import FigureView
from explorer.view.scale import Scale, rows_scale, scale_of

_WIDTH, _LEFT, _RIGHT = 960, 96, 930
_LANE, _ROW = 120, 20  # pixels of a thread, and of a compile
_MOST_THREADS, _MOST_COMPILES, _MOST_OPERATIONS = 6, 12, 12


class OperationTimelineView(FigureView[OperationTimeline]):
    def title(self, value: OperationTimeline) -> str:
        return f"operations of {value.name}"

    def figure(self, value: OperationTimeline) -> Figure:
        return _figure(value)

    def description(self, value: OperationTimeline) -> str:
        return f"{value.name}: {value.headline}"

    def tables(self, value: OperationTimeline) -> Sequence[Table]:
        rows = [
            (f"{name} (compiled)" if is_compiled else name, f"{count:,}")
            for (name, is_compiled), count in list(value.counts.items())[:_MOST_OPERATIONS]
        ]
        compiles = [(c.function, duration_text(c.start), duration_text(c.end - c.start)) for c in value.compiles]
        tables = [Table("operations, the most frequent first", ("operation", "times"), rows)]
        return [*tables, Table("compiles", ("function", "began at", "took"), compiles)] if compiles else tables


def _figure(value: OperationTimeline) -> Figure:
    page = Figure(_WIDTH)
    part = (value.end - value.start) / max((len(thread.single) for thread in value.threads), default=1)
    y = headline(page, value.headline, "", f"{value.name}: operations in each {duration_text(part)}")
    has_compiled = any(sum(thread.compiled) for thread in value.threads)
    keys = [("one by one", ORANGE, True), ("compiled functions", BLUE, has_compiled)]
    x = 24
    for text, colour, is_there in [*keys, ("compiling", FIRST, bool(value.compiles))]:
        if is_there:
            page.swatch(x, y, 10, colour)
            page.text(x + 16, y + 9, text, size=11.5, colour=GREY)
            x += 40 + 7 * len(text)
    y += 30
    across = scale_of([value.end - value.start], duration_text, room=0.0)
    across = Scale(0.0, (value.end - value.start) or 1.0, across.ticks, across.texts)
    for thread in value.threads[:_MOST_THREADS]:
        page.text(24, y + 10, thread.thread, size=12.5, bold=True)
        page.panels.append(_panel(value, thread, across, y + 20))
        y += _LANE + 52
    if value.compiles:
        y = _compiles(page, value, across, y)
    page.height = y + 16
    return page


def _panel(value: OperationTimeline, thread: ThreadOperations, across: Scale, top: float) -> Panel:
    totals = [single + compiled for single, compiled in zip(thread.single, thread.compiled, strict=True)]
    highest = max(totals, default=1) or 1
    up = scale_of([0.0, float(highest)], "{:g}".format, most=3)
    up = Scale(0.0, max(up.high, 1.0), up.ticks, up.texts)
    wide = (value.end - value.start or 1.0) / len(totals)
    marks: list[Mark] = [
        Bars(list(_boxes(thread.single, [0] * len(totals), wide)), ORANGE, rounded=0),
        Bars(list(_boxes(thread.compiled, thread.single, wide)), BLUE, rounded=0),
    ]
    return Panel(_LEFT, _RIGHT, top, top + _LANE, across, up, [mark for mark in marks if mark.boxes])  # pyright: ignore


def _boxes(counts: Sequence[int], below: Sequence[int], wide: float) -> Iterator[tuple[float, float, float, float]]:
    for part, (count, under) in enumerate(zip(counts, below, strict=True)):
        if count:
            yield part * wide, (part + 1) * wide, float(under + count), float(under)


def _compiles(page: Figure, value: OperationTimeline, across: Scale, y: float) -> float:
    longest = sorted(value.compiles, key=lambda each: each.start - each.end)[:_MOST_COMPILES]
    shown = sorted(longest, key=lambda each: each.start)
    more = len(value.compiles) - len(shown)
    page.text(24, y + 10, "compiles" + (f", the longest {len(shown)}" if more else ""), size=12.5, bold=True)
    least = (across.high - across.low) / (_RIGHT - _LEFT)  # a pixel
    marks: list[Mark] = []
    for row, each in enumerate(shown):
        start, end = each.start - value.start, each.end - value.start
        hover = [f"{each.function}: {duration_text(end - start)}"]
        marks.append(Bars([(start, max(end, start + least), row + 0.2, row + 0.8)], FIRST, hover=hover))
        # Near the right end, the text goes before its bar.
        is_late = start > 0.7 * across.high
        text = f"{cut_end(each.function, 40)}, {duration_text(end - start)}"
        anchor, at, dx = ("end", start, -6.0) if is_late else ("start", max(end, start + least), 6.0)
        marks.append(Label(at, row + 0.5, text, size=11.0, anchor=anchor, dx=dx, dy=4))
    bottom = y + 20 + _ROW * len(shown)
    page.panels.append(Panel(_LEFT, _RIGHT, y + 20, bottom, across, rows_scale(len(shown)), marks, grid=""))
    return bottom + 30
