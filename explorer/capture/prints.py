"""Output of a function that Explorer runs: shown for its first call or trace, then muted and counted."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any


class Prints:
    """A stand-in for `sys.stdout` that passes on what is written, or counts the lines if muted.

    It always passes on what the user's other threads write. The runtime's threads, which run callbacks such as
    `jax.debug.print`, are not Python's own, and count as the measured function's.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.is_muted = False
        self.lines = 0
        self._owner = threading.get_ident()

    def write(self, text: str) -> int:
        thread = threading.current_thread()
        is_users = thread.ident != self._owner and not isinstance(thread, threading._DummyThread)  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue] - nothing public tells a thread that Python didn't start
        if not self.is_muted or is_users:
            return self.stream.write(text)
        self.lines += text.count("\n")
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def mute(self) -> None:
        self.is_muted = True

    @contextmanager
    def muted(self) -> Generator[None]:
        before, self.is_muted = self.is_muted, True
        try:
            yield
        finally:
            self.is_muted = before

    @property
    def notes(self) -> list[str]:
        if not self.lines:
            return []
        return [
            f"it prints: shown for the first call, then {self.lines:,} line{'s' * (self.lines != 1)} muted; to print "
            "takes time too, which is among what was measured"
        ]


@contextmanager
def printed_once() -> Generator[Prints]:
    """Watch what is printed; nested use returns the same object."""
    if isinstance(sys.stdout, Prints):
        yield sys.stdout
        return
    prints = Prints(sys.stdout)
    sys.stdout = prints  # pyright: ignore[reportAttributeAccessIssue] - it has all that the stream has
    try:
        yield prints
    finally:
        if sys.stdout is prints:
            sys.stdout = prints.stream
