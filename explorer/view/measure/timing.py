"""Timings and comparisons as figures: warm-up curve, steady samples, and ratios with their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from explorer.model.results.timing import STEPS, Comparison, Samples, Timing
from explorer.model.text import cut_end
from explorer.model.units import count_text, duration_text, range_text
from explorer.view.chart import Table
from explorer.view.figure import (
    BLUE,
    FIRST,
    GREY,
    INK,
    ORANGE,
    RUN,
    Band,
    Bars,
    Figure,
    Label,
    Mark,
    Panel,
    Path,
    Points,
    machine_text,
    rows_of_text,
)
from explorer.view.figure_svg import STEPS as STEP_STYLES
from explorer.view.interface import FigureView
from explorer.view.scale import Scale, log_ticks, ratio_scale, rows_scale

SAMPLE_COLUMNS = ("median", "interval", "fastest", "spread", "samples", "calls a sample")


def sample_rows(values: Iterable[tuple[str, Samples]]) -> list[tuple[str, ...]]:
    """Return a table row for each (name, samples): the name, then the texts of `SAMPLE_COLUMNS`."""
    return [
        (
            name, duration_text(each.median),
            f"{range_text(each.low, each.high)}{', too noisy' * each.is_too_noisy}",
            duration_text(each.fastest), f"±{each.spread * 100:.1f} %", f"{each.count:,}", f"{each.calls:,}",
        )
        for name, each in values
    ]  # fmt: skip


def _notes(notes: Sequence[str]) -> list[Table]:
    return [Table("notes", ("what to know",), [(note,) for note in notes])] if notes else []


_STEP_COLOURS = {**{step: colour for step, _, colour in STEP_STYLES}, "run": RUN}
_WIDTH, _TOP, _HEIGHT = 860, 84, 196  # of the picture, and of its two panels
_LEFT, _RIGHT = 62, 500  # of the curve
_BARS_LEFT, _BARS_RIGHT = 590, 832
_EAGER, _NEXT = 10, 24  # calls that the curve shows
_BINS = 22
_LINE = 14  # pixels from one text to the next


class TimingView(FigureView[Timing]):
    """The warm-up curve on a logarithmic axis, a histogram of the steady samples, and the first call's steps."""

    def title(self, value: Timing) -> str:
        return f"timing of {value.function}"

    def description(self, value: Timing) -> str:
        steady = value.steady
        stages = ", ".join(f"{step} {duration_text(value.stages[step])}" for step in STEPS if step in value.stages)
        where = "is uncertain, as samples are too noisy:" if steady.is_too_noisy else "is in"
        return (
            f"{value.headline}. The steady median of {steady.count:,} samples {where} "
            f"{range_text(steady.low, steady.high)}. First call: {stages}."
        )

    def tables(self, value: Timing) -> Sequence[Table]:
        figures = [("steady", value.steady), *([("eager", value.eager)] if value.eager is not None else [])]
        stages = [(step, duration_text(value.stages[step])) for step in STEPS if step in value.stages]
        stages.append(("first call", duration_text(value.first_call.median)))
        return [
            Table("calls", ("what", *SAMPLE_COLUMNS), sample_rows(figures)),
            Table("the first call, step by step", ("step", "time"), stages),
            *_notes(value.notes),
        ]

    def figure(self, value: Timing) -> Figure:
        page = Figure(_WIDTH)
        if value.steady.is_too_noisy:  # the interval is next to the samples, and the ratio in the description
            result = f"about {duration_text(value.steady.median)} compiled, too noisy"
        else:
            result = ", ".join(filter(None, (value.compiled_text, value.speedup_text)))
        took, calls = duration_text(value.first_call.median), value.break_even
        first = f"the first call took {took}"
        if value.speedup_text and calls is not None:
            first = f"the {took} first call pays off after {value.about}{count_text(calls, 'call')}"
        heading = f"{cut_end(f'{value.function}{value.signature}', 64)}: {first}"
        page.text(24, 34, result, size=20.0, bold=True)
        page.text(24, 56, heading, size=12.5, colour=GREY)
        page.panels += [_curve(value), _samples(page, value.steady)]
        y = _stages(page, value, _TOP + _HEIGHT + 66)
        page.height = rows_of_text(page, y + 20, [f"note: {note}" for note in value.notes]) - 2
        return page


def calls_shown(timing: Timing) -> tuple[list[float], list[float]]:
    """Return the seconds of the eager and of the compiled calls that the warm-up curve shows."""
    eager = [*timing.eager.samples[:_EAGER]] if timing.eager is not None else []
    first = list(timing.warm_up) or [timing.first_call.median]
    return eager, [*first, *timing.steady.samples][: 1 + _NEXT]


def histogram(samples: Samples, bins: int = _BINS) -> tuple[list[int], list[float], int]:
    """Return the number of samples in each bin, the bins' borders in seconds, and the number of samples outside of
    them.
    """
    values = np.asarray(samples.samples)
    reach = max(4 * samples.spread * samples.median, 1.2 * (samples.high - samples.median), 0.01 * samples.median)
    # Both ends hold the median's interval, which is drawn behind the bins.
    low = min(max(float(values.min()), samples.median - reach), samples.low)
    high = max(min(float(values.max()), samples.median + 1.5 * reach), samples.high)
    counts, borders = np.histogram(values, bins, (low, high))
    return counts.tolist(), borders.tolist(), int((values > high).sum() + (values < low).sum())


def _curve(timing: Timing) -> Panel:
    """Return the warm-up curve: calls across, one unit each, with gaps around the first compiled call."""
    eager, compiled = calls_shown(timing)
    low, high = min(*eager, *compiled, timing.steady.median) / 1.4, max(*eager, *compiled, 0.0) * 1.6
    ticks = log_ticks(low, high, 5)
    first = len(eager) + (1.6 if eager else 0.8)
    later = [first + 1.9 + i for i in range(len(compiled) - 1)]
    last = later[-1] if later else first
    across = Scale(0.0, len(eager) + len(compiled) + 2.5, (), ())
    up = Scale(low, high, tuple(ticks), tuple(map(duration_text, ticks)), True)
    marks: list[Mark] = []
    apart = 0.0  # pixels that each figure at the end of a line keeps from the other one
    if timing.eager is not None and eager:
        x = [i + 0.8 for i in range(len(eager))]
        between = up.at(timing.eager.median, 0.0, _HEIGHT) - up.at(timing.steady.median, 0.0, _HEIGHT)
        apart = math.copysign(max((_LINE - abs(between)) / 2, 0.0), between)
        marks += _level(timing.eager, x[0] - 0.3, last + 0.4, ORANGE, -apart, "dash")
        marks.append(Points(x, eager, ORANGE, radius=3.6, hollow=True, hover=_hover("eager", eager)))
        marks.append(Label(x[0] - 0.2, low, "eager calls", ORANGE, bold=True, dy=18))
    marks += _level(timing.steady, (later[0] if later else first) - 0.3, last + 0.4, BLUE, apart)
    marks += [
        Path([first, first], [low, compiled[0]], FIRST, 1.5, opacity=0.5),
        Points(later, compiled[1:], BLUE, radius=3.4, opacity=0.85, hover=_hover("compiled", compiled[1:])),
        Points([first], compiled[:1], FIRST, "diamond", 6, hover=_hover("first", compiled[:1])),
        Label(first, compiled[0], f"first call {duration_text(compiled[0])}", FIRST, bold=True, dx=12, dy=4),
        Label(last, low, "compiled calls", BLUE, bold=True, anchor="end", dy=18),
    ]
    return Panel(_LEFT, _RIGHT, _TOP, _TOP + _HEIGHT, across, up, marks)


def _hover(what: str, seconds: Sequence[float]) -> list[str]:
    return [f"{what} call: {duration_text(one)}" for one in seconds]


def _level(samples: Samples, x: float, to_x: float, colour: str, below: float, dash: str = "") -> list[Mark]:
    """Return the median as a line from `x` to `to_x`, and its value at the end, `below` pixels lower."""
    at = samples.median
    return [
        Path([x, to_x], [at, at], colour, 1.5, dash, 0.7),
        Label(to_x, at, duration_text(at), colour, bold=True, dx=5, dy=4 + below),
    ]


def _samples(page: Figure, steady: Samples) -> Panel:
    """Return the histogram, with the median and its interval."""
    counts, borders, beyond = histogram(steady)
    each = f" of {steady.calls:,} calls" if steady.calls > 1 else ""
    samples = f"{count_text(steady.count, 'steady sample')}{each}"
    sure = "too noisy" if steady.is_too_noisy else f"{steady.attained * 100:.0f} % sure"
    sure = f"median {range_text(steady.low, steady.high)}, {sure}"
    page.text(_BARS_LEFT, _TOP + 2, samples, bold=True)
    page.text(_BARS_LEFT, _TOP + 19, sure, size=11.5, colour=BLUE)
    low, high = borders[0], borders[-1]
    boxes = [(a, b, count, 0.0) for count, (a, b) in zip(counts, pairwise(borders), strict=True) if count]
    hover = [f"{count_text(count, 'sample')} of {range_text(a, b)}" for a, b, count, _ in boxes]
    tallest = 1.05 * max(counts)
    last = f"{duration_text(high)}{f', {beyond} beyond' if beyond else ''}"
    marks: list[Mark] = [
        Band(steady.low, steady.high, tallest, 0.0, BLUE, 0.16),
        Bars(boxes, BLUE, hover=hover, rounded=1),
        Path([steady.median, steady.median], [0.0, tallest], INK, 1.6),
        Path([low, high], [0.0, 0.0], GREY, opacity=0.5),
        Label(low, 0.0, duration_text(low), GREY, 11, dy=18),
        Label(high, 0.0, last, GREY, 11, anchor="end", dy=18),
    ]
    top, bottom = _TOP + 28, _TOP + _HEIGHT
    return Panel(_BARS_LEFT, _BARS_RIGHT, top, bottom, Scale(low, high, (), ()), Scale(0.0, tallest, (), ()), marks)


def _stages(page: Figure, timing: Timing, top: float) -> float:
    """Draw the first call as one bar of its steps, with a key; return the y where that ends."""
    whole = sum(timing.stages.values())
    if not whole:
        return top + 50
    x, right, key = 24.0, float(_BARS_RIGHT), 174.0
    page.text(24, top - 10, f"first call {duration_text(whole)}", colour=FIRST, bold=True)
    for step in (step for step in STEPS if step in timing.stages):
        wide, took = (right - 24) * timing.stages[step] / whole, duration_text(timing.stages[step])
        box = (x, x + max(wide - 1.5, 0.8), top, top + 20)
        page.page.append(Bars([box], _STEP_COLOURS[step], hover=[f"{step}: {took}"], rounded=3))
        x += wide
        name = f"{'XLA compile' if step == 'compile' else step} {took}"
        page.swatch(key, top - 20, 10, _STEP_COLOURS[step])
        page.text(key + 15, top - 10.5, name)
        key += 36 + 6.7 * len(name)
    page.text(24, top + 42, machine_text(timing.environment, has_cores=True), size=11.0, colour=GREY)
    return top + 50


_RATIOS_TOP, _ROW = 96, 34
_RATIOS_LEFT, _RATIOS_RIGHT, _VERDICT = 236, 580, 604  # of the axis, and where the verdicts begin


class ComparisonView(FigureView[Comparison]):
    """A row for each name, on an axis of ratios with a line at 1."""

    def title(self, value: Comparison) -> str:
        return f"comparison of {', '.join(value.samples)}"

    def description(self, value: Comparison) -> str:
        return ". ".join([value.headline, *(f"{ratio.name}: {ratio}" for ratio in value)])

    def tables(self, value: Comparison) -> Sequence[Table]:
        ratios = [
            (ratio.name, f"{ratio.ratio:.4g}", f"{ratio.low:.4g} … {ratio.high:.4g}", str(ratio)) for ratio in value
        ]
        return [
            Table("times", ("name", *SAMPLE_COLUMNS), sample_rows(value.samples.items())),
            Table(f"ratios to {value.baseline}", ("name", "ratio", "interval", "in words"), ratios),
            *_notes(value.notes),
        ]

    def figure(self, value: Comparison) -> Figure:
        page = Figure(_WIDTH)
        of = f"{value.signature}: " if value.signature not in ("", "()") else ""
        page.text(24, 34, cut_end(value.headline, 74), size=19.0, bold=True)
        heading = f"{cut_end(of, 70)}times as long as {value.baseline}, {value.rounds:,} alternating rounds"
        page.text(24, 56, heading, size=12.5, colour=GREY)
        marks: list[Mark] = [
            Label(1.0, 0.0, "← faster", GREY, 11.5, anchor="end", dx=-8, dy=-12),
            Label(1.0, 0.0, "slower →", GREY, 11.5, dx=8, dy=-12),
        ]
        for number, (name, samples) in enumerate(value.samples.items()):
            at, y, took = number + 0.5, _RATIOS_TOP + _ROW * (number + 0.5), duration_text(samples.median)
            page.text(24, y + 4, cut_end(name, 18), size=13.0, bold=True)
            page.text(_RATIOS_LEFT - 18, y + 4, took, colour=GREY, anchor="end")
            if name == value.baseline:
                marks.append(Points([1.0], [at], INK, "diamond", 6, hover=[f"the baseline: {took}"]))
                page.text(_VERDICT, y + 4, "the baseline", colour=GREY)
                continue
            ratio = value.ratios[name]
            colour = GREY if ratio.is_same else BLUE if ratio.ratio < 1 else ORANGE
            hover = [f"{name}: {ratio}\n{took}"]
            marks.append(Band(ratio.low, ratio.high, at - 0.18, at + 0.18, colour, rounded=6))
            marks.append(Points([ratio.ratio], [at], colour, radius=5, hollow=ratio.is_same, hover=hover))
            page.text(_VERDICT, y + 4, str(ratio), colour=colour, bold=True)
        bottom = _RATIOS_TOP + _ROW * len(value.samples)
        rows = rows_scale(len(value.samples))
        page.panels.append(
            Panel(_RATIOS_LEFT, _RATIOS_RIGHT, _RATIOS_TOP, bottom, _scale(value), rows, marks, grid="x", strong=1)
        )
        page.text(24, bottom + 40, machine_text(value.environment, has_cores=True), size=11.0, colour=GREY)
        page.height = rows_of_text(page, bottom + 62, [f"note: {note}" for note in value.notes]) - 2
        return page


def _scale(compared: Comparison) -> Scale:
    """Return a scale for all intervals and 1, with some room."""
    low = min([1.0, *(ratio.low for ratio in compared)])
    high = max([1.0, *(ratio.high for ratio in compared)])
    room = max((high / low) ** 0.08, 1.02)
    return ratio_scale(low / room, high * room, _RATIOS_RIGHT - _RATIOS_LEFT)
