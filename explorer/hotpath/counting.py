"""Counters of calls that find functions called often, at almost no cost."""

from __future__ import annotations

import gc
import sys
from _thread import start_new_thread
from collections.abc import Callable
from contextlib import suppress
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from threading import Event, get_ident
from time import sleep
from types import CodeType, FrameType, FunctionType
from typing import Any

from explorer.hotpath.swap import is_copy, own_code
from explorer.model.stage import is_library_file
from explorer.runtime.generated import GENERATED

# Their calls only make an object: nothing runs that could be compiled.
_STEPWISE = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
_TOOLS = (4, 3, 1)  # numbers that Python reserves for no tool
_NAME = "explorer hot paths"
_MAX_CODES = 20_000  # about 5 MB
_monitoring: Any = getattr(sys, "monitoring", None)
_frame: Callable[[int], FrameType] = getattr(sys, "_getframe")  # noqa: B009 - documented, for debuggers
_frames: Callable[[], dict[int, FrameType]] = getattr(sys, "_current_frames")  # noqa: B009 - documented, for debuggers


class _Counts:
    """Number of times that each code was seen.

    Codes are compared by identity and kept alive: codes of equal text are equal, such as those of a cell that runs
    again, and hashing a code hashes its constants. At the limit all counts restart.
    """

    def __init__(self) -> None:
        self._counts: dict[int, list[Any]] = {}

    def add(self, code: CodeType) -> int:
        entry = self._counts.get(id(code))
        if entry is None:
            if len(self._counts) >= _MAX_CODES:
                self._counts = {}
            entry = self._counts[id(code)] = [code, 0]
        entry[1] += 1
        return entry[1]


def may_be_hot(code: CodeType) -> bool:
    """Return True for the code of a user's ordinary function that isn't watched yet; False for generators and library
    code.
    """
    is_named = not code.co_name.startswith("<") or code.co_name == "<lambda>"
    return (
        is_named
        and not code.co_filename.startswith(GENERATED)
        and own_code(code) is code
        and not code.co_flags & _STEPWISE
        and not is_library_file(code.co_filename)
    )


class MonitoredCalls:
    """Counter by `sys.monitoring`, from Python 3.12 on; a nominated function is no longer counted."""

    def __init__(self, calls: int, nominate: Callable[[FunctionType], None]) -> None:
        self._calls, self._nominate = calls, nominate
        self._counts = _Counts()
        self._tool = -1

    @staticmethod
    def is_possible() -> bool:
        """Return True if Python has `sys.monitoring` and a free tool number."""
        return _monitoring is not None and any(_monitoring.get_tool(tool) is None for tool in _TOOLS)

    def start(self) -> None:
        self._tool = next(tool for tool in _TOOLS if _monitoring.get_tool(tool) is None)
        _monitoring.use_tool_id(self._tool, _NAME)
        _monitoring.register_callback(self._tool, _monitoring.events.PY_START, self._started)
        _monitoring.set_events(self._tool, _monitoring.events.PY_START)
        _monitoring.restart_events()  # undo the DISABLE of earlier counters

    def stop(self) -> None:
        tool = self._tool
        if tool >= 0 and _monitoring.get_tool(tool) == _NAME:  # otherwise another tool has taken the number
            _monitoring.set_events(tool, 0)
            _monitoring.register_callback(tool, _monitoring.events.PY_START, None)
            _monitoring.free_tool_id(tool)
        self._tool = -1  # last, so that an interrupted stop can be repeated

    def _started(self, code: CodeType, offset: int) -> Any:
        if not may_be_hot(code):  # checked again, as any tool may restart all events
            return _monitoring.DISABLE
        if self._counts.add(code) < self._calls:
            return None
        with suppress(Exception):  # our own fault must not reach the user's call
            for function in functions_of(code, _frame(1)):
                self._nominate(function)
        return _monitoring.DISABLE


class SampledCalls:
    """Counter by sampling all threads' stacks, for Python 3.11. A sample takes 10 µs, 200 times a second."""

    _EVERY = 0.005  # seconds

    def __init__(self, calls: int, nominate: Callable[[FunctionType], None]) -> None:
        self._calls, self._nominate = calls, nominate
        self._counts = _Counts()
        self._ended, self._is_looking = Event(), False

    def start(self) -> None:
        start_new_thread(self._watch, ())  # atomic: an interrupted `Thread.start` leaves an undefined state

    def stop(self) -> None:
        self._ended.set()
        while self._is_looking:  # a thread that starts later sees that it ended
            sleep(self._EVERY / 10)

    def _watch(self) -> None:
        self._is_looking = True
        try:
            while not self._ended.wait(self._EVERY):
                self._look_at_all()
        finally:
            self._is_looking = False

    def _look_at_all(self) -> None:
        # Hold no frame between samples: its local variables would outlive the call.
        for thread, frame in _frames().items():
            if thread != get_ident():
                self._look(frame)

    def _look(self, frame: FrameType | None) -> None:
        while frame is not None:
            code = frame.f_code
            # Once, at the limit: `may_be_hot` takes longer than counting.
            if self._counts.add(code) == self._calls and may_be_hot(code):
                with suppress(Exception):  # continue with the next function
                    for function in functions_of(code, frame):
                        self._nominate(function)
            frame = frame.f_back


def functions_of(code: CodeType, frame: FrameType | None = None) -> list[FunctionType]:
    """Return the functions that run a code, without Explorer's own copies.

    If the function of the code's name in `frame`'s globals runs it, return that function alone.
    """
    named = _named(code, frame) if frame is not None else None
    if named is not None:
        return [named]
    # Without our own copies, or each hot path would copy copies.
    users = gc.get_referrers(code)
    return [one for one in users if type(one) is FunctionType and one.__code__ is code and not is_copy(one)]


def _named(code: CodeType, frame: FrameType) -> FunctionType | None:
    first, *rest = code.co_qualname.split(".")
    value: Any = frame.f_globals.get(first)
    for name in rest:
        value = value.__dict__.get(name) if isinstance(value, type) else None
    if type(value) in (staticmethod, classmethod):
        value = value.__func__
    return value if type(value) is FunctionType and value.__code__ is code else None
