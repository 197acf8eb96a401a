"""The steps and the call times of hot functions, recorded while they happen, at little cost.

The values are of `explorer/model/results/hot_paths.py`; `report` puts them together when somebody looks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import count
from math import nan
from statistics import median
from time import perf_counter
from types import FunctionType
from typing import Protocol

from explorer.hotpath.proof.values import Refusal
from explorer.model.results.hot_paths import CallTimes, HotEvent, HotEventKind, Way

_FIRST, _LAST = 256, 256  # calls of a function whose times are kept
_EVENTS = 4096  # that are kept
Listener = Callable[[HotEvent], None]


class Function(Protocol):
    """Something that steps are about: `hot.HotFunction`."""

    name: str
    original: FunctionType
    refusal: Refusal | None


class Times:
    """The times of one function's calls, as they come: bounded, whatever the program does."""

    __slots__ = ("_first", "_last", "count")

    def __init__(self) -> None:
        self.count = 0
        self._first: list[tuple[int, float, float, Way]] = []
        self._last: deque[tuple[int, float, float, Way]] = deque(maxlen=_LAST)

    def add(self, start: float, end: float, way: Way) -> None:
        """A call is over; `start` and `end` are of `perf_counter`."""
        self.count = count = self.count + 1
        (self._first if count <= _FIRST else self._last).append((count, start, end - start, way))

    def columns(self, began: float) -> CallTimes:
        """What is kept, with seconds since `began`."""
        rows = [*self._first, *self._last.copy()]
        if not rows:
            return CallTimes()
        numbers, starts, seconds, ways = zip(*rows, strict=True)
        return CallTimes(numbers, tuple(start - began for start in starts), seconds, ways)

    def median(self, *ways: Way) -> tuple[float, int]:
        """The median of calls that ran one of these ways, and of how many; NaN and 0 where there were none."""
        seconds = [seconds for _, _, seconds, way in [*self._first, *self._last.copy()] if way in ways]
        return (median(seconds), len(seconds)) if seconds else (nan, 0)


class Journal:
    """The steps of all functions, the last few thousand, given to listeners as they come.

    Args:
        listeners: Are given each event at once, on the thread it happens on; what they raise costs nobody anything.
    """

    def __init__(self, listeners: Iterable[Listener] = ()) -> None:
        self.began = perf_counter()
        self.listeners = list(listeners)
        # Numbered, without a lock: a thread that an interrupt ends could keep it.
        self._events: deque[tuple[int, HotEvent]] = deque(maxlen=_EVENTS)
        self._numbers = count(1)

    @property
    def count(self) -> int:
        """How many there were."""
        return max((number for number, _ in self._events.copy()), default=0)

    @property
    def events(self) -> tuple[HotEvent, ...]:
        return tuple(event for _, event in self._events.copy())

    @property
    def dropped(self) -> int:
        return max(self.count - _EVENTS, 0)

    def add(self, kind: HotEventKind, hot: Function, text: str = "", seconds: float = nan) -> None:
        """Something happened to a function."""
        code = hot.original.__code__
        file, line = code.co_filename, code.co_firstlineno
        if kind == "eager" and hot.refusal is not None and hot.refusal.line:
            file, line = hot.refusal.file, hot.refusal.line
        event = HotEvent(perf_counter() - self.began, hot.name, kind, text, seconds, file, line)
        self._events.append((next(self._numbers), event))
        for listener in self.listeners:
            try:
                listener(event)
            except Exception:  # a log that can't be written is no fault of the user's call
                continue
