"""Compiles as lines, while they happen: to a file, and to stderr.

`EXPLORER_INSTRUCTION_LOG=path` and `EXPLORER_DEBUG_COMPILE=1` turn these on for a session, from the import on.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import IO, Protocol

from explorer.files.instruction_log import complain, open_log
from explorer.model.events.event import Event

LOG = "EXPLORER_INSTRUCTION_LOG"
DEBUG = "EXPLORER_DEBUG_COMPILE"
_OFF = ("", "0", "false", "no", "off")


class EventListener(Protocol):
    """Listener that is called at once, in the user's time; its methods raise nothing."""

    def starting(self, done: tuple[Event, ...], event: Event) -> None:
        """Handle the start of XLA on this thread: `done` has the call's earlier events, `event` the event so far."""

    def ended(self, events: tuple[Event, ...]) -> None:
        """Handle the events of a call that traced, lowered or compiled, after the call ended."""

    def close(self) -> None:
        """Handle the end of the watch."""


class LineLog:
    """Writes one line per event, each at once to disk.

    An existing file is appended to: the processes that a program starts share one log.

    Args:
        path: The file.

    Raises:
        OSError: It can't be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._log = open_log(path)
        self._written: dict[int, int] = {}  # how many events of a call, while XLA compiles it
        self._is_open = True

    def starting(self, done: tuple[Event, ...], event: Event) -> None:
        self._complete(done, event.call)
        self._written[event.call] = len(done)
        self._log.write(event.start, "COMPILE", event.thread, "Starting", _details(event))

    def ended(self, events: tuple[Event, ...]) -> None:
        self._complete(events, events[0].call)
        self._written.pop(events[0].call, None)

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._log.close()

    def _complete(self, events: tuple[Event, ...], call: int) -> None:
        for event in events[self._written.get(call, 0) :]:
            name = f"Failed ({event.error})" if event.error else "Complete"
            ended = event.start + event.seconds
            self._log.write(ended, event.kind.upper(), event.thread, name, _details(event))


class DebugLines:
    """Prints lines to stderr: `[COMPILE] Recompiling step: x.shape[0] 32 → 33 (train.py, line 12)`.

    Operations outside of any `jit` are left out.
    """

    def __init__(self, file: IO[str] | None = None) -> None:
        self._file = file

    def starting(self, done: tuple[Event, ...], event: Event) -> None:
        if _is_eager(event):
            return
        site = f" ({event.call_site})" if event.call_site is not None else ""
        if event.reason.kind == "first":
            self._print(f"Compiling {event.function}{site}")
        else:
            reason = event.reason
            changed = f"{reason.leaf} {reason.change}".rstrip() if reason.leaf else str(reason)
            self._print(f"Recompiling {event.function}: {changed}{site}")

    def ended(self, events: tuple[Event, ...]) -> None:
        seconds = sum(event.seconds for event in events)
        for event in events:
            if event.kind not in ("compile", "cache-hit") or _is_eager(event):
                continue
            if event.error:
                self._print(f"Compilation failed: {event.error}")
            elif event.kind == "cache-hit":
                self._print(f"Compilation was in the persistent cache, {event.saved:.1f}s saved ({seconds:.1f}s)")
            else:
                self._print(f"Compilation complete ({seconds:.1f}s)")

    def close(self) -> None:
        pass

    def _print(self, text: str) -> None:
        with suppress(OSError, ValueError):  # stderr is closed
            print(f"[COMPILE] {text}", file=self._file or sys.stderr, flush=True)


def from_environment() -> list[EventListener]:
    # A log that can't be written is reported on stderr: the user's program must not fail because of it.
    listeners: list[EventListener] = []
    path = os.environ.get(LOG, "")
    if path.lower() not in _OFF:
        try:
            listeners.append(LineLog(path))
        except OSError as error:
            complain(f"{LOG}={path}: {error.strerror or error}; there will be no log")
    if os.environ.get(DEBUG, "").lower() not in _OFF:
        listeners.append(DebugLines())
    return listeners


def _details(event: Event) -> dict[str, str]:
    reason = event.reason
    details = {
        "function": event.function,
        "id": event.id,
        "seconds": f"{event.seconds:.6f}" if event.seconds else "",
        "saved": f"{event.saved:.6f}" if event.saved else "",
        "device": event.device,
        "eager": "true" if _is_eager(event) else "",
    }
    details = {name: text for name, text in details.items() if text} | {"reason": reason.kind}
    if reason.leaf:
        details |= {"leaf": reason.leaf, "before": reason.before, "after": reason.after}
    return details | ({"at": str(event.call_site)} if event.call_site is not None else {})


def _is_eager(event: Event) -> bool:
    return event.key is not None and event.key.function.eager
