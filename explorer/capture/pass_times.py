"""The passes that ran, including those that changed nothing, and their times, from the compiler's trace events."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from explorer._jax import may_profile
from explorer._jax.profiling import profiling, read_profile
from explorer.errors import ProfilerBusyError

START = "pipeline-start"  # marks the start of a pipeline among runs and snapshots

_PIPELINE = re.compile(r"(.+) \(([^()]+)\)")  # `simplification (jit_f)`: a pipeline that runs on a module
_NO_PASS = ("RunInvariantCheckers",)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a pass; without `seconds` where it wasn't measured."""

    name: str
    pipeline: str
    seconds: float | None = None


@dataclass
class Recording:
    """The runs of a recording once it is over; empty where the profiler was busy or reported nothing."""

    runs: list[Run] = field(default_factory=list[Run])


@contextmanager
def timed() -> Generator[Recording]:
    """Record the passes that run within; none where JAX's profiler, one per process, is busy or unusable."""
    recording = Recording()
    if not may_profile():
        yield recording
        return
    session = ExitStack()
    try:
        profile = session.enter_context(profiling())
    except ProfilerBusyError:  # the user profiles something
        yield recording
        return
    try:
        yield recording
    finally:
        with suppress(ProfilerBusyError, RuntimeError, OSError):  # a full disk, where the profile goes through files
            session.close()
    with suppress(RuntimeError):  # cut short
        recording.runs += _runs(read_profile(profile.data)) if profile.data else []


@dataclass(slots=True)
class _Open:
    """An event that contains the following ones, up to `end`."""

    end: float
    pipeline: str
    run: int  # its index among the runs, or -1


def _runs(profile: Any) -> Iterable[Run]:
    """Return the runs of the thread that compiled most: other threads may compile at the same time."""
    lines = [line for plane in profile.planes for line in plane.lines]
    runs: list[list[Run]] = [_runs_of(line.events) for line in lines]
    return max(runs, key=len, default=list[Run]())


def _runs_of(events: Iterable[Any]) -> list[Run]:
    runs: list[Run | None] = []
    stack: list[_Open] = []
    for event in sorted(events, key=lambda event: (event.start_ns, -event.duration_ns)):
        outer = _innermost_open(stack, event.start_ns)
        match = _PIPELINE.fullmatch(event.name)
        pipeline, run = "" if match is None else match[1], -1
        if match is not None:
            if outer.run >= 0:
                runs[outer.run] = None  # a pass that is a pipeline: only its inner passes count
            runs.append(Run(START, pipeline))
        elif outer.pipeline and event.name not in _NO_PASS:
            run = len(runs)
            runs.append(Run(event.name, outer.pipeline, event.duration_ns / 1e9))
        stack.append(_Open(event.start_ns + event.duration_ns, pipeline, run))
    return [run for run in runs if run is not None]


def _innermost_open(stack: list[_Open], now: float) -> _Open:
    """Return the event around what starts now; drop those of the stack that ended before."""
    while stack and now >= stack[-1].end:
        stack.pop()
    return stack[-1] if stack else _Open(0, "", -1)
