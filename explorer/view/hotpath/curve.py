"""The calls of one function as a curve: as written, both ways, then compiled; HTML whose shapes need no script.

Points are placed elements and no SVG: a page that strips styles is left with nothing of it, and the table below has the
figures; with a picture it would be left with loose texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from math import isfinite
from statistics import fmean, median
from typing import Any

from explorer.model.results.hot_paths import CallTimes, HotEvent, HotRow, Way
from explorer.model.units import duration_text
from explorer.view.chart import Table, html_table
from explorer.view.scale import Scale, log_ticks

WAYS: dict[Way, str] = {
    "eager": "eager",
    "both": "both ways, compared",
    "compiled": "compiled",
    "missed": "eager, as a guard missed",
}
_GAP = 2.5  # calls: how wide calls that aren't shown are
_ROWS = 20  # of the table of calls, at each end
_PLOT, _LABEL = 150, 12  # pixels: the height of the plot, as the style sheet has it, and of a label
_MOST = 120  # points: more would lie on each other
_BURSTS = 3.0  # times the median, from which the mean of a loop's turns shows that they come in bursts
_AROUND = 20  # calls: what JAX runs ahead on a CPU is some 32
_SHARE = 0.5  # of the time from call to call that eager calls take, where these make the loop what it is


@dataclass(frozen=True)
class Points:
    """Calls on the curve.

    Args:
        what: What the seconds are. A call that returned may still be computing, so how fast a loop turns is told by the
            time from one call to the next; where a function takes little of that, by the time until it returned.
        times: The calls.
        across: Where each stands, 0 to 100.
        gaps: Where calls were left out, and how many.
    """

    what: str
    times: CallTimes
    across: tuple[float, ...]
    gaps: tuple[tuple[float, int], ...]

    def stretches(self) -> Iterator[tuple[Way, int, int]]:
        """Runs of calls of one way: the way, and the numbers of the first and the last point."""
        return ((way, at, at + count - 1) for way, at, count in runs(self.times.ways))


def runs(ways: Sequence[Way]) -> Iterator[tuple[Way, int, int]]:
    """Runs of calls of one way: the way, where they begin, how many they are."""
    at = 0
    for way, run in groupby(ways):
        count = len(list(run))
        yield way, at, count
        at += count


def curve(row: HotRow, events: Sequence[HotEvent]) -> str:
    """The curve of a function's calls; empty where no more than one was timed."""
    points = points_of(row)
    times = points.times
    if len(times) < 2 or not max(times.seconds) > 0:
        return ""
    shown = [seconds for seconds in (*times.seconds, *_levels(row)) if seconds > 0]
    low, high = min(shown) / 1.5, max(shown) * 1.5
    scale = Scale(low, high, (), (), True)
    beside = list(_beside(row, events, points))
    marks = [
        *(_tick(tick, scale) for tick in log_ticks(low, high, 4)),
        *beside,
        *_level_lines(row, scale),
        *(
            _point(number, took, way, at, scale)
            for (number, _, took, way), at in zip(times, points.across, strict=True)
        ),
        *(_gap(across, count) for across, count in points.gaps),
    ]
    key = " ".join(_key(row, points, bool(beside)))
    return (
        f'<div class="hp-curve"><div class="hp-plot" role="img" aria-label="{escape(describe(row))}">'
        f'{"".join(marks)}</div><div class="hp-key">{key}</div></div>'
    )


def describe(row: HotRow) -> str:
    """The curve in words."""
    points = points_of(row)
    parts = [
        f"calls {_range(points.times.numbers[first], points.times.numbers[last])} {WAYS[way]}, "
        f"{duration_text(median(points.times.seconds[first : last + 1]))} each"
        for way, first, last in points.stretches()
    ]
    return f"{points.what}, {row.name}: {'; '.join(parts)}."


def call_table(row: HotRow) -> str:
    """The calls that were timed, as a table: the first and the last; empty where there is none."""
    calls = [(f"{number:,}", WAYS[way], duration_text(seconds)) for number, _, seconds, way in row.times]
    if not calls:
        return ""
    first, last = (calls, []) if len(calls) <= 2 * _ROWS else (calls[:_ROWS], calls[-_ROWS:])
    title = "each call that was timed, until it returned" + f": the first and the last {_ROWS}" * bool(last)
    return html_table(Table(title, ("call", "how it ran", "time"), [*first, *last]))


def points_of(row: HotRow) -> Points:
    """The calls of a function as they are drawn."""
    times, what = _per_turn(row)
    if len(times) > _MOST:
        half = _MOST // 2
        times = CallTimes(*(column[:half] + column[-half:] for column in _columns(times)))
    at, places, gaps = 0.0, list[float](), list[tuple[float, int]]()
    for i, number in enumerate(times.numbers):
        if i and number > times.numbers[i - 1] + 1:
            gaps.append((at + _GAP / 2, number - times.numbers[i - 1] - 1))
            at += _GAP
        places.append(at + 0.5)
        at += 1
    wide = 100 / max(at, 12.0)  # a few calls don't fill all of it
    return Points(what, times, tuple(place * wide for place in places), tuple((place * wide, n) for place, n in gaps))


def _per_turn(row: HotRow) -> tuple[CallTimes, str]:
    """The calls with the seconds from each start to the next, if the first ones take most of that; else as they are.

    With what the seconds are, in words.
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
    """Whether the first calls, which are eager, take most of the time from each to the next."""
    first = next((i for i, way in enumerate(row.times.ways) if way != "eager"), len(row.times))
    before = [turn for i, turn in turns.items() if i < first]
    each = row.eager_seconds if row.basis == "both ways" else median(row.times.seconds[:first] or (0.0,))
    return bool(before) and each >= _SHARE * median(before)


def _evened(turns: list[float], ways: Sequence[Way]) -> tuple[tuple[float, ...], bool]:
    """The turns of a loop, where compiled calls come in bursts the mean of those around; and whether so.

    JAX lets a program run ahead and stops it now and then, for all that it has asked for: single turns take
    microseconds or tens of calls' time, and only their mean is what a turn costs.
    """
    compiled = [turn for turn, way in zip(turns, ways, strict=True) if way == "compiled"]
    if not compiled or fmean(compiled) < _BURSTS * median(compiled):
        return tuple(turns), False
    even = list(turns)
    for way, first, count in runs(ways):
        starts = range(first, first + max(count - _AROUND, 0) + 1, _AROUND)
        for start in starts if way == "compiled" else ():
            end = first + count if start == starts[-1] else start + _AROUND
            even[start:end] = [fmean(turns[start:end])] * (end - start)
    return tuple(even), True


def _columns(times: CallTimes) -> tuple[tuple[Any, ...], ...]:
    return times.numbers, times.starts, times.seconds, times.ways


def _levels(row: HotRow) -> tuple[float, float]:
    """The medians that the speedup is of; 0 for none."""
    return tuple(s if isfinite(s) else 0.0 for s in (row.eager_seconds, row.compiled_seconds))  # pyright: ignore[reportReturnType]


def _up(seconds: float, scale: Scale) -> float:
    return scale.at(max(seconds, scale.low), 0, 100)


def _tick(seconds: float, scale: Scale) -> str:
    return f'<i class="hp-tick" style="bottom:{_up(seconds, scale):.1f}%"><b>{duration_text(seconds)}</b></i>'


def _level_lines(row: HotRow, scale: Scale) -> Iterator[str]:
    """The medians, their labels as far apart as their height needs."""
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
    title = f"call {number:,}, {WAYS[way]}: {duration_text(seconds)}"
    where = f"left:{across:.2f}%;bottom:{_up(seconds, scale):.1f}%"
    return f'<i class="hp-point hp-{way}" style="{where}" title="{title}"></i>'


def _gap(across: float, count: int) -> str:
    return f'<i class="hp-gap" style="left:{across:.2f}%" title="{count:,} more calls">⋯</i>'


def _beside(row: HotRow, events: Sequence[HotEvent], points: Points) -> Iterator[str]:
    """A band over the calls that ran while the function was compiled beside them."""
    begun = None
    for event in events:
        if event.function != row.name:
            continue
        if event.kind == "compile":
            begun = event.time
        elif event.kind == "compiled" and begun is not None and row.is_background:
            within = [
                at for at, start in zip(points.across, points.times.starts, strict=True) if begun <= start <= event.time
            ]
            if within:
                title = f"compiled in the background in {duration_text(event.time - begun)}"
                where = f"left:{within[0]:.2f}%;width:{max(within[-1] - within[0], 1):.2f}%"
                yield f'<i class="hp-beside" style="{where}" title="{title}"></i>'
            begun = None


def _key(row: HotRow, points: Points, has_band: bool) -> Iterator[str]:
    """What stands below: the first and the last call, and between them what the shapes mean and how many there are."""
    numbers = points.times.numbers
    counts: dict[Way, int] = {}
    for way, first, last in points.stretches():
        counts[way] = counts.get(way, 0) + numbers[last] - numbers[first] + 1
    yield f"<span>{points.what}, call {numbers[0]:,} to {numbers[-1]:,}</span>"
    for way, count in counts.items():
        yield f'<span><i class="hp-point hp-{way}"></i> {WAYS[way]}, {count:,}</span>'
    if row.compile_seconds:
        beside = " beside the program" if row.is_background else ""
        swatch = '<i class="hp-beside"></i> ' if has_band else ""  # none of the calls that are drawn ran meanwhile
        yield f"<span>{swatch}compiled in {duration_text(row.compile_seconds)}{beside}</span>"


def _range(first: int, last: int) -> str:
    return f"{first:,} to {last:,}" if last > first else f"{first:,}"
