"""Columns of events from a recording of XLA's profiler.

On a CPU, the plane `/host:CPU` has a line per thread. An instruction is an event with the stat `hlo_op` (XLA's
cpu/runtime/thunk_executor.cc); tsl's threadpool_listener.cc records work that moves to another thread.

A GPU has a plane `/device:GPU:0` with a line per stream, `Stream #7(Kernel,MemcpyD2D)`: the kernels that CUPTI saw,
with the annotation of the thunk that launched each (XLA's profiler/gpu/cupti_collector.cc). Other lines are derived
from these. Launches on the host are not counted. Written from those sources and tested on what they would write.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from explorer.model.results.profile_events import BETWEEN, HOST, RECORD, REGION, THUNK, WAIT, Events, Op

# Annotations of each call of the profiled function, and of the wait for its result within.
CALL = "explorer: call"
RESULT = "explorer: result"
_SHOWN = {CALL: "Python", RESULT: "waiting for the result"}

_RECORD, _START, _STOP = (f"ThreadpoolListener::{name}" for name in ("Record", "StartRegion", "StopRegion"))
_WAITS = re.compile(r"(?:^|::)(?:Await|Wait\w*)$|\(wait for completion\)$")
_EXECUTOR = "ThunkExecutor::"
_END = "end: "  # marks that an instruction's result is ready; late, and on any thread
_STREAM = "Stream #"
_NANO = 1e-9


def events_of(planes: Iterable[Any]) -> Events:
    """Return the events of the planes of a `jax.profiler.ProfileData`."""
    reader, all_planes = _Reader(), list(planes)
    # Devices first: what the host does for a program that ran on one is its launch, not its time.
    for plane in all_planes:
        for line in plane.lines if plane.name.startswith("/device:") else ():
            if line.name.startswith(_STREAM):
                reader.stream(line, plane.name.removeprefix("/device:"))
    for plane in all_planes:
        for line in plane.lines if plane.name.startswith("/host:") else ():
            reader.host(line)
    return reader.events()


class _Reader:
    def __init__(self) -> None:
        self.rows: list[tuple[int, float, float, int, int]] = []
        self.threads: list[str] = []
        self.ops: dict[Op, int] = {}
        self.names: dict[str, int] = {}
        self.windows: list[tuple[float, float]] = []
        self.python = -1
        self.is_thunk: dict[str, bool] = {}  # by name of the event: reading the stats of one takes 3 µs
        self.on_device: set[int] = set()  # the programs that ran on a device with a plane of its own

    def stream(self, line: Any, device: str) -> None:
        """Add the events of a GPU's stream, which follow each other, and the stream as a thread."""
        thread = len(self.threads)
        self.threads.append(f"{device} {line.name}")
        for event in line.events:
            start: float = event.start_ns * _NANO
            name: str = event.name
            if event.duration_ns > 0:
                op = _op(event, name) or Op(-1, "", name)
                self.on_device.add(op.program)
                self.rows.append(
                    (thread, start, start + event.duration_ns * _NANO, THUNK, self.ops.setdefault(op, len(self.ops)))
                )

    def host(self, line: Any) -> None:
        """Add a thread of the host, which may be the device too, and its events."""
        thread = len(self.threads)
        self.threads.append(line.name)
        regions: list[tuple[float, int]] = []
        add = self.rows.append
        last = 0.0
        for event in line.events:
            name: str = event.name
            if name.startswith(_END):
                continue
            start: float = event.start_ns * _NANO
            end = start + event.duration_ns * _NANO
            last = max(last, end)
            if name == _START:
                regions.append((start, _stat(event, "_c")))
            elif name == _STOP:
                if regions:
                    began, work = regions.pop()
                    add((thread, began, start, REGION, work))
            elif name == _RECORD:
                add((thread, start, start, RECORD, _stat(event, "_p")))
            else:
                add((thread, start, end, *self.kind(name, event, thread, start, end)))
        for began, work in regions:  # the recording ended inside
            add((thread, began, max(last, began), REGION, work))

    def kind(self, name: str, event: Any, thread: int, start: float, end: float) -> tuple[int, int]:
        is_thunk = self.is_thunk.get(name)
        if is_thunk is not False:
            op = _op(event)
            self.is_thunk[name] = op is not None or bool(is_thunk)
            if op is not None and op.program not in self.on_device:
                return THUNK, self.ops.setdefault(op, len(self.ops))
        if name == CALL:
            self.windows.append((start, end))
            self.python = thread
        kind = WAIT if _WAITS.search(name) else BETWEEN if name.startswith(_EXECUTOR) else HOST
        return kind, self.names.setdefault(_SHOWN.get(name, name), len(self.names))

    def events(self) -> Events:
        table = self.rows
        thread, start, end, kind, what = zip(*table, strict=True) if table else ((),) * 5
        return Events(
            np.asarray(thread, np.int32),
            np.asarray(start, np.float64),
            np.asarray(end, np.float64),
            np.asarray(kind, np.int32),
            np.asarray(what, np.int64),
            tuple(self.threads),
            tuple(self.ops),
            tuple(self.names),
            np.asarray(sorted(self.windows), np.float64).reshape(-1, 2),
            self.python,
        )


def _op(event: Any, kernel: str = "") -> Op | None:
    """Return the instruction that an event belongs to, run by `kernel`; None if the event names no instruction."""
    stats: dict[str, Any] = dict(event.stats)
    if "hlo_op" not in stats:
        return None
    return Op(int(stats.get("program_id", -1)), str(stats.get("hlo_module", "")), str(stats["hlo_op"]), kernel)


def _stat(event: Any, name: str) -> int:
    """Return the statistic `name` of an event; -1 without one of that name."""
    return next((int(value) for key, value in event.stats if key == name), -1)
