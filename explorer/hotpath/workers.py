"""Where compiles run: on a thread of their own, which no KeyboardInterrupt reaches."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache


def beside(work: Callable[[], None]) -> Future[None]:
    """Have something done beside the program."""
    # The interpreter waits for the pool once the program is over; what hasn't begun by then isn't needed any more.
    return _pool().submit(lambda: work() if threading.main_thread().is_alive() else None)


def at_once(work: Callable[[], None]) -> None:
    """Have something done, and wait. An interrupt ends the waiting; the work goes on, and leaves nothing half done."""
    beside(work).result()


@cache
def _pool() -> ThreadPoolExecutor:
    """One thread for all compiles: more would take the cores from the program."""
    return ThreadPoolExecutor(1, "explorer-hot")
