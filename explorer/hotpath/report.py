"""Reports about hot functions: as values, and as lines while a program runs.

Values are defined in `explorer/model/results/hot_paths.py`. `EXPLORER_DEBUG_COMPILE=1` prints lines to stderr,
`EXPLORER_INSTRUCTION_LOG=path` writes them to the instruction log.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from math import inf, isfinite
from sys import getrefcount
from threading import current_thread
from time import time

import jax.numpy as jnp

from explorer.capture.sources import label
from explorer.files.instruction_log import LogFile, complain, open_log
from explorer.hotpath.arguments import ARRAYS, may_be_replaced
from explorer.hotpath.hot import HotFunction
from explorer.hotpath.proof import Refusal
from explorer.hotpath.recorder import Recorder
from explorer.hotpath.timing import Estimate, FunctionCosts, together
from explorer.model.results.hot_paths import HeldValue, HotEvent, HotRow, Step
from explorer.model.units import duration_text

_OURS = 3  # references to a function: HotFunction, table, and getrefcount's argument


def row_of(hot: HotFunction, began: float, signal: str = "") -> HotRow:
    code, refusal = hot.original.__code__, hot.refusal or Refusal("")
    variants = {id(variant) for variant in list(hot.variants.values())}  # a padded one serves many sizes
    costs = _costs_of(hot)
    return HotRow(
        hot.name,
        code.co_filename,
        code.co_firstlineno,
        hot.state,
        refusal.reason,
        refusal.file,
        refusal.line,
        refusal.cure,
        hot.calls["eager"],
        hot.calls["compiled"],
        costs.eager.seconds,
        costs.compiled.seconds,
        costs.eager.count,
        costs.compiled.count,
        costs.basis,
        hot.compile_seconds,
        hot.is_background,
        len(variants),
        _held(hot),
        dict(hot.misses),
        hot.times.columns(began),
        signal,
        (costs.eager.low, costs.eager.high),
        (costs.compiled.low, costs.compiled.high),
    )


def _costs_of(hot: HotFunction) -> FunctionCosts:
    """Return the cost of a function's calls; if it was never compiled, eager calls until they returned."""
    costs = together(hot.clock.costs)
    if costs is not None:
        return costs
    seconds, count = hot.times.median("eager", "missed")
    return FunctionCosts(Estimate(seconds, count=count), Estimate(), "returned" if count else "")


def by_time(row: HotRow) -> float:
    """Return a sort key that puts functions with the most eager time first."""
    return -row.calls * row.eager_seconds if isfinite(row.eager_seconds) else 0.0


def callers(hots: Iterable[HotFunction]) -> dict[int, str]:
    return {
        id(read.holder): hot.name
        for hot in hots
        if hot.state == "compiled"
        for variant in list(hot.variants.values())
        for read in variant.guards.reads
        if read.where == "code" and read.holder is not hot.original
    }


def note_dropped(hots: Collection[HotFunction]) -> None:
    """Make functions stay eager that only Explorer still refers to: those that a call defines again for itself.

    A function whose code another called one shares was defined before and is not reported.
    """
    called = {hot.original.__code__ for hot in hots if hot.times.count}
    for hot in hots:
        outer = hot.name.rpartition(".<locals>.")[0]
        if not outer or hot.state != "counting" or hot.original.__code__ in called:
            continue
        if getrefcount(hot.function) <= _OURS:
            made = f"`{outer}` creates it again on every call"
            line = hot.original.__code__.co_firstlineno
            cure = f"define it once, outside of `{outer}`, and pass what it reads from there"
            hot.leave(Refusal(made, hot.original.__code__.co_filename, line, cure))


def labels_of(rows: Iterable[HotRow], others: Iterable[str] = ()) -> dict[str, str]:
    files = {file for row in rows for file in (row.file, row.reason_file)}.union(others) - {""}
    return {file: label(file) for file in sorted(files)}


def _held(hot: HotFunction) -> tuple[HeldValue, ...]:
    held = {
        HeldValue(read.name, read.where, type(read.value) in ARRAYS and may_be_replaced(read.value)): None
        for variant in list(hot.variants.values())
        for read in variant.guards.reads
    }
    return tuple(held)


LOG, DEBUG = "EXPLORER_INSTRUCTION_LOG", "EXPLORER_DEBUG_COMPILE"
_OFF = ("", "0", "false", "no", "off")
_MAX_LINES = 1_000_000  # of operations, about 100 MB


_DEBUG_LINES = {  # of the function and the event's text
    "detected": "Detected hot function: {0}{where}",
    "trigger": "Compiling hot function {0} {when} ({1}{eager})",
    "compiled": "Compilation of hot function {0} complete{took}",
    "speedup": "Speedup: {0} is {1}, measured on calls that ran both ways",
    "miss": "A guard missed in {0}: {1} has changed; this call runs as written",
    "eager": "Stays as written: {0}: {1}{where}",
}


def debug_line(event: HotEvent, is_background: bool) -> str:
    """Return the line about an event for stderr; empty for minor events.

    Example:
        >>> debug_line(HotEvent(0.5, "step", "speedup", "3.2× as fast: 3 ms → 940 µs"), True)
        'Speedup: step is 3.2× as fast: 3 ms → 940 µs, measured on calls that ran both ways'
    """
    where = f" ({_at(event.file, event.line)})" if event.file and event.line else ""
    took = f" ({event.seconds:.1f}s)" if isfinite(event.seconds) else ""
    eager = f", {duration_text(event.seconds)} in all" if isfinite(event.seconds) else ""
    when = "in the background" if is_background else "while the program waits"
    line = _DEBUG_LINES.get(event.kind, "")
    return line.format(event.function, event.text, where=where, took=took, eager=eager, when=when)


def _print_line(event: HotEvent, is_background: bool) -> None:
    line = debug_line(event, is_background)
    if line:
        with suppress(OSError, ValueError):  # stderr may be closed
            print(f"[COMPILE] {line}", file=sys.stderr, flush=True)


_LOGGED = {"detected": "Detected", "compile": "Starting", "compiled": "Complete", "speedup": "Speedup",
           "miss": "Missed", "eager": "Eager", "restored": "Restored"}  # fmt: skip


class LogListener:
    """Writer of hot functions' events and of single operations to a log, for some seconds from the first one on."""

    def __init__(self, log: LogFile, seconds: float = inf) -> None:
        self._log = log
        self._seconds, self._until, self._is_over = seconds, inf, False
        self._compiled: set[str] = set()
        self._recorder: Recorder | None = None
        self._written = 0

    def __call__(self, event: HotEvent) -> None:
        if event.kind == "compile":  # from here on, as comparisons already run the copy
            self._compiled.add(event.function.rpartition(".")[2])
        elif event.kind in ("eager", "restored"):
            self._compiled.discard(event.function.rpartition(".")[2])
        if event.kind not in _LOGGED or self._is_over:
            return
        details = {"function": event.function, "hot": "true"}
        if isfinite(event.seconds):
            details["seconds"] = f"{event.seconds:.6f}"
        if event.text:
            details["text"] = event.text
        if event.file and event.line:
            details["at"] = _at(event.file, event.line)
        self._log.write(time(), "COMPILE", current_thread().name, _LOGGED[event.kind], details)

    def start(self) -> None:
        """Write operations from now on, unless the time is over."""
        if self._recorder is None and not self._is_over:
            self._recorder = Recorder(self._ran)  # assigned before it is on, as an interrupt may come in between
            self._recorder.__enter__()

    def stop(self) -> None:
        # Without a limit of time it may start again.
        self._is_over = self._until < inf and self._seconds < inf
        if self._recorder is not None:
            self._recorder.__exit__()
            self._recorder = None

    def _ran(self, step: Step) -> None:
        self._written += 1
        if self._until == inf:
            self._until = step.seconds + self._seconds
        if step.seconds > self._until:
            self.stop()
            return
        if self._written > _MAX_LINES:
            if self._written == _MAX_LINES + 1:
                self._log.write(time(), "RUN", step.thread, "Stopped", {"lines": f"{_MAX_LINES}"})
            return
        at = {"at": _at(step.file, step.line)} if step.file and step.line else {}
        operation = step.operation
        if operation is None:
            self._log.write(time(), "OBSERVE", step.thread, step.observed, at)
            return
        # A copy has the function's name, which may also be that of a jnp function.
        is_copy = not operation.is_primitive and operation.name in self._compiled and not hasattr(jnp, operation.name)
        details = {"inputs": ",".join(operation.inputs), "outputs": ",".join(operation.outputs), **at}
        if operation.parameters:
            details["parameters"] = operation.parameters
        self._log.write(time(), "RUN", step.thread, operation.name, details, "(COMPILED)" if is_copy else "")


def _at(file: str, line: int) -> str:
    return f"{label(file)}, line {line}"


def requested_listeners(is_background: bool) -> list[Callable[[HotEvent], None]]:
    """Return the listeners that the environment requests; an unwritable log is reported on stderr."""
    listeners: list[Callable[[HotEvent], None]] = []
    if os.environ.get(DEBUG, "").lower() not in _OFF:
        listeners.append(partial(_print_line, is_background=is_background))
    path = os.environ.get(LOG, "")
    if path.lower() not in _OFF:
        try:
            listeners.append(LogListener(open_log(path)))
        except OSError as error:
            complain(f"{LOG}={path}: {error.strerror or error}; there will be no log")
    return listeners
