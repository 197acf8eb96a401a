"""What happened to hot functions: as values when somebody looks, and line by line while it happens.

The values are `explorer/model/results/hot_paths.py`, which views and files know. `EXPLORER_DEBUG_COMPILE=1` and
`EXPLORER_INSTRUCTION_LOG=path` turn the lines on: on stderr for a person, and in the instruction log.
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
from explorer.hotpath.sequences.recorder import Recorder
from explorer.hotpath.timing import Estimate, FunctionCosts, together
from explorer.model.results.hot_paths import HeldValue, HotEvent, HotRow, Step
from explorer.model.units import duration_text

_OURS = 3  # references to a function: its HotFunction's, the table's, and that of who counts them


def row_of(hot: HotFunction, began: float, signal: str = "") -> HotRow:
    code, refusal = hot.original.__code__, hot.refusal
    variants = {id(variant) for variant in list(hot.variants.values())}  # a padded one serves many sizes
    costs = _costs_of(hot)
    return HotRow(
        hot.name,
        code.co_filename,
        code.co_firstlineno,
        hot.state,
        refusal.reason if refusal is not None else "",
        refusal.file if refusal is not None else "",
        refusal.line if refusal is not None else 0,
        refusal.cure if refusal is not None else "",
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
    """What its calls take; of a function that was never compiled it is known only when they returned."""
    costs = together(hot.clock.costs)
    if costs is not None:
        return costs
    seconds, count = hot.times.median("eager", "missed")
    return FunctionCosts(Estimate(seconds, count=count), Estimate(), "returned" if count else "")


def by_time(row: HotRow) -> float:
    """For sorting: what takes most of the program's time, as it is or would be, comes first."""
    return -row.calls * row.eager_seconds if isfinite(row.eager_seconds) else 0.0


def callers(hots: Iterable[HotFunction]) -> dict[int, str]:
    """By the address of a function the name of one that runs compiled and has the call of it in its program."""
    return {
        id(read.holder): hot.name
        for hot in hots
        if hot.state == "compiled"
        for variant in list(hot.variants.values())
        for read in variant.guards.reads
        if read.where == "code" and read.holder is not hot.original
    }


def note_dropped(hots: Collection[HotFunction]) -> None:
    """Functions that were called and then dropped, as those are that a call defines for itself, stay eager: say why.

    Who holds them but their `HotFunction` and the table of all is the user. One whose like is called on isn't made anew
    at each call: it was there from before.
    """
    called = {hot.original.__code__ for hot in hots if hot.times.count}
    for hot in hots:
        outer = hot.name.rpartition(".<locals>.")[0]
        if not outer or hot.state != "counting" or hot.original.__code__ in called:
            continue
        if getrefcount(hot.function) <= _OURS:
            made = f"`{outer}` defines it anew at each call, and drops it"
            line = hot.original.__code__.co_firstlineno
            cure = f"define it once, outside of `{outer}`, and pass what it reads from there"
            hot.leave(Refusal(made, hot.original.__code__.co_filename, line, cure))


def labels_of(rows: Iterable[HotRow], others: Iterable[str] = ()) -> dict[str, str]:
    """What a person calls the files of some functions, and others."""
    files = {file for row in rows for file in (row.file, row.reason_file)}.union(others) - {""}
    return {file: label(file) for file in sorted(files)}


def _held(hot: HotFunction) -> tuple[HeldValue, ...]:
    """What the guards of all variants hold, each once."""
    held = {
        HeldValue(read.name, read.where, type(read.value) in ARRAYS and may_be_replaced(read.value)): None
        for variant in list(hot.variants.values())
        for read in variant.guards.reads
    }
    return tuple(held)


LOG, DEBUG = "EXPLORER_INSTRUCTION_LOG", "EXPLORER_DEBUG_COMPILE"
_OFF = ("", "0", "false", "no", "off")
_MOST = 1_000_000  # lines of operations: some 100 MB


def debug_line(event: HotEvent, is_background: bool) -> str:
    """What a person is told of an event; empty where it isn't worth a line.

    Example:
        >>> debug_line(HotEvent(0.5, "step", "speedup", "3.2× as fast: 3 ms → 940 µs"), True)
        'Speedup: step is 3.2× as fast: 3 ms → 940 µs, measured on calls that ran both ways'
    """
    where = f" ({_at(event.file, event.line)})" if event.file and event.line else ""
    took = f" ({event.seconds:.1f}s)" if isfinite(event.seconds) else ""
    match event.kind:
        case "detected":
            return f"Detected hot function: {event.function}{where}"
        case "trigger":
            eager = f", {duration_text(event.seconds)} in all" if isfinite(event.seconds) else ""
            beside = "beside the program" if is_background else "while the program waits"
            return f"Compiling hot function {event.function} {beside} ({event.text}{eager})"
        case "compiled":
            return f"Compilation of hot function {event.function} complete{took}"
        case "speedup":
            return f"Speedup: {event.function} is {event.text}, measured on calls that ran both ways"
        case "miss":
            return f"Guard held back {event.function}: {event.text} has changed; this call runs as written"
        case "eager":
            return f"Stays as written: {event.function}: {event.text}{where}"
        case _:
            return ""


def _print_line(event: HotEvent, is_background: bool) -> None:
    """Print `[COMPILE] Detected hot function: step (train.py, line 12)` and so on to stderr."""
    line = debug_line(event, is_background)
    if line:
        with suppress(OSError, ValueError):  # nobody reads it
            print(f"[COMPILE] {line}", file=sys.stderr, flush=True)


_LOGGED = {"detected": "Detected", "compile": "Starting", "compiled": "Complete", "speedup": "Speedup",
           "miss": "Missed", "eager": "Eager", "restored": "Restored"}  # fmt: skip


class LogListener:
    """Writes events of hot functions and the operations that run one by one to an instruction log.

    Args:
        log: Where to.
        seconds: For how long, from the first operation on.
    """

    def __init__(self, log: LogFile, seconds: float = inf) -> None:
        self._log = log
        self._seconds, self._until, self._is_over = seconds, inf, False
        self._compiled: set[str] = set()
        self._recorder: Recorder | None = None
        self._written = 0

    def __call__(self, event: HotEvent) -> None:
        if event.kind == "compile":  # before it serves, it is run beside the function to be compared
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
        """Write each operation from now on; nothing happens once the time is over."""
        if self._recorder is None and not self._is_over:
            self._recorder = Recorder(self._ran)  # before it is on: an interrupt may come then
            self._recorder.__enter__()

    def stop(self) -> None:
        self._is_over = self._until < inf and self._seconds < inf
        if self._recorder is not None:
            self._recorder.__exit__(None, None, None)
            self._recorder = None

    def _ran(self, step: Step) -> None:
        self._written += 1
        if self._until == inf:
            self._until = step.seconds + self._seconds
        if step.seconds > self._until:
            self.stop()
            return
        if self._written > _MOST:
            if self._written == _MOST + 1:
                self._log.write(time(), "RUN", step.thread, "Stopped", {"lines": f"{_MOST}"})
            return
        at = {"at": _at(step.file, step.line)} if step.file and step.line else {}
        operation = step.operation
        if operation is None:
            self._log.write(time(), "OBSERVE", step.thread, step.observed, at)
            return
        # A compiled copy has the function's name; where jnp has a function of that name, nobody can tell them apart.
        is_copy = not operation.is_primitive and operation.name in self._compiled and not hasattr(jnp, operation.name)
        details = {"inputs": ",".join(operation.inputs), "outputs": ",".join(operation.outputs), **at}
        if operation.parameters:
            details["parameters"] = operation.parameters
        self._log.write(time(), "RUN", step.thread, operation.name, details, "(COMPILED)" if is_copy else "")


def _at(file: str, line: int) -> str:
    return f"{label(file)}, line {line}"


def requested_listeners(is_background: bool) -> list[Callable[[HotEvent], None]]:
    """What the environment asks for; a log that can't be written is reported on stderr."""
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
