"""Each moment of each thread to the instruction that it works for.

A thread works for the innermost event that it is in. Inside a region it works for whoever gave it the work, until the
runtime goes on from there with other instructions: then what it was given is done. A moment in which several threads
work is shared among them equally, so what the instructions have adds up to the time in which any of them ran. A thread
that waits for others has no part in that, unless all do; in a collective, such as an all-reduce, a thread mostly waits.

By threads, not by instructions: next to a product on seven cores, a sort on one takes an eighth of the machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from explorer.model.graph import Floats, Ints
from explorer.model.results.profile_events import BETWEEN, HOST, RECORD, REGION, THUNK, WAIT, Events, Timeline

_NOBODY = -1
_WORK = -2  # less the number of a piece of work: whoever it belongs to


@dataclass(frozen=True, eq=False)
class Segments:
    """Stretches of time that one thread worked for one instruction: columns of shape `[m]`."""

    thread: Ints
    start: Floats
    end: Floats
    op: Ints
    waits: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.thread)


@dataclass(frozen=True, eq=False)
class Shares:
    """What each run has of each instruction.

    Args:
        seconds: Its own, shape `[runs, ops]`; each row adds up to `busy`.
        count: How often it ran, shape `[runs, ops]`.
        busy: Seconds in which anything ran, shape `[runs]`.
    """

    seconds: Floats
    count: Floats
    busy: Floats


@dataclass(slots=True)
class _Open:
    """An event that a thread is in.

    `owner` is the op that the thread works for in it. `is_open` says that it stays so whatever runs inside: a loop goes
    on after an instruction of its body, and a wait after work done meanwhile.
    """

    end: float
    owner: int
    is_open: bool = False
    is_region: bool = False
    waits: bool = False


def segments(
    events: Events, is_control: NDArray[np.bool_] | None = None, is_collective: NDArray[np.bool_] | None = None
) -> Segments:
    """Cut each thread's time at the events in it.

    Args:
        is_control: Of each op, whether it runs others (`while`, `call`, `conditional`): what passes between these is
            its own time.
        is_collective: Of each op, whether it waits for other devices.
    """
    cutting = _Cutting(events, is_control)
    cutting.run()
    cut = cutting.segments()
    return cut if is_collective is None else replace(cut, waits=cut.waits | is_collective[cut.op])


def regions(events: Events) -> dict[int, int]:
    """By number of a region's event, the op that it works for; without those that work for none."""
    cutting = _Cutting(events, None)
    cutting.run()
    owners = {number: cutting.owner(_WORK - work) for number, work in cutting.work_of.items() if work >= 0}
    return {number: op for number, op in owners.items() if op >= 0}


class _Cutting:
    """One pass over all events, with the stack of those that the thread is in.

    It keeps its state for the next event, as a parser does; what it found is read by `segments` and `regions`.
    """

    def __init__(self, events: Events, is_control: NDArray[np.bool_] | None) -> None:
        self.events = events
        self.control = (np.zeros(len(events.ops), bool) if is_control is None else is_control).tolist()
        self.stack: list[_Open] = []
        self.thread, self.since = -1, 0.0
        # Who works for whom is known once all threads were looked at: an owner is an op, _NOBODY, or below that a piece
        # of work that was handed over.
        self.given: dict[int, int] = {}  # by the number of the work, its owner
        self.work_of: dict[int, int] = {}  # by event
        self.cut: tuple[list[int], list[float], list[float], list[int], list[bool]] = ([], [], [], [], [])

    def run(self) -> None:
        order = _in_order(self.events)
        columns = (self.events.thread, self.events.start, self.events.end, self.events.kind, self.events.what)
        rows = zip(order.tolist(), *(column[order].tolist() for column in columns), strict=True)
        stack = self.stack
        for number, thread, start, end, kind, what in rows:
            if thread != self.thread:
                self.close(np.inf)
                self.thread = thread
            self.close(start)
            top = stack[-1] if stack else None
            if kind == RECORD:
                self.given[what] = top.owner if top is not None else _NOBODY
                continue
            if top is not None and top.end < end:
                end = top.end  # the clock cut off what is not nested
            self.emit(start)
            if kind == REGION:
                self.work_of[number] = what
            stack.append(self.opened(top, end, kind, what))
        self.close(np.inf)

    def opened(self, top: _Open | None, end: float, kind: int, what: int) -> _Open:
        if kind == THUNK:
            return _Open(end, what, self.control[what])
        if kind == REGION:
            return _Open(end, _WORK - what if what >= 0 else _NOBODY, is_region=True)
        owner = top.owner if top is not None else _NOBODY
        if kind == WAIT:
            return _Open(end, owner, is_open=True, waits=True)
        # The runtime, between the instructions of a loop works for the loop, elsewhere for none.
        is_its = top is not None and top.is_open
        return _Open(end, owner if is_its else _NOBODY, is_its)

    def close(self, time: float) -> None:
        stack = self.stack
        while stack and stack[-1].end <= time:
            self.emit(stack[-1].end)
            closed = stack.pop()
            if stack and not (closed.is_region or closed.waits or stack[-1].is_open):
                stack[-1].owner = _NOBODY  # the runtime went on from there: what it was for is done

    def emit(self, time: float) -> None:
        """Add the stretch since the last change, of the innermost event that the thread was in."""
        if self.stack and self.stack[-1].owner != _NOBODY and time > self.since:
            top = self.stack[-1]
            thread, start, end, owner, waits = self.cut
            thread.append(self.thread)
            start.append(self.since)
            end.append(time)
            owner.append(top.owner)
            waits.append(top.waits)
        self.since = time

    def owner(self, code: int) -> int:
        for _ in range(len(self.given) + 1):
            if code >= _NOBODY:
                return code
            code = self.given.get(_WORK - code, _NOBODY)
        return _NOBODY  # work that hands over itself, in damaged input

    def segments(self) -> Segments:
        kinds = (np.int32, np.float64, np.float64, np.int64, bool)
        thread, start, end, code, waits = (np.asarray(c, kind) for c, kind in zip(self.cut, kinds, strict=True))
        codes, at = np.unique(code, return_inverse=True)
        op = np.asarray([self.owner(each) for each in codes.tolist()], np.int32)[at] if len(codes) else code
        owned = op >= 0
        return Segments(thread[owned], start[owned], end[owned], op[owned].astype(np.int32), waits[owned])


# Of one start and one end, which event is around the others.
_RANK = {REGION: 0, BETWEEN: 1, THUNK: 2, WAIT: 3, RECORD: 4}


def _in_order(events: Events) -> NDArray[np.intp]:
    """The order in which to look at events: by thread, by start, what is around others first; of the host, nothing."""
    used = np.flatnonzero(events.kind != HOST)
    rank = np.asarray([_RANK.get(kind, 0) for kind in range(HOST)])[events.kind[used]]
    start, length = events.start[used], events.end[used] - events.start[used]
    return used[np.lexsort((events.what[used], rank, -length, start, events.thread[used]))]


def shares(events: Events, cut: Segments) -> Shares:
    """Share each moment of each run among the threads that work in it."""
    runs, ops = len(events.windows), len(events.ops)
    run = run_at(events.windows, cut.start)
    last = events.windows[np.maximum(run, 0), 1] if runs else cut.end
    ends = np.minimum(cut.end, last)
    inside = (run >= 0) & (ends > cut.start)
    starts, ends, run = cut.start[inside], ends[inside], run[inside]
    op, waits = cut.op[inside], cut.waits[inside]
    times, at = np.unique(np.concatenate([starts, ends]), return_inverse=True)
    first, after = at[: len(starts)], at[len(starts) :]
    working = _active(first[~waits], after[~waits], len(times))
    waiting = np.where(working > 0, 0, _active(first[waits], after[waits], len(times)))
    passed = np.diff(times, append=times[-1:])
    part = np.stack([_summed(passed, working), _summed(passed, waiting)])
    kind = waits.astype(np.int64)
    seconds = part[kind, after] - part[kind, first]
    total = np.bincount(run * ops + op, seconds, runs * ops).astype(np.float64).reshape(runs, ops)
    return Shares(total, _counts(events), total.sum(axis=1))


def run_at(windows: Floats, start: Floats) -> NDArray[np.int64]:
    """Return the run that each moment is in, -1 for none."""
    run = np.searchsorted(windows[:, 0], start, "right") - 1
    is_in = (run >= 0) & (start < windows[np.maximum(run, 0), 1]) if len(windows) else np.zeros(len(start), bool)
    return np.where(is_in, run, -1)


def _active(first: NDArray[np.intp], after: NDArray[np.intp], count: int) -> NDArray[np.int64]:
    change = np.bincount(first, minlength=count) - np.bincount(after, minlength=count)
    return np.cumsum(change)


def _summed(passed: Floats, active: NDArray[np.int64]) -> Floats:
    """By moment, the time that one of those active has had until then."""
    part = np.where(active > 0, passed / np.maximum(active, 1), 0.0)
    return np.concatenate([[0.0], np.cumsum(part)])[: len(part)] if len(part) else part


def _counts(events: Events) -> Floats:
    runs, ops = len(events.windows), len(events.ops)
    thunks = np.flatnonzero(events.kind == THUNK)
    run = run_at(events.windows, events.start[thunks])
    inside = run >= 0
    where = run[inside] * ops + events.what[thunks][inside]
    return np.bincount(where, minlength=runs * ops).reshape(runs, ops).astype(np.float64)


_MOST = 20_000


def timeline_of(
    events: Events, cut: Segments, kept: NDArray[np.bool_], rows: Sequence[tuple[int, str]], most: int = _MOST
) -> Timeline:
    """The stretches of the run in the middle; of more than `most` the longest."""
    row_of = {key: row for row, key in enumerate(rows)}
    row = np.asarray([row_of.get((op.program, op.name), -1) for op in events.ops] or [-1], np.int32)
    runs = np.flatnonzero(kept)
    if not len(runs):
        none = np.zeros(0)
        return Timeline(none, none, none.astype(np.int32), none.astype(np.int32), none.astype(bool), (), 0.0)
    walls = (events.windows[:, 1] - events.windows[:, 0])[runs]
    began, ended = events.windows[runs[np.argsort(walls, kind="stable")[len(runs) // 2]]]
    shown = np.flatnonzero((cut.start >= began) & (cut.start < ended) & (row[cut.op] >= 0))
    left_out = max(len(shown) - most, 0)
    if left_out:
        longest = np.argsort(cut.start[shown] - cut.end[shown], kind="stable")[:most]
        shown = shown[np.sort(longest)]
    shown = shown[np.lexsort((cut.thread[shown], cut.start[shown]))]
    threads, thread = np.unique(cut.thread[shown], return_inverse=True)
    return Timeline(
        cut.start[shown] - began,
        np.minimum(cut.end[shown], ended) - began,
        thread.astype(np.int32),
        row[cut.op[shown]],
        cut.waits[shown],
        [events.threads[int(i)] for i in threads],
        float(ended - began),
        left_out,
    )
