"""Times of a hot function's calls: when they say that it is time to compile, and what a call takes each way.

Nothing runs to be measured alone. Of eager calls there are two kinds of figures: those before the function was
compiled, timed until they returned; and those that ran both ways, which waited for their results. Each errs to one side
only: whatever else the machine did made it longer. (Calls both ways come right after a compile, while others may go on:
some took twice as long as the program's own calls did.) So the lower of the two is the estimate, and never the mean.
Eager calls while a compile of their own ran beside them are in neither.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from math import fsum, nan
from statistics import median
from threading import RLock
from time import perf_counter
from types import FrameType, FunctionType
from typing import Any, Protocol
from weakref import ref

from explorer.hotpath.proof.values import Refusal
from explorer.hotpath.swap import entered_by
from explorer.model.results.hot_paths import Basis, CallTimes, HotEvent, HotEventKind, Way
from explorer.model.results.statistics import interval_of_median

_OFTEN = 3  # calls of one kind, of a function that is hot already: of sizes that come once there may be thousands
_WAITS = 3  # times that a function waits for one that calls it
_frame: Callable[[int], FrameType] = getattr(sys, "_getframe")  # noqa: B009 - documented, for debuggers


class Trigger:
    """Says of one function when it is called often and long enough."""

    def __init__(self, calls: int, seconds: float) -> None:
        self.is_wanted = False
        self._calls, self._seconds = calls, seconds
        self._counts: dict[int, int] = {}
        self.is_waiting = False  # whether it was tried, and put off
        self._waits, self._wait_until = 0, 0

    def is_time(self, kind: int, before: int, seconds: float) -> bool:
        """Whether a call is the one."""
        if len(self._counts) > _KINDS:
            self._counts.clear()
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        if self.is_wanted:
            return before > 0
        is_often = before >= max(self._calls, self._wait_until) and count >= min(self._calls, _OFTEN)
        return is_often and seconds >= self._seconds

    def wait(self, seconds: float) -> None:
        """It isn't time before calls took so long in all."""
        self._seconds, self.is_waiting, self.is_wanted = max(self._seconds, seconds), True, False

    def must_wait(self, owner: object, before: int) -> bool:
        """Whether a function that may be compiled calls this one just now: compiled, it would do without this one."""
        if self._waits >= _WAITS:
            return False
        frame: FrameType | None = _frame(1)
        while frame is not None:
            other = entered_by(frame.f_code)
            trigger: Any = getattr(other, "trigger", None)
            if other is not owner and isinstance(trigger, Trigger) and getattr(other, "is_undecided", False):
                trigger.is_wanted = True
                self._waits, self._wait_until = self._waits + 1, 2 * before
                return True
            frame = frame.f_back
        return False


_KINDS = 64  # of calls whose times and counts are kept apart
_MOST = 64  # calls at once: of threads, and inside each other


class _Held:
    """Lies in a call's frame, and ends with it."""

    __slots__ = ("__weakref__",)


class Clock:
    """How long the calls of one function take, however they run; and what a call of each kind takes."""

    def __init__(self) -> None:
        self.eager_seconds = 0.0
        self.times = Times()
        self._running: deque[list[Any]] = deque(maxlen=_MOST)
        self._lock = RLock()
        self._costs: dict[int, CallCosts] = {}

    def begin(self, way: Way, begun: float = 0.0, stands_for: int = 1, kind: int | None = None) -> object:
        """A call begins that runs in the user's own frame, in which what this gives must lie.

        The end is noted in a weak reference's callback that is C all through: in Python code that runs where an object
        is freed, a KeyboardInterrupt would be lost.
        """
        held = _Held()
        call: list[Any] = [(way, stands_for, kind), begun or perf_counter()]
        call.append(ref(held, partial(next, map(call.append, iter(perf_counter, None)))))
        self._running.append(call)
        return held

    def _ended(self) -> list[tuple[Any, float, float]]:
        ended: list[tuple[Any, float, float]] = []
        with self._lock:
            while self._running and len(self._running[0]) > 3:
                call, begun, _, end = self._running.popleft()
                ended.append((call, begun, end))
        return ended

    def settle(self) -> None:
        for (way, stands_for, kind), begun, ended in self._ended():
            if kind is not None:
                self.costs_of(kind).note_before(ended - begun)
            self.eager_seconds += stands_for * (ended - begun)
            self.times.count += stands_for - 1
            self.times.add(begun, ended, way)

    def costs_of(self, kind: int) -> CallCosts:
        """What calls of a kind took; of kinds that come once, there may be thousands."""
        costs = self._costs.get(kind)
        if costs is None:
            if len(self._costs) >= _KINDS:
                self._costs = {kind: costs for kind, costs in self._costs.items() if costs.calls}
            costs = self._costs[kind] = CallCosts()
        return costs

    @property
    def costs(self) -> list[CallCosts]:
        self.settle()
        return list(self._costs.values())


_KEPT = 64  # seconds of each sort


@dataclass(frozen=True, slots=True)
class Estimate:
    seconds: float = nan  # the median
    low: float = nan  # the ends of its interval, as far as the samples say
    high: float = nan
    count: int = 0  # of how many samples


class CallCosts:
    """What calls of one kind took: bounded, whatever the program does."""

    __slots__ = ("_before", "_both", "_compiled", "_left", "calls")

    def __init__(self) -> None:
        self.calls = 0
        self._before: deque[float] = deque(maxlen=_KEPT)
        self._both: deque[float] = deque(maxlen=_KEPT)
        self._left: deque[float] = deque(maxlen=_KEPT)
        self._compiled: deque[float] = deque(maxlen=_KEPT)

    def note_before(self, seconds: float) -> None:
        """An eager call, before anything was compiled for its kind, returned after so many seconds."""
        self._before.append(seconds)

    def note_both(self, eager: float, left: float, compiled: float) -> None:
        """A call ran both ways, and took so many seconds each; eagerly it had returned when `left` were left."""
        self._both.append(eager)
        self._left.append(left)
        self._compiled.append(compiled)

    def note_compiled(self, seconds: float) -> None:
        self._compiled.append(seconds)

    def eager_seconds(self) -> float:
        """What a call takes as it was written, without how sure that is; NaN where none was measured."""
        return min((median(samples) for samples in self._eager().values()), default=nan)

    def eager(self) -> tuple[Estimate, Basis]:
        """What a call takes as it was written, with the results there; and which calls say so."""
        estimates: dict[Basis, Estimate] = {basis: _estimate(samples) for basis, samples in self._eager().items()}
        if not estimates:
            return Estimate(), ""
        lowest: Basis = min(estimates, key=lambda basis: estimates[basis].seconds)
        # No estimate is above the upper end of another one's interval: what it says beyond is a disturbance.
        low, high = (min(getattr(one, end) for one in estimates.values()) for end in ("low", "high"))
        return Estimate(estimates[lowest].seconds, low, high, estimates[lowest].count), lowest

    def _eager(self) -> dict[Basis, Sequence[float]]:
        # A call that returns hasn't got its results yet where JAX runs ahead; how much is left then, those show that
        # were waited for. The least of them: a thread that waits is given the interpreter late on a busy machine.
        left = min(self._left.copy(), default=0.0)
        samples: list[tuple[Basis, Sequence[float]]] = [
            ("both ways", self._both.copy()),
            ("before", [seconds + left for seconds in self._before.copy()]),
        ]
        return {basis: seconds for basis, seconds in samples if seconds}

    def compiled(self) -> Estimate:
        return _estimate(self._compiled.copy()) if self._compiled else Estimate()


@dataclass(frozen=True, slots=True)
class FunctionCosts:
    """What a call of a function takes, the kinds of its calls together, as often as each ran compiled."""

    eager: Estimate  # (eager, compiled) each way
    compiled: Estimate
    basis: Basis  # what says so of eager calls


def together(kinds: Sequence[CallCosts]) -> FunctionCosts | None:
    """What a call takes, over the kinds of calls that were compiled; None where there is none."""
    measured = [(kind, *kind.eager(), kind.compiled()) for kind in kinds]
    measured = [entry for entry in measured if entry[1].count and entry[3].count]
    if not measured:
        return None
    weights = [float(kind.calls) for kind, *_ in measured]
    weights = weights if any(weights) else [1.0] * len(weights)
    bases = [basis for _, _, basis, _ in measured]
    return FunctionCosts(
        _mean([eager for _, eager, _, _ in measured], weights),
        _mean([compiled for *_, compiled in measured], weights),
        bases[weights.index(max(weights))],
    )


def _estimate(samples: Sequence[float]) -> Estimate:
    low, high = interval_of_median(samples)
    return Estimate(median(samples), max(low, 0.0), high, len(samples))


def _mean(estimates: Sequence[Estimate], weights: Sequence[float]) -> Estimate:
    def of(name: str) -> float:
        return fsum(w * getattr(one, name) for w, one in zip(weights, estimates, strict=True)) / fsum(weights)

    return Estimate(of("seconds"), of("low"), of("high"), sum(estimate.count for estimate in estimates))


_FIRST, _LAST = 256, 256  # calls of a function whose times are kept
_EVENTS = 4096  # that are kept
Listener = Callable[[HotEvent], None]


class Function(Protocol):
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
    """The steps of all functions, the last few thousand, given to listeners as they come."""

    def __init__(self, listeners: Iterable[Listener] = ()) -> None:
        self.began = perf_counter()
        self.listeners = list(listeners)
        # Numbered, without a lock: a thread that an interrupt ends could keep it.
        self._events: deque[tuple[int, HotEvent]] = deque(maxlen=_EVENTS)
        self._numbers = count(1)

    @property
    def count(self) -> int:
        return max((number for number, _ in self._events.copy()), default=0)

    @property
    def events(self) -> tuple[HotEvent, ...]:
        return tuple(event for _, event in self._events.copy())

    @property
    def dropped(self) -> int:
        return max(self.count - _EVENTS, 0)

    def add(self, kind: HotEventKind, hot: Function, text: str = "", seconds: float = nan) -> None:
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
