"""Parts that `compile()`, `jit()` and hot paths share: table of programs, structure guards, comparison of traces."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Table(OrderedDict[K, V]):
    """Dict of at most `limit` entries, least recently used first. It has no lock of its own.

    `dropped` remembers the last keys that made room, latest last: a key that returns from there is in rotation.
    """

    def __init__(self, limit: int, remembered: int = 0) -> None:
        super().__init__()
        self.limit, self._remembered = limit, remembered
        self.dropped: OrderedDict[K, None] = OrderedDict()

    def used(self, key: K) -> V | None:
        """Return the value of a key, which becomes the most recently used; None if it is missing."""
        if key in self:
            self.move_to_end(key)
        return self.get(key)

    def put(self, key: K, value: V) -> list[K]:
        """Store a value as the most recently used, and return the keys that were dropped to make room."""
        self[key] = value
        self.move_to_end(key)
        dropped: list[K] = []
        while len(self) > self.limit:  # a weak reference's callback may remove entries meanwhile
            dropped.append(self.popitem(last=False)[0])
            self.dropped[dropped[-1]] = None
            # A key that was dropped before would keep its old place.
            self.dropped.move_to_end(dropped[-1])
        while len(self.dropped) > self._remembered:
            self.dropped.popitem(last=False)
        return dropped
