"""Times of a hot function's calls: decide when to compile, and estimate the cost of a call each way.

Nothing runs only to be measured. Eager calls give two kinds of samples: calls before the compile, timed until they
returned, and calls that ran both ways, timed until their results were ready. Disturbances only make samples longer
(calls both ways follow a compile, while others may still run: some took twice as long), so the lower estimate of the
two is used, never the mean. Eager calls during a compile of their own kind are ignored.
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

_OFTEN = 3  # calls of one kind before it is compiled: thousands of sizes may occur once
_MAX_WAITS = 3  # times that a function waits for its caller
_frame: Callable[[int], FrameType] = getattr(sys, "_getframe")  # noqa: B009 - documented, for debuggers


class Trigger:
    def __init__(self, calls: int, seconds: float) -> None:
        self.is_wanted = False
        self._calls, self._seconds = calls, seconds
        self._counts: dict[int, int] = {}
        self.is_waiting = False  # postponed
        self._waits, self._wait_until = 0, 0

    def is_time(self, kind: int, before: int, seconds: float) -> bool:
        # A function may get thousands of sizes, each a kind.
        if len(self._counts) > _KINDS:
            self._counts.clear()
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        if self.is_wanted:
            return before > 0
        is_often = before >= max(self._calls, self._wait_until) and count >= min(self._calls, _OFTEN)
        return is_often and seconds >= self._seconds

    def wait(self, seconds: float) -> None:
        self._seconds, self.is_waiting, self.is_wanted = max(self._seconds, seconds), True, False

    def must_wait(self, owner: object, before: int) -> bool:
        """Return True if a caller up the stack may still be compiled, which would include this function.

        That caller is then compiled as soon as it can be; a function waits at most three times.
        """
        if self._waits >= _MAX_WAITS:
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


_KINDS = 64  # kinds of calls with separate samples
_MAX_RUNNING = 64  # calls at once, in threads or nested


class _Held:
    """Object in a call's frame that is deleted when the call ends."""

    __slots__ = ("__weakref__",)


class Clock:
    def __init__(self) -> None:
        self.eager_seconds = 0.0
        self.times = Times()
        self._running: deque[list[Any]] = deque(maxlen=_MAX_RUNNING)
        self._lock = RLock()
        self._costs: dict[int, CallCosts] = {}

    def begin(self, way: Way, begun: float = 0.0, stands_for: int = 1, kind: int | None = None) -> object:
        """Start timing an eager call; the caller must keep the returned object in the call's frame.

        A weak reference's callback notes the end. It runs only C code, as a KeyboardInterrupt would be lost in Python
        code run by a deletion.
        """
        held = _Held()
        call: list[Any] = [(way, stands_for, kind), begun or perf_counter()]
        call.append(ref(held, partial(next, map(call.append, iter(perf_counter, None)))))
        self._running.append(call)
        return held

    def settle(self) -> None:
        calls: list[Any] = []
        with self._lock:
            # A call that has ended has a fourth entry. In order: a call waits for those that began before.
            while self._running and len(self._running[0]) > 3:
                calls.append(self._running.popleft())
        for (way, stands_for, kind), begun, _, ended in calls:
            if kind is not None:
                self.costs_of(kind).note_before(ended - begun)
            self.eager_seconds += stands_for * (ended - begun)
            self.times.count += stands_for - 1
            self.times.add(begun, ended, way)

    def costs_of(self, kind: int) -> CallCosts:
        costs = self._costs.get(kind)
        if costs is None:
            if len(self._costs) >= _KINDS:
                # Kinds that never ran compiled have no costs to compare.
                self._costs = {kind: costs for kind, costs in self._costs.items() if costs.calls}
            costs = self._costs[kind] = CallCosts()
        return costs

    @property
    def costs(self) -> list[CallCosts]:
        self.settle()
        return list(self._costs.values())


_KEPT = 64  # samples of each sort


@dataclass(frozen=True, slots=True)
class Estimate:
    seconds: float = nan  # the median
    low: float = nan  # ends of its interval
    high: float = nan
    count: int = 0  # samples


class CallCosts:
    __slots__ = ("_before", "_both", "_compiled", "_left", "calls")

    def __init__(self) -> None:
        self.calls = 0
        self._before, self._both, self._left, self._compiled = (deque[float](maxlen=_KEPT) for _ in range(4))

    def note_before(self, seconds: float) -> None:
        self._before.append(seconds)

    def note_both(self, eager: float, left: float, compiled: float) -> None:
        """Add a call that ran both ways; `left` is the time from the eager return to its results."""
        self._both.append(eager)
        self._left.append(left)
        self._compiled.append(compiled)

    def note_compiled(self, seconds: float) -> None:
        self._compiled.append(seconds)

    def eager_seconds(self) -> float:
        return min((median(samples) for samples in self._eager().values()), default=nan)

    def eager(self) -> tuple[Estimate, Basis]:
        """Return the estimated seconds of an eager call until its results are ready, and the kind of samples it rests
        on.

        Without samples: an estimate of nan, and "".
        """
        estimates: dict[Basis, Estimate] = {basis: _estimate(samples) for basis, samples in self._eager().items()}
        if not estimates:
            return Estimate(), ""
        lowest: Basis = min(estimates, key=lambda basis: estimates[basis].seconds)
        # Disturbances only lengthen samples, so both ends are the lowest of all intervals.
        low, high = (min(getattr(one, end) for one in estimates.values()) for end in ("low", "high"))
        return Estimate(estimates[lowest].seconds, low, high, estimates[lowest].count), lowest

    def _eager(self) -> dict[Basis, Sequence[float]]:
        # JAX runs ahead: add the time from return to results, measured on calls both ways. The minimum, as a busy
        # machine wakes a waiting thread late.
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
    eager: Estimate
    compiled: Estimate
    basis: Basis  # samples of the eager estimate


def together(kinds: Sequence[CallCosts]) -> FunctionCosts | None:
    """Return the costs averaged over the kinds that were measured both ways, weighted by their calls; None without such
    kinds.
    """
    measured = [(kind, *kind.eager(), kind.compiled()) for kind in kinds]
    measured = [entry for entry in measured if entry[1].count and entry[3].count]
    if not measured:
        return None
    costs, eager, bases, compiled = zip(*measured, strict=True)
    calls = [float(kind.calls) for kind in costs]
    weights = calls if any(calls) else [1.0] * len(calls)
    return FunctionCosts(_mean(eager, weights), _mean(compiled, weights), bases[weights.index(max(weights))])


def _estimate(samples: Sequence[float]) -> Estimate:
    low, high = interval_of_median(samples)
    return Estimate(median(samples), max(low, 0.0), high, len(samples))


def _mean(estimates: Sequence[Estimate], weights: Sequence[float]) -> Estimate:
    def of(name: str) -> float:
        return fsum(w * getattr(one, name) for w, one in zip(weights, estimates, strict=True)) / fsum(weights)

    return Estimate(of("seconds"), of("low"), of("high"), sum(estimate.count for estimate in estimates))


_FIRST, _LAST = 256, 256  # calls of a function that are kept
_EVENTS = 4096
Listener = Callable[[HotEvent], None]


class Function(Protocol):
    name: str
    refusal: Refusal | None

    @property
    def original(self) -> FunctionType: ...


class Times:
    __slots__ = ("_first", "_last", "count")

    def __init__(self) -> None:
        self.count = 0
        self._first: list[tuple[int, float, float, Way]] = []
        self._last: deque[tuple[int, float, float, Way]] = deque(maxlen=_LAST)

    def add(self, start: float, end: float, way: Way) -> None:
        self.count = count = self.count + 1
        (self._first if count <= _FIRST else self._last).append((count, start, end - start, way))

    def columns(self, began: float) -> CallTimes:
        rows = [*self._first, *self._last.copy()]
        if not rows:
            return CallTimes()
        numbers, starts, seconds, ways = zip(*rows, strict=True)
        return CallTimes(numbers, tuple(start - began for start in starts), seconds, ways)

    def median(self, *ways: Way) -> tuple[float, int]:
        seconds = [seconds for _, _, seconds, way in [*self._first, *self._last.copy()] if way in ways]
        return (median(seconds), len(seconds)) if seconds else (nan, 0)


class Journal:
    def __init__(self, listeners: Iterable[Listener] = ()) -> None:
        self.began = perf_counter()
        self.listeners = list(listeners)
        # Numbered instead of locked: an interrupted thread could keep a lock.
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
            except Exception:  # a listener's fault must not reach the user's call
                continue
