"""What a function prints while it runs for Explorer: shown for its first call or trace, then muted and counted."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any


class Prints:
    """Stands in for `sys.stdout`: passes on what is written, or counts its lines.

    What other threads of the user's write is passed on always. The runtime's threads, in which callbacks such as that
    of `jax.debug.print` run, are not Python's own, and so count as the measured function's.

    Attributes:
        is_muted: Whether lines are counted in place of shown.
        lines: How many were not shown.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.is_muted = False
        self.lines = 0
        self._owner = threading.get_ident()

    def write(self, text: str) -> int:
        if not self.is_muted or self._is_of_others():
            return self.stream.write(text)
        self.lines += text.count("\n")
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def mute(self) -> None:
        """From now on, count."""
        self.is_muted = True

    @contextmanager
    def muted(self) -> Generator[None]:
        """Count within."""
        before, self.is_muted = self.is_muted, True
        try:
            yield
        finally:
            self.is_muted = before

    @property
    def notes(self) -> list[str]:
        """What the reader should know, if anything was left out."""
        if not self.lines:
            return []
        return [
            f"it prints: shown for the first call, then {self.lines:,} line{'s' * (self.lines != 1)} muted; to print "
            "takes time too, which is among what was measured"
        ]

    def _is_of_others(self) -> bool:
        thread = threading.current_thread()
        return thread.ident != self._owner and not isinstance(thread, threading._DummyThread)  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue] - nothing public tells a thread that Python didn't start


@contextmanager
def printed_once() -> Generator[Prints]:
    """Watch what is printed; within another, the same."""
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
