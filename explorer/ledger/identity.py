"""Numbers for objects and for values: what stands for them in plain data, after they are gone."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from itertools import count
from threading import RLock
from typing import Any


class Identities:
    """A number for each object, the same as long as it lives, and never another's.

    Objects that can't be held weakly are held, the most recent `limit` of them.
    """

    def __init__(self, limit: int = 4_096) -> None:
        self._numbers: dict[int, tuple[Any, int]] = {}  # by id(); a number is good while its object lives
        self._held: OrderedDict[int, Any] = OrderedDict()
        self._count = count(1)
        self._limit = limit
        self._lock = RLock()

    def of(self, value: Any) -> int:
        entry = self._numbers.get(id(value))
        if entry is not None and (entry[0] is None or entry[0]() is value):
            return entry[1]
        with self._lock:
            return self._new(value)

    def _new(self, value: Any) -> int:
        at, number = id(value), next(self._count)
        try:
            self._numbers[at] = weakref.ref(value, lambda gone: self._forget(at, gone)), number
        except TypeError:
            self._numbers[at] = None, number
            self._held[at] = value
            if len(self._held) > self._limit:
                del self._numbers[self._held.popitem(last=False)[0]]
        return number

    def _forget(self, at: int, gone: Any) -> None:
        # No lock: Python may call this in the middle of `_new`, on the same thread.
        entry = self._numbers.get(at)
        if entry is not None and entry[0] is gone:
            self._numbers.pop(at, None)


class Equals:
    """A number for each value that is not equal to another: the most recent `limit` of them are held."""

    def __init__(self, limit: int = 1_024) -> None:
        self._numbers: OrderedDict[Any, int] = OrderedDict()
        self._count = count(1)
        self._limit = limit
        self._lock = RLock()

    def of(self, value: Any) -> int:
        """0 where it can't be compared."""
        try:
            with self._lock:
                number = self._numbers.get(value)
                if number is None:
                    number = self._numbers[value] = next(self._count)
                    if len(self._numbers) > self._limit:
                        self._numbers.popitem(last=False)
                return number
        except Exception:  # the user's own __hash__ or __eq__
            return 0
