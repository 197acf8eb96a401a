"""Scales of figures: ranges, ticks, and texts of ticks."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

_WIDE = 10.0  # a factor from which a scale is logarithmic
_STEPS = (1.0, 2.0, 5.0)
# The roundest first; less round ratios get a tick only if there is room.
_RATIOS = (
    *(step * 10.0**power for power in range(-3, 4) for step in _STEPS),
    0.8,
    1.25,
    0.9,
    1.1,
    0.95,
    1.05,
    0.98,
    1.02,
)
_RATIO_ROOM = 42.0  # pixels from one ratio's tick to the next


@dataclass(frozen=True)
class Scale:
    """Scale of an axis.

    Args:
        low, high: Ends of the axis, from left or bottom; above 0 for a logarithmic scale.
        ticks: Values of the ticks.
        texts: Text of each tick.
        is_log: True for a logarithmic scale.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    texts: tuple[str, ...]
    is_log: bool = False

    def at(self, value: float, start: float, end: float) -> float:
        """Return the position of a value on an axis with `low` at `start` and `high` at `end`; the middle if both are
        equal.
        """
        if self.is_log:  # a ratio of extreme figures underflows to 0, which has no logarithm: it goes to the end
            low, high, value = (math.log(max(v, sys.float_info.min)) for v in (self.low, self.high, value))
        else:
            low, high = self.low, self.high
        return start + (end - start) * ((value - low) / (high - low) if high != low else 0.5)


def scale_of(
    values: Sequence[float],
    text: Callable[[float], str],
    *,
    marked: Sequence[tuple[float, str]] = (),
    room: float = 0.06,
    most: int = 6,
) -> Scale:
    """Return a scale for values: logarithmic if they span more than a factor of ten, else from 0.

    Args:
        values: Values to include; infinite and NaN values are ignored.
        text: Function that returns the text of a tick.
        marked: Explicit ticks with texts, all kept; a linear scale then ends near the values instead of at 0.
        room: Free space at the ends, relative to the scale.
        most: About the maximum number of computed ticks; a linear scale may have one more.

    Example:
        >>> scale_of([3.0, 41.0], "{:g}".format).ticks, scale_of([3.0, 3000.0], "{:g}".format).texts
        ((5.0, 10.0, 20.0), ('10', '100', '1000'))
        >>> scale_of([1.0, 4.5], "{:g}".format).texts
        ('0', '1', '2', '3', '4')
    """
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if low >= sys.float_info.min and high > _WIDE * low:
        edge = room * math.log(high / low)
        low, high = max(low * math.exp(-edge), sys.float_info.min), min(high * math.exp(edge), sys.float_info.max)
        ticks = marked or [(tick, text(tick)) for tick in log_ticks(low, high, most)]
        return _scale(low, high, ticks, True)
    if marked:
        edge = room * (high - low) or abs(high) or 1.0
        return _scale(low - edge, high + edge, marked, False)
    low, high = min(0.0, low), max(high, 0.0) or 1.0
    # Divided, the smallest doubles become 0, which has no logarithm.
    step = _step(max((high - low) / most, sys.float_info.min))
    high += room * (high - low)
    # A tick at the end must not be lost to rounding.
    ticks = [(i * step, text(i * step)) for i in range(math.ceil(low / step), math.floor(high / step + 1e-9) + 1)]
    return _scale(low, high, ticks, False)


def _scale(low: float, high: float, ticks: Sequence[tuple[float, str]], is_log: bool) -> Scale:
    """Return a scale with `ticks`, without each tick that has the same text as the tick before it."""
    apart = [*ticks[:1], *(tick for before, tick in pairwise(ticks) if tick[1] != before[1])]
    return Scale(low, high, tuple(at for at, _ in apart), tuple(text for _, text in apart), is_log)


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Return at most `most` ticks from `low` to `high`: 1, 2, 5, 10 …, else powers of ten, else some of these."""
    first, last = math.floor(math.log10(low)), math.floor(math.log10(high))
    for steps in (_STEPS, (1.0,)):
        ticks = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) <= most:
            return ticks
    return ticks[:: math.ceil(len(ticks) / most)]


def _step(least: float) -> float:
    """Return the smallest step of …, 0.5, 1, 2, 5, 10, … that is at least `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (*_STEPS, 10.0) if step * power >= least * (1 - 1e-9))


def without_crowding(ticks: Sequence[tuple[float, str]], scale: Scale, room: float, letter: float) -> Scale:
    """Return the scale with the first and last ticks, and with those in between that have room.

    Args:
        ticks: Ticks in order.
        scale: Scale of the values.
        room: Length of the axis in pixels.
        letter: Width of a letter in pixels.
    """

    def fits(one: tuple[float, str], other: tuple[float, str]) -> bool:
        wide = letter * (len(one[1]) + len(other[1])) / 2 + letter
        return abs(scale.at(other[0], 0, room) - scale.at(one[0], 0, room)) >= wide

    kept = list(ticks[:1])
    for tick in ticks[1:-1]:
        if fits(kept[-1], tick) and fits(tick, ticks[-1]):
            kept.append(tick)
    if len(ticks) > 1:
        kept.append(ticks[-1])
    return Scale(scale.low, scale.high, tuple(at for at, _ in kept), tuple(text for _, text in kept), scale.is_log)


def ratio_scale(low: float, high: float, room: float) -> Scale:
    """Return a logarithmic scale of ratios with ticks at `1×` and at round ratios that have room.

    Args:
        low, high: Ends of the axis, above 0.
        room: Length of the axis in pixels.
    """
    scale = Scale(low, high, (), (), True)
    places = {1.0: scale.at(1.0, 0, room)}
    for tick in _RATIOS:
        place = scale.at(tick, 0, room)
        if low <= tick <= high and all(abs(place - other) >= _RATIO_ROOM for other in places.values()):
            places[tick] = place
    ticks = tuple(sorted(places))
    return Scale(low, high, ticks, tuple(f"{tick:g}×" for tick in ticks), True)


def rows_scale(count: int) -> Scale:
    """Return a scale for `count` rows from the top, without ticks; the first row is between 0 and 1."""
    return Scale(float(count), 0.0, (), ())
