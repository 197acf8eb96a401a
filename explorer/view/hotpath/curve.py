"""Curve of one function's calls: eager, both ways, compiled; as HTML without script, and as a figure.

HTML points are positioned elements, not SVG: a page that strips styles then loses the curve wholly, and the table below
still has the figures, instead of loose labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from math import inf, isfinite
from statistics import fmean, median
from typing import Any

from explorer.model.results.hot_paths import CallTimes, HotEvent, HotPaths, HotRow, Way
from explorer.model.text import cut_end
from explorer.model.units import count_text, duration_text, factor_text
from explorer.view.chart import Table, html_table
from explorer.view.figure import BLUE, FIRST, GREY, LIMIT, ORANGE, Figure, Label, Mark, Panel, Path, Points, headline
from explorer.view.scale import Scale, log_ticks

WAYS: dict[Way, str] = {
    "eager": "eager",
    "both": "both ways, compared",
    "compiled": "compiled",
    "missed": "eager, as a guard missed",
}
_GAP = 2.5  # width of omitted calls, in calls
_ROWS = 20  # at each end of the table of calls
_PLOT, _LABEL = 150, 12  # height in pixels, of the plot as in the style sheet, and of a label
_MAX_POINTS = 120  # more would overlap
_BURSTS = 3.0  # mean / median from which a loop's times count as bursts
_AROUND = 20  # calls that are averaged; JAX runs about 32 ahead on a CPU
_SHARE = 0.5  # of a loop's time that its eager calls must take


@dataclass(frozen=True)
class Curve:
    what: str  # meaning of the seconds
    times: CallTimes
    across: tuple[float, ...]  # horizontal place of each call, 0 to 100
    gaps: tuple[tuple[float, int], ...]  # place and number of omitted calls

    def stretches(self) -> Iterator[tuple[Way, int, int]]:
        return ((way, at, at + count - 1) for way, at, count in runs(self.times.ways))


def runs(ways: Sequence[Way]) -> Iterator[tuple[Way, int, int]]:
    """Yield (way, position of the first call, number of calls) for each run of equal ways, such as `compiled`."""
    at = 0
    for way, run in groupby(ways):
        count = len(list(run))
        yield way, at, count
        at += count


def curve(row: HotRow, events: Sequence[HotEvent]) -> str:
    points = points_of(row)
    times = points.times
    if len(times) < 2 or not max(times.seconds) > 0:
        return ""
    scale = _scale(row, points)
    beside = list(_beside(row, events, points))
    marks = [
        *(
            f'<i class="hp-tick" style="bottom:{_up(tick, scale):.1f}%"><b>{text}</b></i>'
            for tick, text in zip(scale.ticks, scale.texts, strict=True)
        ),
        *beside,
        *_level_lines(row, scale),
        *(
            _point(number, took, way, at, scale)
            for (number, _, took, way), at in zip(times, points.across, strict=True)
        ),
        *(
            f'<i class="hp-gap" style="left:{across:.2f}%" title="{count:,} more calls">⋯</i>'
            for across, count in points.gaps
        ),
    ]
    key = " ".join(_key(row, points, bool(beside)))
    return (
        f'<div class="hp-curve"><div class="hp-plot" role="img" aria-label="{escape(describe(row))}">'
        f'{"".join(marks)}</div><div class="hp-key">{key}</div></div>'
    )


def describe(row: HotRow) -> str:
    points = points_of(row)
    parts = [
        f"calls {_range(points.times.numbers[first], points.times.numbers[last])} {WAYS[way]}, "
        f"{duration_text(median(points.times.seconds[first : last + 1]))} each"
        for way, first, last in points.stretches()
    ]
    return f"{points.what}, {row.name}: {'; '.join(parts)}."


def call_table(row: HotRow) -> str:
    calls = [(f"{number:,}", WAYS[way], duration_text(seconds)) for number, _, seconds, way in row.times]
    if not calls:
        return ""
    first, last = (calls, []) if len(calls) <= 2 * _ROWS else (calls[:_ROWS], calls[-_ROWS:])
    title = "each call that was timed, until it returned" + f": the first and the last {_ROWS}" * bool(last)
    return html_table(Table(title, ("call", "how it ran", "time"), [*first, *last]))


def points_of(row: HotRow) -> Curve:
    times, what = _per_turn(row)
    if len(times) > _MAX_POINTS:
        half = _MAX_POINTS // 2
        # Both ends: the first calls have the compile, the last ones the settled time.
        times = CallTimes(*(column[:half] + column[-half:] for column in _columns(times)))
    at, places, gaps = 0.0, list[float](), list[tuple[float, int]]()
    for i, number in enumerate(times.numbers):
        if i and number > times.numbers[i - 1] + 1:
            gaps.append((at + _GAP / 2, number - times.numbers[i - 1] - 1))
            at += _GAP
        places.append(at + 0.5)
        at += 1
    wide = 100 / max(at, 12.0)  # few calls don't fill the width
    return Curve(what, times, tuple(place * wide for place in places), tuple((place * wide, n) for place, n in gaps))


def _per_turn(row: HotRow) -> tuple[CallTimes, str]:
    """Return the calls, and a text with the meaning of their seconds.

    A call that returned may still be computing. So in a loop that spends most of its time in the function, the seconds
    are those from one start to the next; otherwise until the call returned.
    """
    times = row.times
    turns = {
        i: times.starts[i + 1] - times.starts[i]
        for i in range(len(times) - 1)
        if times.numbers[i + 1] == times.numbers[i] + 1
    }
    if not _is_loop(row, turns):
        return times, "time until a call returned, its result may have come later"
    numbers, starts, _, ways = ([column[i] for i in turns] for column in _columns(times))
    seconds, is_mean = _evened(list(turns.values()), ways)
    what = "time from one call to the next" + f" (compiled: means of {_AROUND}, as JAX runs ahead)" * is_mean
    return CallTimes(tuple(numbers), tuple(starts), seconds, tuple(ways)), what


def _is_loop(row: HotRow, turns: Mapping[int, float]) -> bool:
    first = next((i for i, way in enumerate(row.times.ways) if way != "eager"), len(row.times))
    before = [turn for i, turn in turns.items() if i < first]
    each = row.eager_seconds if row.basis == "both ways" else median(row.times.seconds[:first] or (0.0,))
    return bool(before) and each >= _SHARE * median(before)


def _evened(turns: list[float], ways: Sequence[Way]) -> tuple[tuple[float, ...], bool]:
    """Return the seconds of each call, and True if compiled calls were averaged because they come in bursts.

    JAX runs ahead and then waits for all pending calls, so single times are microseconds or many calls' time; only
    their mean is the cost.
    """
    compiled = [turn for turn, way in zip(turns, ways, strict=True) if way == "compiled"]
    if not compiled or fmean(compiled) < _BURSTS * median(compiled):
        return tuple(turns), False
    even = list(turns)
    for way, first, count in runs(ways):
        starts = range(first, first + max(count - _AROUND, 0) + 1, _AROUND)
        for start in starts if way == "compiled" else ():
            # The last mean takes the rest too, so that none is of a few calls.
            end = first + count if start == starts[-1] else start + _AROUND
            even[start:end] = [fmean(turns[start:end])] * (end - start)
    return tuple(even), True


def _columns(times: CallTimes) -> tuple[tuple[Any, ...], ...]:
    return times.numbers, times.starts, times.seconds, times.ways


def _levels(row: HotRow) -> tuple[float, float]:
    return tuple(s if isfinite(s) else 0.0 for s in (row.eager_seconds, row.compiled_seconds))  # pyright: ignore[reportReturnType]


def _scale(row: HotRow, points: Curve) -> Scale:
    shown = [seconds for seconds in (*points.times.seconds, *_levels(row)) if seconds > 0]
    low, high = min(shown, default=1e-6) / 1.5, max(shown, default=1.0) * 1.5
    ticks = log_ticks(low, high, 4)
    return Scale(low, high, tuple(ticks), tuple(map(duration_text, ticks)), True)


def _call_text(number: int, way: Way, seconds: float) -> str:
    return f"call {number:,}, {WAYS[way]}: {duration_text(seconds)}"


def _up(seconds: float, scale: Scale) -> float:
    return scale.at(max(seconds, scale.low), 0, 100)


def _level_lines(row: HotRow, scale: Scale) -> Iterator[str]:
    seconds = {name: one for name, one in zip(("eager", "compiled"), _levels(row), strict=True) if one}
    ups = {name: _up(one, scale) for name, one in seconds.items()}
    lowest = min(ups, key=lambda name: ups[name], default="")
    between = (max(ups.values()) - min(ups.values())) * _PLOT / 100 if len(ups) > 1 else _LABEL
    aside = max(_LABEL - between, 0) / 2
    for name, up in ups.items():
        where = f"bottom:{-_LABEL / 2 + (-aside if name == lowest else aside):.1f}px"
        label = f'<b style="{where}">{duration_text(seconds[name])}</b>'
        yield f'<i class="hp-level hp-{name}" style="bottom:{up:.1f}%">{label}</i>'


def _point(number: int, seconds: float, way: Way, across: float, scale: Scale) -> str:
    where = f"left:{across:.2f}%;bottom:{_up(seconds, scale):.1f}%"
    return f'<i class="hp-point hp-{way}" style="{where}" title="{_call_text(number, way, seconds)}"></i>'


def _beside(row: HotRow, events: Sequence[HotEvent], points: Curve) -> Iterator[str]:
    begun = None
    for event in events:
        if event.function != row.name:
            continue
        if event.kind == "compile":
            begun = event.time
        elif event.kind == "compiled" and begun is not None and row.is_background:
            starts = zip(points.across, points.times.starts, strict=True)
            within = [at for at, start in starts if begun <= start <= event.time]
            if within:
                title = f"compiled in the background in {duration_text(event.time - begun)}"
                where = f"left:{within[0]:.2f}%;width:{max(within[-1] - within[0], 1):.2f}%"
                yield f'<i class="hp-beside" style="{where}" title="{title}"></i>'
            begun = None


def _key(row: HotRow, points: Curve, has_band: bool) -> Iterator[str]:
    numbers = points.times.numbers
    counts: dict[Way, int] = {}
    for way, first, last in points.stretches():
        counts[way] = counts.get(way, 0) + numbers[last] - numbers[first] + 1
    yield f"<span>{points.what}, call {numbers[0]:,} to {numbers[-1]:,}</span>"
    for way, count in counts.items():
        yield f'<span><i class="hp-point hp-{way}"></i> {WAYS[way]}, {count:,}</span>'
    if row.compile_seconds:
        where = " in the background" if row.is_background else ""
        swatch = '<i class="hp-beside"></i> ' if has_band else ""  # no drawn call ran during the compile
        yield f"<span>{swatch}compiled in {duration_text(row.compile_seconds)}{where}</span>"


def _range(first: int, last: int) -> str:
    return f"{first:,} to {last:,}" if last > first else f"{first:,}"


# The figure

_WIDTH, _PANEL, _BETWEEN = 860, 110, 74
_LEFT, _RIGHT = 78, 770
_LETTERS = 13.0  # pixels between labels
_MAX_CURVES = 4  # functions drawn
_KEY = "rings: eager; diamonds: both ways, compared; dots: compiled; triangles: a guard missed"
_STYLES: dict[Way, tuple[str, str, bool]] = {
    "eager": (ORANGE, "circle", True),
    "both": (FIRST, "diamond", False),
    "compiled": (BLUE, "circle", False),
    "missed": (LIMIT, "triangle-up", False),
}


def figure(paths: HotPaths) -> Figure:
    page = Figure(_WIDTH)
    y = headline(page, paths.headline, "", _KEY)
    drawn = [row for row in paths.functions if row.state != "eager" and len(row.times) > 1]
    for row in drawn[:_MAX_CURVES]:
        page.text(24, y + 26, f"{row.name}: {_figures(row)}", size=13.5, bold=True)
        page.text(24, y + 42, points_of(row).what, size=11.0, colour=GREY)
        page.panels.append(_panel(row, y + 52))
        y += _PANEL + _BETWEEN
    for row in paths.functions:
        if row.state == "eager":
            where = f" ({paths.place(row.reason_file, row.reason_line)})" if row.reason_line else ""
            page.text(24, y + 22, cut_end(f"{row.name} stays eager: {row.reason}{where}", 120))
            y += 20
    page.height = y + 30
    return page


def _figures(row: HotRow) -> str:
    if not isfinite(row.speedup):
        return count_text(row.calls, "call")
    took = f"{duration_text(row.eager_seconds)} → {duration_text(row.compiled_seconds)}"
    return f"{factor_text(row.speedup)} as fast, {took}"


def _panel(row: HotRow, top: float) -> Panel:
    points = points_of(row)
    up = _scale(row, points)
    marks = [*_level_marks(row, up), *_call_marks(points, up.low)]
    return Panel(_LEFT, _RIGHT, top, top + _PANEL, Scale(0.0, 100.0, (), ()), up, marks)


def _level_marks(row: HotRow, up: Scale) -> Iterator[Mark]:
    levels = [(row.eager_seconds, ORANGE, "dash"), (row.compiled_seconds, BLUE, "")]
    last = -inf  # label above, in pixels from the top
    for seconds, colour, dash in sorted((level for level in levels if 0 < level[0] < inf), reverse=True):
        level = up.at(seconds, _PANEL, 0.0)
        last = max(level + 4, last + _LETTERS)
        yield Path([0.0, 100.0], [seconds, seconds], colour, 1.5, dash, 0.7)
        yield Label(100.0, seconds, duration_text(seconds), colour, bold=True, dx=6, dy=last - level)


def _call_marks(points: Curve, low: float) -> Iterator[Mark]:
    times = points.times
    for way, (colour, symbol, hollow) in _STYLES.items():
        own = [i for i, other in enumerate(times.ways) if other == way]
        if own:
            hover = [_call_text(times.numbers[i], way, times.seconds[i]) for i in own]
            seconds = [max(times.seconds[i], low) for i in own]
            yield Points([points.across[i] for i in own], seconds, colour, symbol, 3.6, hollow, hover=hover)
