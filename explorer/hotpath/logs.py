"""Hot paths line by line while they happen: on stderr for a person, and in the instruction log.

`EXPLORER_DEBUG_COMPILE=1` and `EXPLORER_INSTRUCTION_LOG=path` turn these on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from math import inf, isfinite
from threading import current_thread
from time import time

import jax.numpy as jnp

from explorer.capture.sources import label
from explorer.files.instruction_log import LogFile, complain, open_log
from explorer.hotpath.sequences.recorder import Recorder
from explorer.model.results.hot_paths import HotEvent, Step
from explorer.model.units import duration_text

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


class DebugListener:
    """Prints `[COMPILE] Detected hot function: step (train.py, line 12)` and so on to stderr.

    Args:
        is_background: Whether compiles run beside the program.
    """

    def __init__(self, is_background: bool) -> None:
        self._is_background = is_background

    def __call__(self, event: HotEvent) -> None:
        line = debug_line(event, self._is_background)
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
        """Write no more operations."""
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
        listeners.append(DebugListener(is_background))
    path = os.environ.get(LOG, "")
    if path.lower() not in _OFF:
        try:
            listeners.append(LogListener(open_log(path)))
        except OSError as error:
            complain(f"{LOG}={path}: {error.strerror or error}; there will be no log")
    return listeners
