"""Where compiles run: on a thread of their own, which no KeyboardInterrupt reaches.

Neither a pool's threads nor its futures survive an interrupt at each of their lines: one was never ended, and held up
the end of the program. What is used here is done in one step each.
"""

from __future__ import annotations

import atexit
import os
from _thread import start_new_thread
from collections.abc import Callable
from functools import cache
from queue import SimpleQueue
from time import sleep

_AGAIN = 0.001  # seconds, until it is looked whether the last work is done


class _Worker:
    """One thread for all compiles: more would take the cores from the program."""

    def __init__(self) -> None:
        self._works: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._is_working = self._is_over = False
        start_new_thread(self._run, ())
        atexit.register(self._end)

    def add(self, work: Callable[[], None]) -> None:
        self._works.put(work)

    @property
    def is_over(self) -> bool:
        return self._is_over

    def _run(self) -> None:
        while True:
            work = self._works.get()
            self._is_working = True  # before it is seen whether it is over: `_end` looks in the other order
            if not self._is_over:
                work()
            self._is_working = False

    def _end(self) -> None:
        """The program is over: what was begun ends, as a compile can't be cut off; nothing else is needed any more."""
        self._is_over = True
        while self._is_working:
            sleep(_AGAIN)


@cache
def _worker() -> _Worker:
    return _Worker()


os.register_at_fork(after_in_child=_worker.cache_clear)  # where the thread is not


def beside(work: Callable[[], None]) -> None:
    """Have something done beside the program; it must not raise."""
    _worker().add(work)


def at_once(work: Callable[[], None]) -> None:
    """Have something done, and wait. An interrupt ends the waiting; the work goes on, and leaves nothing half done."""
    worker, done = _worker(), SimpleQueue[None]()

    def work_then_notify() -> None:
        try:
            work()
        finally:
            done.put(None)

    if not worker.is_over:
        worker.add(work_then_notify)
        done.get()
