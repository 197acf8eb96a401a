"""How long calls take that run in the user's own frames, where nobody stands after them."""

from __future__ import annotations

from collections import deque
from functools import partial
from threading import RLock
from time import perf_counter
from typing import Any
from weakref import ref

_MOST = 64  # calls at once: of threads, and inside each other


class _Held:
    """Lies in a call's frame, and ends with it."""

    __slots__ = ("__weakref__",)


class RunningCalls:
    """The calls of a function that have begun, and when they ended."""

    def __init__(self) -> None:
        self._calls: deque[list[Any]] = deque(maxlen=_MOST)
        self._lock = RLock()

    def begin(self, way: Any, begun: float = 0.0) -> object:
        """A call begins. What this gives must live as long as the call does, in its frame, and nowhere else.

        The end is noted in a weak reference's callback that is C all through: in Python code that runs where an object
        is freed, a KeyboardInterrupt would be lost.
        """
        held, call = _Held(), [way, begun or perf_counter()]
        call.append(ref(held, partial(next, map(call.append, iter(perf_counter, None)))))
        self._calls.append(call)
        return held

    def ended(self) -> list[tuple[Any, float, float]]:
        """The calls that ended since this was asked last: how each ran, when it began and ended."""
        ended: list[tuple[Any, float, float]] = []
        with self._lock:
            while self._calls and len(self._calls[0]) > 3:
                way, begun, _, end = self._calls.popleft()
                ended.append((way, begun, end))
        return ended
