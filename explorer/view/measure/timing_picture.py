"""A timing as a static picture: its result in words, the warm-up curve, the samples, and the first call's steps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from explorer.model.results.timing import STEPS, Samples, Timing
from explorer.model.units import duration_text, factor_text, range_text
from explorer.view.drawing import STEPS as COLOURS
from explorer.view.drawing import box, canvas, shortened
from explorer.view.measure.strokes import (
    BLUE,
    FIRST,
    GREY,
    INK,
    ORANGE,
    RUN,
    circle,
    diamond,
    line,
    log_ticks,
    words,
    wrapped,
)  # fmt: skip

__all__ = [
    "STEP_COLOURS", "curve", "described", "heading", "histogram", "machine_of", "picture", "result", "rows_of",
    "samples_text", "sure_text",
]  # fmt: skip

STEP_COLOURS = {**{step: colour for step, _, colour in COLOURS}, "run": RUN}

_WIDTH = 860
_TOP, _HEIGHT = 84, 196  # of the two panels
_LEFT, _RIGHT = 62, 500  # of the curve
_BARS_LEFT, _BARS_RIGHT = 590, 832
_EAGER, _NEXT = 10, 24  # calls that the curve shows
_BINS = 22


def result(timing: Timing) -> str:
    """The result in as few words as it takes: `41.2 ms compiled, 3.4× faster than eager`."""
    compiled = f"{duration_text(timing.steady.median)} compiled"
    interval, speedup = timing.speedup_interval, timing.speedup
    if interval is None or speedup is None:
        return compiled
    if interval[0] <= 1 <= interval[1]:
        return f"{compiled}, no faster or slower than eager"
    factor = factor_text(speedup if speedup > 1 else 1 / speedup)
    return f"{compiled}, {factor} {'faster' if speedup > 1 else 'slower'} than eager"


def heading(timing: Timing) -> str:
    """What was timed, what its first call cost, and when that is paid for."""
    return f"{shortened(f'{timing.function}{timing.signature}', 64)}: {_paid(timing)}"


def _paid(timing: Timing) -> str:
    took = duration_text(timing.first_call.median)
    first = f"the {took} first call"
    if timing.eager is None:
        return f"the first call took {took}"
    calls = timing.break_even
    return f"{first} is never paid for" if calls is None else (
        f"{first} has paid for itself after {calls:,} call{'s' * (calls != 1)}"
    )  # fmt: skip


def curve(timing: Timing) -> tuple[list[float], list[float]]:
    """Seconds of the eager calls, and of the compiled ones from the first on: those that the warm-up curve shows."""
    eager = [*timing.eager.samples[:_EAGER]] if timing.eager is not None else []
    first = list(timing.warm_up) or [timing.first_call.median]
    return eager, [*first, *timing.steady.samples][: 1 + _NEXT]


def histogram(samples: Samples, bins: int = _BINS) -> tuple[list[int], list[float], int]:
    """How many samples are in each bin, the bins' borders, and how many outliers are beyond the last one."""
    values = np.asarray(samples.samples)
    reach = max(4 * samples.spread * samples.median, 1.2 * (samples.high - samples.median), 0.01 * samples.median)
    low = max(float(values.min()), samples.median - reach)
    high = max(min(float(values.max()), samples.median + 1.5 * reach), samples.high)
    if not high > low:
        low, high = 0.98 * samples.median, 1.02 * samples.median
    counts, borders = np.histogram(values, bins, (low, high))
    return counts.tolist(), borders.tolist(), int((values > high).sum() + (values < low).sum())


def picture(timing: Timing) -> str:
    """The whole picture, as SVG."""
    notes = wrapped([f"note: {note}" for note in timing.notes], 128, 4)
    stages_at = _TOP + _HEIGHT + 66
    height = stages_at + 62 + 17 * len(notes) + (6 if notes else 0)
    parts = [
        words(24, 34, result(timing), size=20, bold=True),
        words(24, 56, heading(timing), size=12.5, fill=GREY),
        *_curve(timing),
        *_samples(timing.steady),
        *_stages(timing, stages_at),
    ]
    parts += [words(24, stages_at + 70 + 17 * i, note, size=11.5, fill=GREY) for i, note in enumerate(notes)]
    return canvas(_WIDTH, height, parts)


def described(timing: Timing) -> str:
    """The picture in words."""
    steady = timing.steady
    stages = ", ".join(f"{step} {duration_text(timing.stages[step])}" for step in STEPS if step in timing.stages)
    return (
        f"{timing.headline}. The steady median of {steady.count:,} samples lies in "
        f"{range_text(steady.low, steady.high)}. First call: {stages}."
    )


def _curve(timing: Timing) -> list[str]:
    eager, compiled = curve(timing)
    low, high = min(*eager, *compiled) / 1.4 if eager else min(compiled) / 1.4, max(*eager, *compiled, 0.0) * 1.6
    bottom = _TOP + _HEIGHT

    def y(seconds: float) -> float:
        return bottom - _HEIGHT * math.log(seconds / low) / math.log(high / low)

    step = (_RIGHT - _LEFT) / (len(eager) + len(compiled) + 2.5)
    at_eager = [_LEFT + step * (i + 0.8) for i in range(len(eager))]
    start = _LEFT + step * (len(eager) + (1.6 if eager else 0.8))
    at = [start + step * (i + (0.9 if i else 0)) for i in range(len(compiled))]
    parts = [
        part
        for tick, name in log_ticks(low, high)
        for part in (
            line(_LEFT, y(tick), _RIGHT, y(tick), GREY, opacity=0.18),
            words(_LEFT - 8, y(tick) + 4, name, size=11, fill=GREY, at="end"),
        )
    ]
    if timing.eager is not None and eager:
        parts += _level(timing.eager, at_eager[0] - 6, at[-1] + 8, y(timing.eager.median), ORANGE, "4 4")
        parts += [circle(x, y(one), 3.6, ORANGE, hollow=True) for x, one in zip(at_eager, eager, strict=True)]
        parts.append(words(at_eager[0] - 4, bottom + 18, "eager calls", fill=ORANGE, bold=True))
    parts += _level(timing.steady, at[min(1, len(at) - 1)] - 6, at[-1] + 8, y(timing.steady.median), BLUE)
    parts.append(line(at[0], y(compiled[0]), at[0], bottom, FIRST, 1.5, opacity=0.5))
    parts += [circle(x, y(one), 3.4, BLUE) for x, one in zip(at[1:], compiled[1:], strict=True)]
    parts.append(diamond(at[0], y(compiled[0]), 6.5, FIRST))
    parts.append(
        words(at[0] + 12, y(compiled[0]) + 4, f"first call {duration_text(compiled[0])}", fill=FIRST, bold=True)
    )
    parts.append(words(at[-1], bottom + 18, "compiled calls", fill=BLUE, bold=True, at="end"))
    parts.append(line(_LEFT, bottom, _RIGHT, bottom, GREY, opacity=0.5))
    return parts


def _level(samples: Samples, x: float, to_x: float, at: float, colour: str, dash: str = "") -> list[str]:
    """The median as a line with its figure at the end."""
    return [
        line(x, at, to_x, at, colour, 1.5, dash, 0.7),
        words(to_x + 5, at + 4, duration_text(samples.median), fill=colour, bold=True),
    ]


def _samples(steady: Samples) -> list[str]:
    counts, borders, beyond = histogram(steady)
    low, high = borders[0], borders[-1]
    bottom = _TOP + _HEIGHT
    top = _TOP + 34

    def x(seconds: float) -> float:
        return _BARS_LEFT + (_BARS_RIGHT - _BARS_LEFT) * (min(max(seconds, low), high) - low) / (high - low)

    tallest = max(counts)
    wide = (_BARS_RIGHT - _BARS_LEFT) / len(counts)
    band = box(x(steady.low), top - 6, max(x(steady.high) - x(steady.low), 2), bottom - top + 6, BLUE, 2, 0.16)
    bars = [
        box(x(borders[i]) + 0.5, bottom - tall, wide - 1, round(tall, 1), BLUE, 1)
        for i, n in enumerate(counts)
        if (tall := (bottom - top) * n / tallest)
    ]
    middle = x(steady.median)
    last = f"{duration_text(high)}{f', {beyond} beyond' if beyond else ''}"
    return [
        words(_BARS_LEFT, _TOP + 2, samples_text(steady), bold=True),
        words(_BARS_LEFT, _TOP + 19, sure_text(steady), size=11.5, fill=BLUE),
        band, *bars,
        line(middle, top - 6, middle, bottom, INK, 1.6),
        line(_BARS_LEFT, bottom, _BARS_RIGHT, bottom, GREY, opacity=0.5),
        words(_BARS_LEFT, bottom + 18, duration_text(low), size=11, fill=GREY),
        words(_BARS_RIGHT, bottom + 18, last, size=11, fill=GREY, at="end"),
    ]  # fmt: skip


def _stages(timing: Timing, top: float) -> list[str]:
    whole = sum(timing.stages.values())
    if not whole:
        return []
    x, right = 24.0, float(_BARS_RIGHT)
    legend = x + 150
    parts = [words(24, top - 10, f"first call {duration_text(whole)}", fill=FIRST, bold=True)]
    for step in STEPS:
        if step not in timing.stages:
            continue
        wide = (right - 24) * timing.stages[step] / whole
        parts.append(box(x, top, max(wide - 1.5, 0.8), 20, STEP_COLOURS[step], 3))
        x += wide
        name = f"{'XLA compile' if step == 'compile' else step} {duration_text(timing.stages[step])}"
        parts.append(box(legend, top - 20, 10, 10, STEP_COLOURS[step], 2))
        parts.append(words(legend + 15, top - 10.5, name))
        legend += 36 + 6.7 * len(name)
    told = machine_of(timing.environment)
    return [*parts, words(24, top + 42, told, size=11, fill=GREY)] if told else parts


def machine_of(environment: Mapping[str, str]) -> str:
    """`cpu · 2 cores · jax 0.10.2`."""
    cores = f"{environment['cores']} cores" if "cores" in environment else ""
    jax = f"jax {environment['jax']}" if "jax" in environment else ""
    return " · ".join(one for one in (environment.get("device", ""), cores, jax) if one)


def samples_text(samples: Samples) -> str:
    each = f" of {samples.calls:,} calls" if samples.calls > 1 else ""
    return f"{samples.count:,} steady sample{'s' * (samples.count != 1)}{each}"


def sure_text(samples: Samples) -> str:
    return f"median {range_text(samples.low, samples.high)}, {samples.attained * 100:.0f} % sure"


def rows_of(values: Iterable[tuple[str, Samples]]) -> list[tuple[str, ...]]:
    """A table's rows: what, its median, interval, fastest and how many."""
    return [
        (
            name, duration_text(one.median), range_text(one.low, one.high), duration_text(one.fastest),
            f"±{one.spread * 100:.1f} %", f"{one.count:,}", f"{one.calls:,}",
        )
        for name, one in values
    ]  # fmt: skip
