"""How comparisons are shown: how many times as long as the baseline each takes, with the interval of that."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.model.results.timing import Comparison, Ratio
from explorer.model.text import cut_end
from explorer.model.units import duration_text
from explorer.view.chart import Table
from explorer.view.figure import BLUE, GREY, INK, ORANGE, Band, Figure, Label, Mark, Panel, Points, rows_of_text
from explorer.view.interface import FigureView
from explorer.view.measure.environment import machine_text
from explorer.view.measure.samples import SAMPLE_COLUMNS, sample_rows
from explorer.view.scale import Scale, ratio_scale, rows_scale

_WIDTH, _TOP, _ROW = 860, 96, 34
_LEFT, _RIGHT, _VERDICT = 236, 580, 604  # of the axis, and where the verdicts begin


class ComparisonView(FigureView[Comparison]):
    """A row for each name, on an axis of ratios, with a line where they are equal."""

    def title(self, value: Comparison) -> str:
        return f"comparison of {', '.join(value.samples)}"

    def description(self, value: Comparison) -> str:
        return ". ".join([value.headline, *(f"{ratio.name}: {ratio}" for ratio in value)])

    def tables(self, value: Comparison) -> Sequence[Table]:
        ratios = [
            (ratio.name, f"{ratio.ratio:.4g}", f"{ratio.low:.4g} … {ratio.high:.4g}", str(ratio)) for ratio in value
        ]
        tables = [
            Table("times", ("name", *SAMPLE_COLUMNS), sample_rows(value.samples.items())),
            Table(f"ratios to {value.baseline}", ("name", "ratio", "interval", "in words"), ratios),
        ]
        notes = [Table("notes", ("what to know",), [(note,) for note in value.notes])]
        return tables + notes * bool(value.notes)

    def figure(self, value: Comparison) -> Figure:
        page = Figure(_WIDTH)
        of = f"{value.signature}: " if value.signature not in ("", "()") else ""
        page.text(24, 34, cut_end(value.headline, 74), size=19.0, bold=True)
        heading = f"{cut_end(of, 70)}times as long as {value.baseline}, {value.rounds:,} rounds in turns"
        page.text(24, 56, heading, size=12.5, colour=GREY)
        marks: list[Mark] = [
            Label(1.0, 0.0, "← faster", GREY, 11.5, anchor="end", dx=-8, dy=-12),
            Label(1.0, 0.0, "slower →", GREY, 11.5, dx=8, dy=-12),
        ]
        for number, (name, samples) in enumerate(value.samples.items()):
            at, y, took = number + 0.5, _TOP + _ROW * (number + 0.5), duration_text(samples.median)
            page.text(24, y + 4, cut_end(name, 18), size=13.0, bold=True)
            page.text(_LEFT - 18, y + 4, took, colour=GREY, anchor="end")
            if name == value.baseline:
                marks.append(Points([1.0], [at], INK, "diamond", 6, hover=[f"the baseline: {took}"]))
                page.text(_VERDICT, y + 4, "the baseline", colour=GREY)
                continue
            ratio = value.ratios[name]
            colour, hover = _colour(ratio), [f"{name}: {ratio}\n{took}"]
            marks.append(Band(ratio.low, ratio.high, at - 0.18, at + 0.18, colour, rounded=6))
            marks.append(Points([ratio.ratio], [at], colour, radius=5, hollow=ratio.is_same, hover=hover))
            page.text(_VERDICT, y + 4, str(ratio), colour=colour, bold=True)
        bottom = _TOP + _ROW * len(value.samples)
        rows = rows_scale(len(value.samples))
        page.panels.append(Panel(_LEFT, _RIGHT, _TOP, bottom, _scale(value), rows, marks, grid="x", strong=1))
        page.text(24, bottom + 40, machine_text(value.environment, has_cores=True), size=11.0, colour=GREY)
        page.height = rows_of_text(page, bottom + 62, [f"note: {note}" for note in value.notes]) - 2
        return page


def _colour(ratio: Ratio) -> str:
    return GREY if ratio.is_same else BLUE if ratio.ratio < 1 else ORANGE


def _scale(compared: Comparison) -> Scale:
    """All intervals, 1, and some room."""
    low = min([1.0, *(ratio.low for ratio in compared)])
    high = max([1.0, *(ratio.high for ratio in compared)])
    room = max((high / low) ** 0.08, 1.02)
    return ratio_scale(low / room, high * room, _RIGHT - _LEFT)
