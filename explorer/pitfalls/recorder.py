"""Record which of the user's functions ran in a trace, and what they called.

From Python 3.12 `sys.monitoring` reports both, at no cost for library code. On Python 3.11 `sys.settrace` reports each
instruction of the user's functions. The callee is then read from the text (`safe_reading.find`), and by
`sys.setprofile` for one call where the text is not enough.
"""

from __future__ import annotations

import ast
import dis
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from inspect import CO_VARARGS, CO_VARKEYWORDS
from itertools import islice
from threading import get_ident
from types import CodeType, FrameType, MethodType
from typing import Any

from explorer._jax.traces import unchecked_leaks
from explorer.capture.safe_reading import callee_name, class_name, find, is_tracer, kind_of, mro
from explorer.capture.sources import Span, parse, read_source
from explorer.model.stage import is_library_file
from explorer.pitfalls.state import Snapshot, exact_items, snapshot

_MAX_RECEIVERS = 8  # distinguished per call expression, and kept alive
_MAX_INSTRUCTIONS = 200_000  # of one function that are watched one by one, where that costs: 3.11
_MAX_COUNTED = 10_000  # calls of one expression, where each costs: 3.12 and later


@dataclass(repr=False)
class Call:
    """Call expression of the user that was reached, with a count."""

    code: CodeType  # of the calling function
    span: Span  # of the expression
    callee: str  # what was called, with its module: `builtins.print`, `time.time`, `builtins.list.append`
    receiver: Any = None  # the object whose method it is; None for others
    count: int = 1  # how often
    # the names that stood for traced values there when it was first reached, with their types
    traced: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def times(self) -> str:
        return "once" if self.count == 1 else f"{self.count} times"


@dataclass(repr=False)
class ExecutedFunction:
    code: CodeType  # its code
    globals: dict[str, Any]  # the names of its module
    # what the names of enclosing functions stood for when it first ran
    free: dict[str, Any] = field(default_factory=dict[str, Any])
    owner: Any = None  # the object whose method it is, by the custom of calling that `self`; else None
    count: int = 1  # how often
    offsets: set[int] = field(default_factory=set[int])  # of the instructions that were reached
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])  # by parameter, when it first ran
    traced: dict[str, str] = field(default_factory=dict[str, str])  # those of them that were traced, with their types

    @classmethod
    def of(cls, frame: FrameType) -> ExecutedFunction:
        code, variables = frame.f_code, frame.f_locals
        free = {name: variables[name] for name in code.co_freevars if name in variables}
        count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & CO_VARARGS)
        count += bool(code.co_flags & CO_VARKEYWORDS)
        arguments = {name: variables[name] for name in code.co_varnames[:count] if name in variables}
        owner = variables.get("self") if code.co_argcount and code.co_varnames[0] == "self" else None
        return cls(code, frame.f_globals, free, owner, arguments=arguments, traced=_traced(arguments))

    def lookup(self, name: str) -> Any:
        """Return the value of a name that isn't local; `...` without one."""
        builtins: Any = self.globals.get("__builtins__")
        spaces: tuple[dict[str, Any], ...] = (self.free, self.globals, getattr(builtins, "__dict__", builtins))
        return next((space[name] for space in spaces if name in space), ...)

    @property
    def reached(self) -> frozenset[Span]:
        """Spans of the text whose instructions ran."""
        positions = list(self.code.co_positions())
        reached = (positions[offset // 2] for offset in self.offsets if offset // 2 < len(positions))
        return frozenset(
            Span(line, column, end_line, end_column)
            for line, end_line, column, end_column in reached
            if line is not None and end_line is not None and column is not None and end_column is not None
        )


@dataclass(repr=False)
class Recording:
    # the user's functions that ran, by their code, in the order in which they first did. Comprehensions that Python
    # compiles to functions are among them.
    executed: dict[CodeType, ExecutedFunction] = field(default_factory=dict[CodeType, ExecutedFunction])
    watched: CodeType | None = None  # the code whose arguments are kept
    # its arguments by parameter, as they were when it first ran
    arguments_before: Snapshot = field(default_factory=Snapshot)
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])  # the arguments themselves
    started: float = field(default_factory=time.time)  # when, in seconds since 1970
    _calls: dict[tuple[Any, ...], list[Call]] = field(default_factory=dict[tuple[Any, ...], list[Call]])

    @property
    def calls(self) -> tuple[Call, ...]:
        """Calls by place, in the order in which these were first reached, one for each of the first receivers."""
        return tuple(call for calls in self._calls.values() for call in calls)

    def add_function(self, frame: FrameType) -> ExecutedFunction:
        """Count a call of the user's function that a frame has just entered, and return the function."""
        function = self.executed.get(frame.f_code)
        if function is not None:
            function.count += 1
            return function
        self.executed[frame.f_code] = function = ExecutedFunction.of(frame)
        if frame.f_code is self.watched:
            self.arguments = function.arguments
            self.arguments_before = snapshot(function.arguments)
        return function

    def keep(self, call: Call) -> None:
        """Add a call that was read in the text."""
        self._calls[(id(call.code), *call.span[:2], call.callee)] = [call]

    def add_call(self, frame: FrameType, offset: int, callee: str, receiver: Any = None) -> int:
        """Count a call at an instruction offset, and return the count for this receiver."""
        # Keyed by address: recorded objects are kept alive, so addresses stay unique.
        code = frame.f_code
        calls = self._calls.setdefault((id(code), offset, callee), [])
        same = next((call for call in calls if call.receiver is receiver), None)
        if same is None and len(calls) < _MAX_RECEIVERS:
            calls.append(Call(code, _span(code, offset), callee, receiver, 1, _traced(frame.f_locals)))
            return 1
        same = same or calls[-1]
        same.count += 1
        return same.count


def _traced(names: Mapping[str, Any]) -> dict[str, str]:
    """Return the names of traced values, and of lists and dicts of them, with their types."""
    types = ((name, _traced_type(value)) for name, value in list(names.items()))
    return {name: kind for name, kind in types if kind}


def _traced_type(value: Any, depth: int = 0) -> str:
    if is_tracer(value):
        return value.aval.str_short()
    kind = kind_of(value)
    if depth > 2:
        return ""
    items = islice(exact_items(value) or (), 8)
    inner = next(filter(None, (_traced_type(item, depth + 1) for item in items)), "")
    return f"{kind.__name__} with {inner}" if inner else ""


@contextmanager
def record_calls(watched: Any = None) -> Generator[Recording]:
    """Yield a recording of what the user's code calls on this thread in this context.

    The recording stays empty if all tool ids of `sys.monitoring` are taken. On 3.11 another tracer (a debugger,
    coverage) sees nothing meanwhile.

    Args:
        watched: Function whose arguments are kept as well.
    """
    watched = watched.__func__ if type(watched) is MethodType else watched
    recording = Recording(watched=getattr(watched, "__code__", None))
    seen = _monitored(recording) if sys.version_info >= (3, 12) else _stepped(recording)
    with seen, unchecked_leaks():
        yield recording


_Tracer = Callable[[FrameType, str, Any], Any]


@contextmanager
def _stepped(recording: Recording) -> Generator[None]:
    library: set[str] = set()  # files of libraries
    steppers: dict[int, _Tracer] = {}  # by address of a code, which `recording` keeps alive
    ended: set[int] = set()  # code objects past the instruction limit
    unknown: FrameType | None = None  # frame whose next callee isn't in the text

    def entered(frame: FrameType, event: str, _: Any) -> Any:
        # Runs for every Python call, 360,000 in a trace of four layers: library code must return at once.
        if frame.f_code.co_filename in library:
            return None
        return entered_users(frame)

    def entered_from_unknown(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal unknown
        sys.settrace(entered)  # set for one call only
        if frame.f_back is unknown and unknown is not None:
            name = f"{frame.f_globals.get('__name__')}.{frame.f_code.co_qualname}"
            recording.add_call(unknown, unknown.f_lasti, name)
        unknown = None
        return entered(frame, event, None)

    def entered_users(frame: FrameType) -> Any:
        code = frame.f_code
        if is_library_file(code.co_filename):
            library.add(code.co_filename)
            return None
        ran = recording.add_function(frame)
        step = steppers.get(id(code))
        if step is None:
            steppers[id(code)] = step = stepper(ran, _callees(code))
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return None if id(code) in ended else step

    def called(frame: FrameType, event: str, callee: Any) -> None:
        nonlocal unknown
        sys.setprofile(None)  # set for one call only
        if event == "c_call" and frame is unknown:
            recording.add_call(frame, frame.f_lasti, *callee_name(callee))
            unknown = None

    def stepper(ran: ExecutedFunction, calls: dict[int, ast.expr | None]) -> _Tracer:
        reached, left = ran.offsets, _MAX_INSTRUCTIONS

        def step(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal left, unknown
            if event == "opcode":
                if unknown is not None:  # the callee is invisible to the profiler
                    unknown = None
                    sys.setprofile(None)
                    sys.settrace(entered)
                offset, left = frame.f_lasti, left - 1
                reached.add(offset)
                if offset in calls:
                    node = calls[offset]
                    callee = ... if node is None else find(node, lambda name: _named(frame, name))
                    if callee is not ...:
                        recording.add_call(frame, offset, *callee_name(callee))
                    elif sys.getprofile() is None:
                        unknown = frame
                        sys.setprofile(called)
                        sys.settrace(entered_from_unknown)
                if left <= 0:
                    ended.add(id(ran.code))
                    frame.f_trace_opcodes = False
            return step

        return step

    other = sys.gettrace()
    try:  # around all of it: an interrupt may come anywhere
        sys.settrace(entered)
        yield
    finally:
        try:
            sys.settrace(other)
        finally:
            if sys.getprofile() is called:
                sys.setprofile(None)


def _callees(code: CodeType) -> dict[int, ast.expr | None]:
    source = read_source(code.co_filename)
    # By their ends: Python versions disagree where a call over several lines starts.
    ends = calls_by_end(source.text) if source is not None else {}
    calls = {dis.opmap[name] for name in ("CALL", "CALL_FUNCTION_EX") if name in dis.opmap}
    return {
        2 * i: ends.get((end_line, end_column))
        for i, (_, end_line, __, end_column) in enumerate(code.co_positions())
        if code.co_code[2 * i] in calls
    }


@lru_cache(maxsize=32)
def calls_by_end(text: str) -> dict[tuple[int | None, int | None], ast.expr]:
    tree = parse(text)
    nodes = ast.walk(tree) if tree is not None else ()
    return {(node.end_lineno, node.end_col_offset): node.func for node in nodes if isinstance(node, ast.Call)}


def _named(frame: FrameType, name: str) -> Any:
    spaces: tuple[Mapping[str, Any], ...] = (frame.f_locals, frame.f_globals, frame.f_builtins)
    for space in spaces:
        if name in space:
            return space[name]
    return ...


_TOOLS = (4, 3, 1)  # ids that sys.monitoring gives no name
_NAME = "explorer"


@contextmanager
def _monitored(recording: Recording) -> Generator[None]:
    monitoring: Any = vars(sys)["monitoring"]  # from Python 3.12
    tool = next((tool for tool in _TOOLS if monitoring.get_tool(tool) is None), None)
    if tool is None:
        yield
        return
    thread = get_ident()
    events: Any = monitoring.events
    watched: list[CodeType] = []

    def entered(code: CodeType, _: int) -> Any:
        if is_library_file(code.co_filename):
            return monitoring.DISABLE
        if get_ident() == thread:
            frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented, and the only way
            if recording.add_function(frame).count == 1:
                monitoring.set_local_events(tool, code, events.CALL | events.INSTRUCTION)
                watched.append(code)
        return None

    def reached(code: CodeType, offset: int) -> Any:
        if get_ident() != thread:
            return None
        recording.executed[code].offsets.add(offset)
        return monitoring.DISABLE

    def called(_: CodeType, offset: int, callee: Any, first: Any) -> Any:
        if get_ident() != thread:
            return None
        name, receiver = callee_name(callee)
        owner = name.rpartition(".")[0]
        if receiver is None and any(class_name(kind) == owner for kind in mro(first)):
            receiver = first  # unbound method call, such as list.append
        count = recording.add_call(sys._getframe(1), offset, name, receiver)  # pyright: ignore[reportPrivateUsage]
        return monitoring.DISABLE if count >= _MAX_COUNTED else None

    callbacks: dict[int, Any] = {events.PY_START: entered, events.CALL: called, events.INSTRUCTION: reached}

    def stop() -> None:
        if monitoring.get_tool(tool) != _NAME:
            return
        monitoring.set_events(tool, events.NO_EVENTS)
        for code in watched:
            monitoring.set_local_events(tool, code, events.NO_EVENTS)
        for event in callbacks:
            monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)

    try:  # around all of it: an interrupt may come anywhere
        monitoring.use_tool_id(tool, _NAME)
        for event, callback in callbacks.items():
            monitoring.register_callback(tool, event, callback)
        monitoring.set_events(tool, events.PY_START)
        monitoring.restart_events()  # re-enable events that an earlier tool with this id, such as hot paths, disabled
        yield
    finally:
        try:
            stop()
        finally:
            stop()  # an interrupt may have come in the call before


def _span(code: CodeType, offset: int) -> Span:
    """Return the span of the instruction at an offset, else the function's first line."""
    line, end_line, column, end_column = next(islice(code.co_positions(), offset // 2, None), (None,) * 4)
    line = line or code.co_firstlineno
    return Span(line, column or 0, end_line or line, end_column or 0)
