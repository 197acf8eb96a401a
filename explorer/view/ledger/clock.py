"""Where a moment is on a time axis whose long waits are cut short, for nothing compiled in them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from explorer.view.ledger.calls import Call

_LONG = 0.2  # of all the busy time: a wait longer than that is cut, if it lasts a second
_CUT = 0.04  # of all the busy time: what is left of it


@dataclass(frozen=True)
class _Stretch:
    since: float
    until: float
    at: float  # where it begins on the axis


class Clock:
    """Seconds since 1970 to seconds on the axis, from 0."""

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
        """Where a moment is; one in a wait, where that begins."""
        index = bisect_right(self._stretches, moment, key=lambda stretch: stretch.since) - 1
        if index < 0:
            return 0.0
        stretch = self._stretches[index]
        return stretch.at + min(moment, stretch.until) - stretch.since

    def ticks(self, most: int = 8) -> list[tuple[float, str]]:
        """Places with the seconds that they stand for: the begin of each stretch, and even steps in the long ones."""
        whole = sum(stretch.until - stretch.since for stretch in self._stretches)
        step = _even(whole / most)
        ticks: list[tuple[float, str]] = []
        for stretch in self._stretches:
            first = stretch.since - self.begin
            moments = [
                first,
                *(n * step for n in range(int(first / step) + 1, int((stretch.until - self.begin) / step) + 1)),
            ]
            for moment in moments:
                at = self.at(self.begin + moment)
                if not ticks or at - ticks[-1][0] > 0.6 * step:
                    ticks.append((at, f"{moment:.3g} s" if moment < 1000 else f"{moment:,.0f} s"))
        return ticks


def _even(least: float) -> float:
    """The next of 1, 2, 5, 10, …"""
    power = 1e-6
    while power * 10 < least:
        power *= 10
    return next(power * part for part in (1, 2, 5, 10) if power * part >= least)
