"""Numbers for objects, the same as long as an object lives, without keeping it alive."""

from __future__ import annotations

import weakref
from itertools import count
from typing import Any


class Identities:
    """Numbers for objects; addresses are given out anew once an object is gone, so each is held by a weak reference.

    Args:
        most: Objects that are known at a time. Those seen first are forgotten first, and get another number.

    Example:
        >>> numbers, thing = Identities(8), {1}
        >>> numbers.of(thing) == numbers.of(thing), numbers.of(thing) == numbers.of({2})
        (True, False)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[int, tuple[Any, int]] = {}
        self._numbers = count(1)

    def of(self, thing: Any) -> int:
        """The number of an object."""
        entry = self._known.get(id(thing))
        if entry is not None and entry[0]() is thing:
            return entry[1]
        if len(self._known) >= self._most:
            self._forget()
        number = next(self._numbers)
        self._known[id(thing)] = weakref.ref(thing), number
        return number

    def clear(self) -> None:
        """Forget all."""
        self._known.clear()

    def _forget(self) -> None:
        """Those that are gone; and of the others half, if they are more than that."""
        living = [(key, entry) for key, entry in tuple(self._known.items()) if entry[0]() is not None]
        self._known = dict(living[-(self._most // 2) :])
