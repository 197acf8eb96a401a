"""Attribution of each moment of each thread to an instruction.

A thread works for the innermost event that it is in. Inside a region it works for the instruction that handed over the
work, until the runtime continues with other instructions. A moment in which several threads work is divided equally
among them, so the sum over instructions is the time in which any ran. A thread that waits for others counts only if
all threads wait; in a collective, such as an all-reduce, a thread mostly waits.

Time is divided by threads, not by instructions: next to a product on seven cores, a sort on one takes an eighth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from explorer.model.graph import Floats, Ints
from explorer.model.results.profile_events import BETWEEN, HOST, RECORD, REGION, THUNK, WAIT, Events, Timeline

_UNOWNED = -1
_WORK = -2  # `_WORK - number` is the unknown owner of a piece of work


@dataclass(frozen=True, eq=False)
class Segments:
    """Stretches of time in which one thread worked for one instruction: columns of shape `[m]`."""

    thread: Ints
    start: Floats
    end: Floats
    op: Ints
    waits: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.thread)


@dataclass(frozen=True, eq=False)
class Shares:
    """The time of each instruction in each run.

    Args:
        seconds: Own seconds, shape `[runs, ops]`; each row sums to `busy`.
        count: Number of executions, shape `[runs, ops]`.
        busy: Seconds in which anything ran, shape `[runs]`.
    """

    seconds: Floats
    count: Floats
    busy: Floats


@dataclass(slots=True)
class _Open:
    """An event that a thread is in.

    `owner` is the op that the thread works for. If `is_open`, the owner stays after nested events: a loop continues
    after an instruction of its body, and a wait after work done meanwhile.
    """

    end: float
    owner: int
    is_open: bool = False
    is_region: bool = False
    waits: bool = False


def segments(
    events: Events, is_control: NDArray[np.bool_] | None = None, is_collective: NDArray[np.bool_] | None = None
) -> Segments:
    """Return each thread's time cut at its events, each stretch as time of the innermost event.

    Args:
        is_control: True for each op that runs others (`while`, `call`, `conditional`): time between these is its own.
        is_collective: True for each op that waits for other devices.
    """
    cutting = _Cutting(events, is_control)
    cutting.run()
    cut = cutting.segments()
    return cut if is_collective is None else replace(cut, waits=cut.waits | is_collective[cut.op])


def regions(events: Events) -> dict[int, int]:
    """Return the op that each region works for, by index of the region's event; an op is an index in `events.ops`.

    A region is a stretch of work that another thread handed over. Regions without an op are missing.
    """
    cutting = _Cutting(events, None)
    cutting.run()
    owners = {number: cutting.owner(_WORK - work) for number, work in cutting.work_of.items() if work >= 0}
    return {number: op for number, op in owners.items() if op >= 0}


class _Cutting:
    """One pass over all events, with a stack of the events that the thread is in."""

    def __init__(self, events: Events, is_control: NDArray[np.bool_] | None) -> None:
        self.events = events
        self.control = (np.zeros(len(events.ops), bool) if is_control is None else is_control).tolist()
        self.stack: list[_Open] = []
        self.thread, self.since = -1, 0.0
        # Owners are known only after all threads were read. An owner is an op, _UNOWNED, or less: a piece of work.
        self.given: dict[int, int] = {}  # the owner of each piece of work
        self.work_of: dict[int, int] = {}  # the piece of work of each event
        self.cut: tuple[list[int], list[float], list[float], list[int], list[bool]] = ([], [], [], [], [])

    def run(self) -> None:
        order = _in_order(self.events)
        columns = (self.events.thread, self.events.start, self.events.end, self.events.kind, self.events.what)
        rows = zip(order.tolist(), *(column[order].tolist() for column in columns), strict=True)
        stack = self.stack
        for number, thread, start, end, kind, what in rows:
            # Rows are sorted by thread, and no event is inside one of another thread.
            if thread != self.thread:
                self.close(np.inf)
                self.thread = thread
            self.close(start)
            top = stack[-1] if stack else None
            if kind == RECORD:
                self.given[what] = top.owner if top is not None else _UNOWNED
                continue
            if top is not None and top.end < end:
                end = top.end  # clock resolution: nested events can't end later
            self.emit(start)
            if kind == REGION:
                self.work_of[number] = what
            stack.append(self.opened(top, end, kind, what))
        self.close(np.inf)

    def opened(self, top: _Open | None, end: float, kind: int, what: int) -> _Open:
        if kind == THUNK:
            return _Open(end, what, self.control[what])
        if kind == REGION:
            return _Open(end, _WORK - what if what >= 0 else _UNOWNED, is_region=True)
        owner = top.owner if top is not None else _UNOWNED
        if kind == WAIT:
            return _Open(end, owner, is_open=True, waits=True)
        # The runtime works for a loop between the loop's instructions, elsewhere for no op.
        in_loop = top is not None and top.is_open
        return _Open(end, owner if in_loop else _UNOWNED, in_loop)

    def close(self, time: float) -> None:
        stack = self.stack
        while stack and stack[-1].end <= time:
            self.emit(stack[-1].end)
            closed = stack.pop()
            if stack and not (closed.is_region or closed.waits or stack[-1].is_open):
                stack[-1].owner = _UNOWNED  # the runtime continued with other work

    def emit(self, time: float) -> None:
        """Add the stretch from the last change to `time`, owned by the innermost event; nothing without an owner."""
        if self.stack and self.stack[-1].owner != _UNOWNED and time > self.since:
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
            if code >= _UNOWNED:
                return code
            code = self.given.get(_WORK - code, _UNOWNED)
        return _UNOWNED  # a cycle in damaged input

    def segments(self) -> Segments:
        kinds = (np.int32, np.float64, np.float64, np.int64, bool)
        thread, start, end, code, waits = (np.asarray(c, kind) for c, kind in zip(self.cut, kinds, strict=True))
        codes, at = np.unique(code, return_inverse=True)
        op = np.asarray([self.owner(each) for each in codes.tolist()], np.int32)[at] if len(codes) else code
        owned = op >= 0
        return Segments(thread[owned], start[owned], end[owned], op[owned].astype(np.int32), waits[owned])


# Nesting of events with equal start and end, outermost first.
_RANK = {REGION: 0, BETWEEN: 1, THUNK: 2, WAIT: 3, RECORD: 4}


def _in_order(events: Events) -> NDArray[np.intp]:
    """Return the indices of all but the host's events by thread and start, enclosing events first."""
    used = np.flatnonzero(events.kind != HOST)
    rank = np.asarray([_RANK.get(kind, 0) for kind in range(HOST)])[events.kind[used]]
    start, length = events.start[used], events.end[used] - events.start[used]
    return used[np.lexsort((events.what[used], rank, -length, start, events.thread[used]))]


def shares(events: Events, cut: Segments) -> Shares:
    """Return the seconds of each op in each run: a moment is divided among the threads that work in it."""
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
    """Return the index of the run that each moment is in, -1 outside of all."""
    run = np.searchsorted(windows[:, 0], start, "right") - 1
    is_in = (run >= 0) & (start < windows[np.maximum(run, 0), 1]) if len(windows) else np.zeros(len(start), bool)
    return np.where(is_in, run, -1)


def _active(first: NDArray[np.intp], after: NDArray[np.intp], count: int) -> NDArray[np.int64]:
    change = np.bincount(first, minlength=count) - np.bincount(after, minlength=count)
    return np.cumsum(change)


def _summed(passed: Floats, active: NDArray[np.int64]) -> Floats:
    """Return at each moment the sum of the stretches before, each divided by its number of active threads.

    Stretches without an active thread count 0. The arguments are the length of each stretch, and that number.
    """
    part = np.where(active > 0, passed / np.maximum(active, 1), 0.0)
    return np.concatenate([[0.0], np.cumsum(part)])[: len(part)] if len(part) else part


def _counts(events: Events) -> Floats:
    runs, ops = len(events.windows), len(events.ops)
    thunks = np.flatnonzero(events.kind == THUNK)
    run = run_at(events.windows, events.start[thunks])
    inside = run >= 0
    where = run[inside] * ops + events.what[thunks][inside]
    return np.bincount(where, minlength=runs * ops).reshape(runs, ops).astype(np.float64)


_MAX_STRETCHES = 20_000


def timeline_of(
    events: Events, cut: Segments, kept: NDArray[np.bool_], rows: Sequence[tuple[int, str]], most: int = _MAX_STRETCHES
) -> Timeline:
    """Return the stretches of the median run, only the longest if there are more than `most`.

    Args:
        events, cut: Recorded events and their segments.
        kept: True for each run that counts, shape `[runs]`; without one, the timeline is empty.
        rows: Program and name of each row of the profile's `ops`; others are left out.
        most: Maximum number of stretches.
    """
    row_of = {key: row for row, key in enumerate(rows)}
    row = np.asarray([row_of.get((op.program, op.name), -1) for op in events.ops] or [-1], np.int32)
    runs = np.flatnonzero(kept)
    if not len(runs):
        none = np.zeros(0)
        return Timeline(none, none, none.astype(np.int32), none.astype(np.int32), none.astype(bool), (), 0.0)
    walls = (events.windows[:, 1] - events.windows[:, 0])[runs]
    # A run that took place, because a mean of runs has no order of events.
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
