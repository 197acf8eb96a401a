"""Compiles beside the program: one thread at a time, which ends with its work, its owner or the interpreter."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Lock, Thread, main_thread
from typing import Any
from weakref import ref

# Seconds after which Python hands the interpreter to another thread. Tracing holds it, and a call needs it several
# times: with Python's own 5 ms, calls of 3.2 ms took 17 ms beside a trace, with this 7 ms (two cores, jax 0.10.2).
_SWITCH = 0.0005


class Background:
    """Jobs of an owner, done one after the other in a thread of their own.

    The thread isn't a daemon: one that is still in XLA when the interpreter is taken down crashes the process. So the
    end of a program waits for the compile that is under way, and no other is begun.

    Args:
        owner: Whose jobs they are; held only while one is done.
        run: Does a job for the owner; what it raises is the owner's to handle.
    """

    def __init__(self, owner: Any, run: Callable[[Any, Any], None]) -> None:
        self._owner = ref(owner)
        self._run = run
        self._jobs: deque[Any] = deque()
        self._lock = Lock()
        self._thread: Thread | None = None

    @property
    def waiting(self) -> list[Any]:
        """The jobs that are not done yet, the one that is under way first."""
        with self._lock:
            return [*self._jobs]

    def add(self, job: Any) -> None:
        """Have a job done."""
        with self._lock:
            self._jobs.append(job)
            if self._thread is None:
                self._thread = Thread(target=_work, args=(self._owner, self), name="explorer-padding")
                self._thread.start()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until everything is done; whether it is."""
        thread = self._thread
        if thread is not None:
            thread.join(timeout)
        return self._thread is None

    def do_next(self, owner: Any) -> bool:
        """Do the next job; False if there is none, and the thread is to end."""
        with self._lock:
            if not self._jobs or not main_thread().is_alive():
                self._thread = None
                return False
            job = self._jobs[0]
        try:
            with _switching_often():
                self._run(owner, job)
        finally:
            with self._lock:
                self._jobs.popleft()
        return True


def _work(owner: ref[Any], background: Background) -> None:
    while True:
        held = owner()
        if held is None or not background.do_next(held):
            return
        del held  # between two jobs nothing keeps the owner


@contextmanager
def _switching_often() -> Generator[None]:
    before = sys.getswitchinterval()
    if before <= _SWITCH:
        yield
        return
    sys.setswitchinterval(_SWITCH)
    try:
        yield
    finally:
        if abs(sys.getswitchinterval() - _SWITCH) < _SWITCH / 100:  # nobody else has set another meanwhile
            sys.setswitchinterval(before)
