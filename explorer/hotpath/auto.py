"""`ex.auto_compile()`: eager functions that are called often are compiled, where that is safe and faster.

The environment turns it on for a whole program, from the import of Explorer on:

| variable | |
|---|---|
| `EXPLORER_AUTO_COMPILE=1` | eager functions that are called often are compiled, as by `explorer.auto_compile()` |
| `EXPLORER_COMPILE=1` | every eligible function, at its first call, though it isn't faster |
| `EXPLORER_COMPILE_THRESHOLD=20` | from how many calls on |
| `EXPLORER_CONFIG=signals.yaml` | what `explorer.signal` does |
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
from types import CodeType, FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, Protocol, get_args

from explorer._jax.settings import LazyOptions, measured_options
from explorer.capture.hot_functions import HotStatus, register_lookup
from explorer.errors import HotPathsError, OptionError, UnknownNameError
from explorer.files.signals import read_signals
from explorer.hotpath.compiled import at_once, beside
from explorer.hotpath.counting import MonitoredCalls, SampledCalls
from explorer.hotpath.hot import HotFunction, Mode, Options
from explorer.hotpath.report import LogListener, by_time, callers, labels_of, note_dropped, requested_listeners, row_of
from explorer.hotpath.sequences.recorder import Stream
from explorer.hotpath.sequences.turns import Compile, Prepared, compile_tree, prepare
from explorer.hotpath.timing import Journal
from explorer.model.capture import Capture
from explorer.model.declared import Displayable
from explorer.model.results.hot_paths import HotEvent, HotPaths, HotRow, LeftStatement, ProposedFunction, SignalSettings
from explorer.model.results.session import remembered
from explorer.model.text import did_you_mean
from explorer.view.hotpath.link import display_live

if TYPE_CHECKING:
    import pandas as pd

_PREPARED = 64  # cells and scripts of which it is kept what became of their loops
_REMEMBERED = 8  # hot paths that are asked about a function
_NOMINATED = 3  # calls after which a function is looked at: before that, nothing of it is touched


class Counter(Protocol):
    def start(self) -> None: ...

    def stop(self) -> None: ...


class AutoCompile(Displayable):
    """Hot paths of this process, while and after they were on; `auto_compile` makes it.

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
        self._pieces = LoopOwner(self._functions, self._options, lambda: self.on)
        self._prepared: deque[Prepared] = deque(maxlen=_PREPARED)
        self._counter: Counter | None = None
        self._stream: Stream | None = None

    # What it saw ------------------------------------------------------------------------------------------------------

    @property
    def on(self) -> bool:
        """Whether it is on; one inside of which another one was turned on is, and waits."""
        return self._on

    @property
    def functions(self) -> tuple[HotRow, ...]:
        """The functions that were called often, those that take most of the time first."""
        # Who is on the stack all the time, as `main` is, was looked at and not called again.
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
        """Each step of each function, in order; the last 4,096."""
        return self._journal.events

    def report(self) -> HotPaths:
        """All that was seen as a value, as it is by now: it can be saved, shown and compared."""
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
        """Also record the first single operations that this thread runs while they are on: see `HotPaths.repeats`."""
        if self._stream is None:
            self._stream = stream = Stream()
            self.listen(lambda event: stream.end() if event.kind == "compiled" else None)

    def _status(self, function: Any) -> HotStatus | None:
        """What is known of a function; None if it wasn't called often."""
        # Another callable may have a hash of its own, or none, as a module that holds a key: it isn't asked.
        hot = self._functions.get(function) if type(function) is FunctionType else None
        if hot is None or not hot.times.count:
            return None
        return HotStatus(row_of(hot, self._journal.began, self._signal), self._counter is not None)

    def capture(self, name: str) -> Capture:
        """What the compiler made of a function that runs compiled, in every stage, for its newest kind of arguments.

        Args:
            name: Its qualified name; of several functions of one name it is that which was called most.

        Raises:
            UnknownNameError: No function of this name was called often.
            NotRecordedError: It doesn't run compiled.
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
        """Give each further event to `listener`, on the thread it happens on; what it raises is passed over."""
        self._journal.listeners.append(listener)

    def to_frame(self) -> pd.DataFrame:
        """A row for each function.

        Raises:
            MissingPackageError: pandas is not installed.
        """
        return self.report().to_frame()

    def __repr__(self) -> str:
        return repr(self.report())

    # On and off -------------------------------------------------------------------------------------------------------

    def start(self) -> AutoCompile:
        """From now on, until `stop`; what was learned before serves again.

        Raises:
            HotPathsError: It is on already.
        """
        with _lock:
            if self._on:
                raise HotPathsError("these hot paths are on already.\n  Hint: call ex.auto_compile() for others.")
        try:
            self._start()
        except BaseException:  # nobody stops what didn't start
            self.stop()
            raise
        return self

    def _start(self) -> None:
        with _lock:
            if _stack:
                _stack[-1]._pause()
            self._on = True
            _stack.append(self)
            _met.append(weakref.WeakMethod(self._status))
            self._resume()

    def stop(self) -> None:
        """Every function is what it was; twice is as once. It ends what it began, whatever interrupts it."""
        interrupt: KeyboardInterrupt | None = None
        while True:
            try:
                self._stop()
                break
            except KeyboardInterrupt as error:  # all of it may be done again
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
        """Count calls, and let compiled copies serve; nothing happens where that is so."""
        if self._counter is not None:
            return
        if not self._functions and not self._journal.count:
            self._journal.began = perf_counter()
        self._since = perf_counter()
        self._counter = self._new_counter()  # before it starts: from here on a pause ends it all
        for hot in list(self._functions.values()):
            if hot.state != "eager":
                hot.watch()
        self._counter.start()
        if self._stream is not None:
            self._stream.start()
        for log in self._logs:
            log.start()

    def _pause(self) -> None:
        """Count no more, and restore every function; nothing happens where that is so."""
        counter = self._counter
        if counter is None:
            return
        self._is_pausing = True  # whoever is called often now isn't looked at any more
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
        """A function is called often: its calls are looked at from now on."""
        if function not in self._functions and self._is_counting:
            hot = self._pieces.adopt(function)
            if not self._is_counting:  # another thread's pause doesn't know it
                hot.release()

    @property
    def _is_counting(self) -> bool:
        return self._counter is not None and not self._is_pausing

    def compile_module(
        self, tree: ast.Module, file: str, namespace: dict[str, Any], compile: Compile = compile_tree
    ) -> CodeType:
        """The code of a cell or script, whose loops are watched when it runs in the namespace."""
        prepared = prepare(tree, file, namespace, self._pieces, compile=compile)
        self._prepared.append(prepared)
        return prepared.code

    def compile_script(self, text: bytes, file: str, namespace: dict[str, Any]) -> CodeType:
        return self.compile_module(ast.parse(text, file), file, namespace)

    @property
    def proposed(self) -> tuple[ProposedFunction, ...]:
        """The functions that were made of what loops at the top of cells and scripts do over and over."""
        return tuple(function for prepared in self._prepared for function in prepared.proposed)

    @property
    def left(self) -> tuple[LeftStatement, ...]:
        """The statements of such loops that run as they were written, and why."""
        return tuple(statement for prepared in self._prepared for statement in prepared.left)

    def __enter__(self) -> AutoCompile:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


@remembered
def auto_compile(
    *, threshold: int | None = None, seconds: float = 0.05, mode: Mode = "default", background: bool = True
) -> AutoCompile:
    """Compile eager functions that are called often, where that is proven safe and measured faster.

    Nothing is edited: the functions that the program defines run a compiled copy of themselves, guarded by all that
    they read from outside, and are what they were when the block is over. A function whose source shows that it might
    do more than compute (print, count, write, draw random numbers of NumPy's) stays as it is, with the reason and the
    line. The first three calls run both ways and are compared; a copy that isn't 1.2 times as fast is dropped.

    As a context manager, up to the end of the block; else from `start()` to `stop()`. Inside of one that is on, another
    one takes over until it is off. `EXPLORER_AUTO_COMPILE=1` turns it on for a whole program that imports Explorer,
    with `EXPLORER_COMPILE_THRESHOLD=20` from the 20th call on; `EXPLORER_COMPILE=1` compiles at the first call; and
    `python -m explorer hot script.py` is for a program that doesn't.

    Args:
        threshold: From how many calls of a function on, at least 1. None: 10, or 3 for the mode `reduce-overhead`.
        seconds: And from how much time of its eager calls on, in seconds, all together.
        mode: `default`; `reduce-overhead` compiles after 3 calls (arguments are never donated: that their caller is
            done with them can't be proven); `max-autotune` compiles with each set of options that
            `optimization_level=5` of `compile` tries, and keeps the fastest program.
        background: Compile beside the program, which goes on eagerly meanwhile; False makes the call wait that comes
            after the threshold.

    Returns:
        An `AutoCompile`; `.functions` has a row for each function that was called often (`name`, `state`, `reason`,
        `calls`, `eager_seconds`, `compiled_seconds`, …), `.report()` all of it as a value.

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


_stack: list[AutoCompile] = []  # those that are on; the last one is at work
# Those that were on, the latest last.
_met: deque[weakref.WeakMethod[Callable[[Any], HotStatus | None]]] = deque(maxlen=_REMEMBERED)
_lock = threading.RLock()


def active() -> AutoCompile | None:
    return _stack[-1] if _stack else None


def _status_of(function: Any) -> HotStatus | None:
    """What the latest hot paths that met a function know of it."""
    alive = (status_of() for status_of in reversed(_met))
    answers = (status_of(function) for status_of in alive if status_of is not None)
    return next((status for status in answers if status is not None), None)


register_lookup(_status_of)


_THRESHOLDS: dict[Mode, int] = {"default": 10, "reduce-overhead": 3, "max-autotune": 10}  # calls


def checked(threshold: Any, seconds: Any, mode: Any, background: Any, *, is_forced: bool = False) -> Options:
    """Options of those values, still without a journal."""
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
    submit = beside if background else at_once
    return Options(threshold, float(seconds), submit, is_background=background, is_forced=is_forced, mode=mode)


class LoopOwner:
    """Hot paths as watched loops see them: they have the functions compiled that the loops are made of."""

    def __init__(self, functions: dict[FunctionType, HotFunction], options: Options, is_on: Callable[[], bool]) -> None:
        self._functions, self._options, self._is_on = functions, options, is_on
        self.least_seconds = options.seconds

    @property
    def on(self) -> bool:
        return self._is_on()

    def adopt(self, function: FunctionType) -> HotFunction:
        """A function that stands for statements of a cell, whose turns ask it; nobody calls it."""
        hot = self._functions[function] = HotFunction(function, self._options)
        hot.watch()
        return hot


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
    """From how many calls on, if the environment says so."""
    value = os.environ.get(THRESHOLD, "").strip()
    if not value:
        return None
    if not value.isascii() or not value.isdigit() or int(value) < 1:
        raise OptionError(f"{THRESHOLD} is {value!r}; allowed is a number of calls from 1 on.")
    return int(value)


def requested() -> AutoCompile | None:
    """Hot paths as the environment wants them, not started yet; None where it doesn't."""
    at, is_auto, is_all = threshold(), is_turned_on(AUTO), is_turned_on(ALL)
    if is_all:
        return AutoCompile(forced())
    return auto_compile(threshold=at) if is_auto else None


def forced() -> Options:
    """Compile at the first call, and wait for it."""
    return checked(1, 0.0, "default", False, is_forced=True)


@cache
def configured() -> dict[str, SignalSettings]:
    """What the file of signals says that the environment names; nothing where it names none."""
    path = os.environ.get(CONFIG, "").strip()
    return read_signals(path) if path else {}


def start_if_requested() -> AutoCompile | None:
    """Turn hot paths on for the rest of the program, if the environment says so, and read the file of signals."""
    configured()
    hot = requested()
    if hot is not None:
        hot.start()
        atexit.register(hot.stop)
    return hot
