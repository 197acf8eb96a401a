"""Views of `what_if`: a row for each variant, its time relative to the plain one, its memory and more."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import isfinite
from typing import Any

from explorer.model.results.sweep import Variant, WhatIf, known_text, size_text
from explorer.model.text import cut_end
from explorer.model.units import duration_text
from explorer.view.chart import Table
from explorer.view.diff import facts
from explorer.view.figure import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    Band,
    Bars,
    Figure,
    Label,
    Mark,
    Panel,
    Points,
    machine_text,
    rows_of_text,
)
from explorer.view.figure import headline as add_headline
from explorer.view.interface import FigureView, View
from explorer.view.scale import Scale, ratio_scale, rows_scale

_WIDTH, _ROW = 960, 32
_NAME, _LEFT, _RIGHT, _RATIO = 24, 216, 424, 440  # the names, the axis of ratios from and to, the ratios as text
_TIME, _MEMORY, _BAR, _COMPILE, _KERNELS, _DIFFERENCE = 590, 612, 56, 784, 832, 936
_FARTHEST = 4.0  # an interval is drawn no farther than this factor beyond the ratios
_LETTER = 7.6
_LARGE = 6_000  # instructions: the difference of larger programs is computed on request only
_MOST = 24  # rows with what differs


class WhatIfView(FigureView[WhatIf]):
    """The picture, and below each row what the compiler did differently."""

    def title(self, value: WhatIf) -> str:
        return f"what if: {value.function}"

    def chart_text(self, value: WhatIf) -> str:
        return f"what if: {value.function}, {len(value):,} variants"

    def figure(self, value: WhatIf) -> Figure:
        return figure(value)

    def description(self, value: WhatIf) -> str:
        verdicts = (f"{row.name} {row.verdict(value.plain)}" for row in value.variants)
        return ". ".join([f"{value.function}: {value.headline}", *verdicts])

    def tables(self, value: WhatIf) -> Sequence[Table]:
        head, *rows = value.table()
        verdicts = ["", *(row.verdict(value.plain) for row in value.variants)]
        cells = [[*row, verdict] for row, verdict in zip(rows, verdicts, strict=True)]
        title = f"{value.function}: {len(rows):,} variants as a table"
        return [Table(title, [*head, "what it brings"], cells, " · ".join(value.notes))]

    def html(self, value: WhatIf) -> str:
        rows = "".join(_disclosure(row, value.plain) for row in value.variants[:_MOST])
        return f'<div class="explorer-static">{super().html(value)}{rows}</div>'

    def output(self, value: WhatIf) -> dict[str, Any]:
        return View.output(self, value)  # not the chart: behind its rows there is nothing


def figure(what_if: WhatIf) -> Figure:
    """Return the figure: relative times if measured, and the other figures of each variant."""
    page = Figure(_WIDTH)
    first, _, rest = what_if.headline.partition("; ")
    top = add_headline(page, first, rest, _subtitle(what_if)) + 22
    bottom = top + _ROW * len(what_if)
    is_timed = what_if.plain.steady is not None
    for head, x, anchor in _heads(what_if, is_timed):
        page.text(x, top - 12, head, size=11.5, colour=GREY, anchor=anchor)
    if is_timed:
        page.panels.append(_times(what_if, top, bottom))
    for number, row in enumerate(what_if):
        _row(page, what_if, row, top + _ROW * (number + 0.5), is_timed)
    notes = [f"{row.name}: {note}" for row in what_if for note in row.notes] + [*what_if.notes]
    y = bottom + (38 if is_timed else 22)
    page.height = rows_of_text(page, y, [f"note: {note}" for note in notes]) + 4
    return page


def _heads(what_if: WhatIf, is_timed: bool) -> list[tuple[str, float, str]]:
    """Return (text, x, anchor) of each column's heading, x in pixels."""
    heads = [("memory", _MEMORY, "start"), ("compile", _COMPILE, "end"), ("kernels", _KERNELS, "end")]
    time = "time" if is_timed else "least time, estimated" if isfinite(what_if.plain.least) else ""
    return [*heads, ("difference", _DIFFERENCE, "end"), *([(time, _TIME, "end")] if time else [])]


def _subtitle(what_if: WhatIf) -> str:
    """Return `step(x: f32[8]): each against the plain one, …`: the function, rounds and machine."""
    rounds = what_if.plain.steady.count if what_if.plain.steady else 0
    turns = f", {rounds:,} alternating rounds" if rounds and len(what_if) > 1 else ""
    where = machine_text(what_if.environment)
    of = cut_end(f"{what_if.function}{what_if.signature}", 80)
    return f"{of}: each against the plain one{turns}" + f" · {where}" * bool(where)


def time_scale(what_if: WhatIf) -> Scale:
    """Return the scale of the ratios: intervals are cut if they are much longer, and 1 is included."""
    ratios = [row.ratio for row in what_if if row.ratio is not None]
    low, high = (pick((ratio.ratio for ratio in ratios), default=1.0) for pick in (min, max))
    low = max(min([low, *(ratio.low for ratio in ratios)]), low / _FARTHEST)
    high = min(max([high, *(ratio.high for ratio in ratios)]), high * _FARTHEST)
    # The axis always shows 1, with room on both sides.
    low, high = min(low, 0.95), max(high, 1.05)
    room = (high / low) ** 0.06
    return ratio_scale(low / room, high * room, _RIGHT - _LEFT)


def _times(what_if: WhatIf, top: float, bottom: float) -> Panel:
    scale = time_scale(what_if)
    marks: list[Mark] = [
        Label(1.0, 0.0, "← faster", GREY, 11.5, anchor="end", dx=-8, dy=-12),
        Label(1.0, 0.0, "slower →", GREY, 11.5, dx=8, dy=-12),
    ]
    for number, row in enumerate(what_if):
        y = number + 0.5
        if row.error:
            room = int((_DIFFERENCE - _LEFT) / _LETTER)
            marks.append(Label(scale.low, y, cut_end(row.error, room), ORANGE, bold=True, dy=4, halo=True))
            continue
        if row.ratio is None:
            marks.append(Points([1.0], [y], INK, "diamond", 6, hover=[f"plain: {duration_text(row.seconds)}"]))
            continue
        ratio, colour = row.ratio, _colour(row.time_saved)
        low, high = max(ratio.low, scale.low), min(ratio.high, scale.high)
        hover = [f"{row.name}: {ratio}\n{duration_text(row.seconds)}"]
        marks += [
            Band(low, high, y - 0.19, y + 0.19, colour, rounded=6),
            Points([ratio.ratio], [y], colour, radius=5, hollow=row.time_saved == 0, hover=hover),
        ]
    return Panel(_LEFT, _RIGHT, top, bottom, scale, rows_scale(len(what_if)), marks, grid="x", strong=1)


def _row(page: Figure, what_if: WhatIf, row: Variant, y: float, is_timed: bool) -> None:
    """Draw the name and the figures of a row, or its error."""
    page.text(_NAME, y + 4, cut_end(row.name, 25 if is_timed else 60), size=13.0, bold=True)
    if row.error and not is_timed:  # otherwise the panel has it
        page.text(_LEFT, y + 4, cut_end(row.error, int((_DIFFERENCE - _LEFT) / _LETTER)), colour=ORANGE, bold=True)
    if row.error:
        return
    if is_timed:
        page.text(_TIME, y + 4, known_text(row.seconds, duration_text), anchor="end")
        page.text(_RATIO, y + 4, _ratio_text(row), colour=_colour(row.time_saved), bold=row.time_saved != 0)
    elif isfinite(row.least):
        page.text(_TIME, y + 4, duration_text(row.least), anchor="end")
    kernels = "–" if row.kernels is None else f"{row.kernels:,}"
    compile_seconds = known_text(row.compile_seconds, duration_text)
    for x, text in ((_COMPILE, compile_seconds), (_KERNELS, kernels), (_DIFFERENCE, str(row.difference or ""))):
        page.text(x, y + 4, text, colour=GREY, anchor="end")
    _memory_bar(page, what_if, row, y)


def _memory_bar(page: Figure, what_if: WhatIf, row: Variant, y: float) -> None:
    """Draw the peak of a row's memory relative to the greatest, if known."""
    most = max((other.peak for other in what_if if isfinite(other.peak)), default=0.0)
    if isfinite(row.peak) and most > 0:
        saved, width = row.saved(what_if.plain), max(_BAR * row.peak / most, 1.5)
        hover = [f"{row.name}: memory {size_text(row.peak)}"]
        page.page.append(Bars([(_MEMORY, _MEMORY + width, y - 7, y + 7)], _colour(saved), 1 if saved else 0.35, hover))
        colour = _colour(saved) if saved else INK
        page.text(_MEMORY + _BAR + 8, y + 4, size_text(row.peak), colour=colour, bold=bool(saved))


def _colour(saved: float) -> str:
    """Return blue for savings, orange for costs, grey where no difference is seen."""
    return GREY if not saved else BLUE if saved > 0 else ORANGE


def _ratio_text(row: Variant) -> str:
    return "same program" if row.is_same else f"{row.ratio.ratio:.2f}×" if row.ratio is not None else ""


def _disclosure(row: Variant, plain: Variant) -> str:
    """Return a variant's verdict as HTML, which unfolds to what the compiler did differently."""
    notes = "".join(f"<p>{escape(note)}</p>" for note in row.notes)
    return (
        f"<details><summary><b>{escape(row.name)}</b>: {escape(row.verdict(plain))}</summary>"
        f"{notes}{'' if row.error else _difference(row)}</details>"
    )


def _difference(row: Variant) -> str:
    opens = f'<p><code>["{escape(row.name)}"].diff</code> opens both programs side by side.</p>'
    if row.capture is None or len(row.capture.hlo.graph) > _LARGE:
        return opens
    return facts(row.diff, ("plain", row.name)) + opens
