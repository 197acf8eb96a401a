"""Calls that leave `jax.jit`'s fast path each time, though nothing is compiled: counted, and reported in few events.

A function with side effects (`jax.debug.print`) may do so at every call, a thousand times a second.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from time import time
from typing import Any

from explorer.model.events.event import Event

_MANY = 1_024  # wrappers


class MissCounter:
    """The misses of one `jax.jit(…)`."""

    __slots__ = ("calls", "due", "first_event", "reported", "wrapper")

    def __init__(self, wrapper: Any) -> None:
        self.wrapper = wrapper  # held, so that its number is no other's
        self.calls = 0
        self.reported = 0
        self.due = 1
        self.first_event: Event | None = None  # of the first

    def event(self, seconds: float) -> Event:
        """The event for all calls since the last report; `seconds` of the last of them."""
        new, self.reported = self.calls - self.reported, self.calls
        self.due = self.calls * 10
        assert self.first_event is not None
        return replace(self.first_event, seconds=seconds, start=time() - seconds, count=new)


class Misses:
    """Counts misses. The 1st of a wrapper, 10th, 100th, … is reported, each for all since the one before."""

    def __init__(self) -> None:
        self._missed: OrderedDict[int, MissCounter] = OrderedDict()

    def count(self, wrapper: Any) -> MissCounter | None:
        """Count a call. Return the counter if an event is due, else None."""
        missed = self._missed.get(id(wrapper))
        if missed is None:
            missed = self._missed[id(wrapper)] = MissCounter(wrapper)
            if len(self._missed) > _MANY:
                self._missed.popitem(last=False)
        missed.calls += 1  # two threads at once may count as one
        return missed if missed.calls >= missed.due else None

    def rest(self) -> Iterator[MissCounter]:
        """The counters with calls that no event has reported."""
        return (
            missed
            for missed in self._missed.values()
            if missed.first_event is not None and missed.calls > missed.reported
        )

    def clear(self) -> None:
        self._missed.clear()
