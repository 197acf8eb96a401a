"""Who is called often: every function of the user's, at next to no cost, until it has been called a few times."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from threading import Event, Thread
from types import CodeType, FrameType, FunctionType
from typing import Any

from explorer.model.source import is_library_file

_STEPWISE = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
_TOOLS = (4, 3, 1)  # numbers that no tool of Python's own has
_monitoring: Any = getattr(sys, "monitoring", None)
_frames: Callable[[], dict[int, FrameType]] = getattr(sys, "_current_frames")  # noqa: B009 - documented, for debuggers


def may_be_hot(code: CodeType) -> bool:
    """Whether a code is a function of the user's that runs from a call to its return."""
    is_named = not code.co_name.startswith("<") or code.co_name == "<lambda>"
    return (
        is_named
        and code.co_filename != "<guards>"
        and not code.co_flags & _STEPWISE
        and not is_library_file(code.co_filename)
    )


class MonitoredCalls:
    """Counts calls by `sys.monitoring`, from Python 3.12 on; each function's count ends once it is nominated.

    Args:
        calls: How often a function is called until it is nominated.
        nominate: Is given each such function.
    """

    def __init__(self, calls: int, nominate: Callable[[FunctionType], None]) -> None:
        self._calls, self._nominate = calls, nominate
        self._counts: dict[CodeType, int] = {}
        self._tool = -1

    def start(self) -> None:
        self._tool = next(tool for tool in _TOOLS if _monitoring.get_tool(tool) is None)
        _monitoring.use_tool_id(self._tool, "explorer hot paths")
        _monitoring.register_callback(self._tool, _monitoring.events.PY_START, self._started)
        _monitoring.set_events(self._tool, _monitoring.events.PY_START)
        _monitoring.restart_events()  # whatever an earlier counter of this number had enough of counts again

    def stop(self) -> None:
        _monitoring.set_events(self._tool, 0)
        _monitoring.register_callback(self._tool, _monitoring.events.PY_START, None)
        _monitoring.free_tool_id(self._tool)

    def _started(self, code: CodeType, offset: int) -> Any:
        count = self._counts.get(code, 0) + 1
        if count == 1 and not may_be_hot(code):
            return _monitoring.DISABLE
        self._counts[code] = count
        if count < self._calls:
            return None
        for function in functions_of(code):
            self._nominate(function)
        return _monitoring.DISABLE


class SampledCalls:
    """Sees who is called often by looking at the stacks of all threads now and then: Python 3.11 has nothing better.

    What takes long is seen soon, however it was defined. A look takes some 10 µs, 200 times a second.

    Args:
        calls: In how many samples a function is seen until it is nominated.
        nominate: Is given each such function.
    """

    _EVERY = 0.005  # seconds

    def __init__(self, calls: int, nominate: Callable[[FunctionType], None]) -> None:
        self._calls, self._nominate = calls, nominate
        self._counts: dict[CodeType, int] = {}
        self._ended = Event()
        self._thread = Thread(target=self._watch, name="explorer hot paths", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(self._EVERY):
            for thread, frame in _frames().items():
                if thread != self._thread.ident:
                    self._look(frame)

    def _look(self, frame: FrameType | None) -> None:
        while frame is not None:
            code = frame.f_code
            count = self._counts.get(code, 0) + 1
            self._counts[code] = count
            if count == self._calls and may_be_hot(code):
                for function in functions_of(code):
                    self._nominate(function)
            frame = frame.f_back


def functions_of(code: CodeType) -> list[FunctionType]:
    """The functions that run a code now."""
    users = gc.get_referrers(code)
    return [user for user in users if type(user) is FunctionType and user.__code__ is code]
