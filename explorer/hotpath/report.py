"""What happened, as values: recorded while it happens, at little cost, and put together when somebody looks.

The values themselves are `explorer/model/results/hot_paths.py`, which views and files know.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from math import isfinite, nan
from statistics import median
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING

from explorer.capture.sources import label
from explorer.hotpath.arrays import ARRAYS, may_be_replaced
from explorer.model.results.hot_paths import CallTimes, HeldValue, HotEvent, HotEventKind, HotRow, Way

if TYPE_CHECKING:
    from explorer.hotpath.hot import HotFunction

_FIRST, _LAST = 256, 256  # calls of a function whose times are kept
_EVENTS = 4096  # that are kept
Listener = Callable[[HotEvent], None]


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

    def skip(self) -> None:
        """A call is over that nobody timed."""
        self.count += 1

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
        self.count = 0
        self.listeners = list(listeners)
        self._events: deque[HotEvent] = deque(maxlen=_EVENTS)
        self._lock = Lock()

    @property
    def events(self) -> tuple[HotEvent, ...]:
        return tuple(self._events.copy())

    @property
    def dropped(self) -> int:
        return self.count - len(self._events)

    def add(self, kind: HotEventKind, hot: HotFunction, text: str = "", seconds: float = nan) -> None:
        """Something happened to a function."""
        code = hot.original.__code__
        file, line = code.co_filename, code.co_firstlineno
        if kind == "eager" and hot.refusal is not None and hot.refusal.line:
            file, line = hot.refusal.file, hot.refusal.line
        event = HotEvent(perf_counter() - self.began, hot.name, kind, text, seconds, file, line)
        with self._lock:
            self.count += 1
            self._events.append(event)
        for listener in self.listeners:
            try:
                listener(event)
            except Exception:  # a log that can't be written is no fault of the user's call
                continue


def row_of(hot: HotFunction, began: float, signal: str = "") -> HotRow:
    """A function as a value.

    Args:
        hot: The function, which may go on meanwhile.
        began: When hot paths were on, by `perf_counter`.
        signal: The signal it belongs to.
    """
    code, refusal = hot.original.__code__, hot.refusal
    variants = list(hot.variants.values())
    eager, compiled = hot.both_ways()
    measured, basis = (median(eager), len(eager)) if eager else hot.times.median("eager", "missed"), "both ways"
    if not eager:
        basis = "returned" if measured[1] else ""
    return HotRow(
        hot.name,
        code.co_filename,
        code.co_firstlineno,
        hot.state,
        refusal.reason if refusal is not None else "",
        refusal.file if refusal is not None else "",
        refusal.line if refusal is not None else 0,
        refusal.cure if refusal is not None else "",
        hot.calls["eager"],
        hot.calls["compiled"],
        measured[0],
        median(compiled) if compiled else nan,
        measured[1],
        len(compiled),
        basis,
        hot.compile_seconds,
        hot.is_background,
        len(variants),
        _held(hot),
        dict(hot.misses),
        hot.times.columns(began),
        signal,
    )


def by_time(row: HotRow) -> float:
    """For sorting: what takes most of the program's time, as it is or would be, comes first."""
    return -row.calls * row.eager_seconds if isfinite(row.eager_seconds) else 0.0


def labels_of(rows: Iterable[HotRow]) -> dict[str, str]:
    """What a person calls the files of some functions."""
    files = {file for row in rows for file in (row.file, row.reason_file) if file}
    return {file: label(file) for file in sorted(files)}


def _held(hot: HotFunction) -> tuple[HeldValue, ...]:
    """What the guards of all variants hold, each once."""
    held = {
        HeldValue(read.name, read.where, type(read.value) in ARRAYS and may_be_replaced(read.value)): None
        for variant in list(hot.variants.values())
        for read in variant.guards.reads
    }
    return tuple(held)
