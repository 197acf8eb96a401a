"""`ex.auto_compile()`: compile eager functions that are called often, where that is safe and faster.

Environment variables turn it on for a whole program, from the import of Explorer on:

| variable | effect |
|---|---|
| `EXPLORER_AUTO_COMPILE=1` | compile eager functions that are called often, as `explorer.auto_compile()` does |
| `EXPLORER_COMPILE=1` | compile every eligible function at its first call, even if that isn't faster |
| `EXPLORER_COMPILE_THRESHOLD=20` | number of calls from which on functions are compiled |
| `EXPLORER_CONFIG=signals.yaml` | settings of `explorer.signal` |
"""

from __future__ import annotations

import ast
import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from time import perf_counter
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Protocol, get_args

from explorer._jax.settings import LazyOptions, measured_options
from explorer.capture.origins import HotStatus, register_lookup
from explorer.errors import HotPathsError, OptionError, UnknownNameError
from explorer.files.signals import read_signals
from explorer.hotpath.compiled import Mode, Options, at_once, in_background
from explorer.hotpath.counting import MonitoredCalls, SampledCalls
from explorer.hotpath.hot import HotFunction
from explorer.hotpath.loops import Compile, LoopOwner, LoopWatch, compile_tree, prepare
from explorer.hotpath.recorder import Stream
from explorer.hotpath.report import LogListener, by_time, callers, labels_of, note_dropped, requested_listeners, row_of
from explorer.hotpath.timing import Journal
from explorer.model.capture import Capture
from explorer.model.declared import Displayable
from explorer.model.results.hot_paths import HotEvent, HotPaths, HotRow, LeftStatement, ProposedFunction, SignalSettings
from explorer.model.results.session import remembered
from explorer.model.text import did_you_mean
from explorer.view.hotpath.html import display_live

if TYPE_CHECKING:
    import pandas as pd

_PREPARED = 64  # cells and scripts whose loops are remembered
_REMEMBERED = 8  # latest hot paths, searched for a function
_NOMINATED = 3  # calls before a function is watched


class Counter(Protocol):
    def start(self) -> None: ...
    def stop(self) -> None: ...


class AutoCompile(Displayable):
    """Hot paths of this process while and after they are on; created by `auto_compile`.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> with explorer.auto_compile(background=False) as hot:
        ...     hot.on
        True
        >>> hot.on, hot.functions, hot.report()
        (False, (), HotPaths(no function was called often))
    """

    def __init__(self, options: Options, xla: Sequence[Mapping[str, Any]] = (), signal: str = "") -> None:
        listeners = requested_listeners(options.is_background)
        self._logs = [listener for listener in listeners if isinstance(listener, LogListener)]
        self._journal = Journal(listeners)
        self._options, self._signal = replace(options, journal=self._journal, xla=xla), signal
        self._on, self._is_pausing, self._seconds, self._since = False, False, 0.0, 0.0
        self._functions: dict[FunctionType, HotFunction] = {}
        self._loop_owner = LoopOwner(self._functions, self._options, lambda: self.on)
        self._prepared: deque[LoopWatch] = deque(maxlen=_PREPARED)
        self._counter: Counter | None = None
        self._stream: Stream | None = None

    # Observations -----------------------------------------------------------------------------------------------------

    @property
    def on(self) -> bool:
        """True between `start` and `stop`, including while a nested one has taken over."""
        return self._on

    @property
    def functions(self) -> tuple[HotRow, ...]:
        """Return one row per function that was called often, the most expensive first."""
        # A function without calls is on the stack all the time, as `main` is.
        note_dropped(list(self._functions.values()))
        called = [hot for hot in list(self._functions.values()) if hot.times.count or hot.state == "eager"]
        inside = callers(called)
        rows = [row_of(hot, self._journal.began, self._signal) for hot in called]
        placed = [
            replace(row, inside=inside.get(id(hot.function), "")) if hot.is_undecided else row
            for hot, row in zip(called, rows, strict=True)
        ]
        return tuple(sorted(placed, key=by_time))

    @property
    def events(self) -> tuple[HotEvent, ...]:
        """Return the last 4,096 events of all functions, in order."""
        return self._journal.events

    def report(self) -> HotPaths:
        """Return a snapshot of functions, events and times up to now, which can be saved, displayed and compared."""
        rows, proposed, left = self.functions, self.proposed, self.left
        operations, repeats = self._stream.folded() if self._stream is not None else (0, ())
        files = [part.file for part in (*proposed, *left, *repeats)]
        return HotPaths(
            rows,
            self.events,
            self._journal.dropped,
            self._seconds + (perf_counter() - self._since if self._counter is not None else 0.0),
            self._options.calls,
            self._options.mode,
            self._on,
            labels_of(rows, files),
            proposed=proposed,
            left=left,
            operations=operations,
            repeats=repeats,
        )

    def record_operations(self) -> None:
        """Also record the first single operations of this thread; see `HotPaths.repeats`."""
        if self._stream is None:
            self._stream = stream = Stream()
            # A compiled function shows as one operation, which breaks the sequences.
            self.listen(lambda event: stream.end() if event.kind == "compiled" else None)

    def _status(self, function: Any) -> HotStatus | None:
        # Other callables may have no hash, or one of their own.
        hot = self._functions.get(function) if type(function) is FunctionType else None
        if hot is None or not hot.times.count:
            return None
        return HotStatus(row_of(hot, self._journal.began, self._signal), self._counter is not None)

    def capture(self, name: str) -> Capture:
        """Return the capture, in every stage, of a compiled function's latest kind of calls.

        Args:
            name: Qualified name; the most called function of this name.

        Raises:
            UnknownNameError: No function of this name was called often.
            NotRecordedError: The function isn't compiled.
        """
        hots = sorted(list(self._functions.values()), key=lambda hot: -sum(hot.calls.values()))
        hot = next((hot for hot in hots if hot.name == name), None)
        if hot is None:
            names = [hot.name for hot in hots]
            raise UnknownNameError(f"no function {name!r} was called often." + did_you_mean(name, names))
        return hot.capture()

    def _ipython_display_(self) -> None:
        display_live(self)

    def listen(self, listener: Callable[[HotEvent], None]) -> None:
        """Pass each further event to `listener`, on the thread where it happens. Its exceptions are ignored."""
        self._journal.listeners.append(listener)

    def to_frame(self) -> pd.DataFrame:
        """Return a DataFrame with a row for each function.

        Raises:
            MissingPackageError: pandas is not installed.
        """
        return self.report().to_frame()

    def __repr__(self) -> str:
        return repr(self.report())

    # On and off -------------------------------------------------------------------------------------------------------

    def start(self) -> AutoCompile:
        """Turn hot paths on until `stop`, and return this object. Copies and measurements of an earlier run are used
        again.

        Raises:
            HotPathsError: They are on already.
        """
        with _lock:
            if self._on:
                raise HotPathsError("these hot paths are on already.\n  Hint: call ex.auto_compile() for others.")
        try:
            with _lock:
                if _stack:
                    _stack[-1]._pause()
                self._on = True
                _stack.append(self)
                # Weak: to answer questions about functions must not keep an earlier run's functions alive.
                _known.append(weakref.WeakMethod(self._status))
                self._resume()
        except BaseException:  # the caller won't stop what didn't start
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Restore every function. Repeated calls have no effect; an interrupt is raised after all is done."""
        interrupt: KeyboardInterrupt | None = None
        while True:
            try:
                self._stop()
                break
            except KeyboardInterrupt as error:  # each step can be repeated
                interrupt = error
        if interrupt is not None:
            raise interrupt

    def _stop(self) -> None:
        with _lock:
            self._pause()
            if self in _stack:
                _stack.remove(self)
            if _stack:
                _stack[-1]._resume()
            self._on = False

    def _resume(self) -> None:
        if self._counter is not None:
            return
        if not self._functions and not self._journal.count:
            self._journal.began = perf_counter()
        self._since = perf_counter()
        self._counter = self._new_counter()  # assigned before it starts, so that a pause can end it
        for hot in list(self._functions.values()):
            if hot.state != "eager":
                hot.watch()
        self._counter.start()
        if self._stream is not None:
            self._stream.start()
        for log in self._logs:
            log.start()

    def _pause(self) -> None:
        counter = self._counter
        if counter is None:
            return
        self._is_pausing = True  # ends nominations
        counter.stop()
        if self._stream is not None:
            self._stream.stop()
        for log in self._logs:
            log.stop()
        for hot in list(self._functions.values()):
            hot.release()
        self._seconds, self._since = self._seconds + perf_counter() - self._since, perf_counter()
        self._counter, self._is_pausing = None, False

    def _new_counter(self) -> Counter:
        counter = MonitoredCalls if MonitoredCalls.is_possible() else SampledCalls
        return counter(min(self._options.calls, _NOMINATED), self.nominate)

    def nominate(self, function: FunctionType) -> None:
        """Begin to watch a function that is called often, unless it is watched already."""
        if function not in self._functions and self._is_counting:
            hot = self._loop_owner.adopt(function)
            if not self._is_counting:  # another thread's pause may have missed it
                hot.release()

    @property
    def _is_counting(self) -> bool:
        return self._counter is not None and not self._is_pausing

    def compile_module(
        self, tree: ast.Module, file: str, namespace: dict[str, Any], compile: Compile = compile_tree
    ) -> CodeType:
        """Return the code of a cell or script, compiled so that its loops are watched when it runs in `namespace`."""
        prepared = prepare(tree, file, namespace, self._loop_owner, compile=compile)
        self._prepared.append(prepared)
        return prepared.code

    def compile_script(self, text: bytes, file: str, namespace: dict[str, Any]) -> CodeType:
        return self.compile_module(ast.parse(text, file), file, namespace)

    @property
    def proposed(self) -> tuple[ProposedFunction, ...]:
        """Return the functions that were made of statements in loops of cells and scripts."""
        return tuple(function for prepared in self._prepared for function in prepared.proposed)

    @property
    def left(self) -> tuple[LeftStatement, ...]:
        """Return the statements in loops of cells and scripts that run as written, with the reasons."""
        return tuple(statement for prepared in self._prepared for statement in prepared.left)

    def __enter__(self) -> AutoCompile:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()


@remembered
def auto_compile(
    *, threshold: int | None = None, seconds: float = 0.05, mode: Mode = "default", background: bool = True
) -> AutoCompile:
    """Compile eager functions that are called often, where that is proven safe and measured faster.

    The source is not changed: functions of the program run a compiled copy, guarded by all that they read from outside,
    and are restored when the block ends. A function that may do more than compute (print, count, write, draw NumPy's
    random numbers) stays eager, with the reason and the line. The first three calls run both ways and are compared. A
    copy that isn't 1.2 times as fast is dropped.

    Use it as a context manager, or with `start()` and `stop()`. Inside of one that is on, a second one takes over until
    it is off. `EXPLORER_AUTO_COMPILE=1` turns it on for a whole program that imports Explorer,
    `EXPLORER_COMPILE_THRESHOLD=20` sets the number of calls, and `EXPLORER_COMPILE=1` compiles at the first call. For
    programs that don't import Explorer there is `python -m explorer hot script.py`.

    Args:
        threshold: Number of calls of a function before it is compiled, at least 1. None: 10, or 3 for the mode
            `reduce-overhead`.
        seconds: Total seconds of eager calls before a function is compiled.
        mode: `default`; `reduce-overhead` compiles after 3 calls (arguments are never donated, as it can't be proven
            that the caller no longer needs them); `max-autotune` compiles with each set of options that
            `optimization_level=5` of `compile` tries, and keeps the fastest program.
        background: Compile in the background while the program continues eagerly. False: the call that reaches the
            threshold waits.

    Returns:
        An `AutoCompile`. `.functions` has a row for each function that was called often (`name`, `state`, `reason`,
        `calls`, `eager_seconds`, `compiled_seconds`, …); `.report()` returns everything as a value.

    Raises:
        OptionError: An option is out of range.

    Example:
        >>> import explorer as ex, jax.numpy as jnp
        >>> with ex.auto_compile() as hot:
        ...     print(hot)
        HotPaths(no function was called often so far)
    """
    options = checked(threshold, seconds, mode, background)
    return AutoCompile(options, LazyOptions(measured_options) if mode == "max-autotune" else ())


_stack: list[AutoCompile] = []  # those that are on; only the last one works
# All that have been on, the latest last.
_known: deque[weakref.WeakMethod[Callable[[Any], HotStatus | None]]] = deque(maxlen=_REMEMBERED)
_lock = threading.RLock()


def active() -> AutoCompile | None:
    return _stack[-1] if _stack else None


def _status_of(function: Any) -> HotStatus | None:
    alive = (status_of() for status_of in reversed(_known))
    answers = (status_of(function) for status_of in alive if status_of is not None)
    return next((status for status in answers if status is not None), None)


register_lookup(_status_of)


_THRESHOLDS: dict[Mode, int] = {"default": 10, "reduce-overhead": 3, "max-autotune": 10}  # calls


def checked(threshold: Any, seconds: Any, mode: Any, background: Any, *, is_forced: bool = False) -> Options:
    """Return validated options, without a journal; raise OptionError for invalid ones."""
    if mode not in get_args(Mode):
        raise OptionError(
            f"mode of auto_compile() is {mode!r}; allowed are {', '.join(map(repr, get_args(Mode)))}."
            + did_you_mean(f"{mode}", get_args(Mode))
        )
    if threshold is None:
        threshold = _THRESHOLDS[mode]
    if type(threshold) is not int or threshold < 1:
        raise OptionError(f"threshold of auto_compile() is {threshold!r}; allowed is a number of calls from 1 on.")
    if type(seconds) not in (int, float) or not 0 <= seconds < float("inf"):
        raise OptionError(f"seconds of auto_compile() is {seconds!r}; allowed is a time from 0 on.")
    if type(background) is not bool:
        raise OptionError(f"background of auto_compile() is {background!r}; allowed are True and False.")
    submit = in_background if background else at_once
    return Options(threshold, float(seconds), submit, is_background=background, is_forced=is_forced, mode=mode)


AUTO, ALL, THRESHOLD = "EXPLORER_AUTO_COMPILE", "EXPLORER_COMPILE", "EXPLORER_COMPILE_THRESHOLD"
CONFIG = "EXPLORER_CONFIG"
_ON, _OFF = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


def is_turned_on(name: str) -> bool:
    value = os.environ.get(name, "")
    if value.strip().lower() not in (*_ON, *_OFF):
        allowed = ", ".join(_ON + _OFF[1:])
        raise OptionError(f"{name} is {value!r}; allowed are {allowed}.{did_you_mean(value, (*_ON, *_OFF[1:]))}")
    return value.strip().lower() in _ON


def threshold() -> int | None:
    """Return the threshold that the environment sets, None if it sets none; raise OptionError for an invalid one."""
    value = os.environ.get(THRESHOLD, "").strip()
    if not value:
        return None
    if not value.isascii() or not value.isdigit() or int(value) < 1:
        raise OptionError(f"{THRESHOLD} is {value!r}; allowed is a number of calls from 1 on.")
    return int(value)


def requested() -> AutoCompile | None:
    """Return the hot paths that the environment requests, not started; None if it requests none."""
    at, is_auto, is_all = threshold(), is_turned_on(AUTO), is_turned_on(ALL)
    if is_all:
        return AutoCompile(forced())
    return auto_compile(threshold=at) if is_auto else None


def forced() -> Options:
    return checked(1, 0.0, "default", False, is_forced=True)


@cache
def configured() -> dict[str, SignalSettings]:
    """Return the settings in the signals file that the environment names; empty if it names none."""
    path = os.environ.get(CONFIG, "").strip()
    return read_signals(path) if path else {}


def start_if_requested() -> AutoCompile | None:
    """Read the signals file; return the hot paths that the environment requests, started until exit, else None."""
    configured()
    hot = requested()
    if hot is not None:
        hot.start()
        # There is no block whose end would stop them.
        atexit.register(hot.stop)
    return hot
