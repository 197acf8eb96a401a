"""Which functions the user was warned about already: a storm is seen by each watch, and by `explorer.jit` itself."""

from __future__ import annotations

from threading import RLock

_MANY = 4_096
_Family = tuple[str, str, int]


class WarnedFunctions:
    """While somebody watches, each function is warned about once, whoever comes first."""

    def __init__(self) -> None:
        self._watching = 0
        self._families: set[_Family] = set()
        self._lock = RLock()

    def begin(self) -> None:
        """A watch begins."""
        with self._lock:
            self._watching += 1

    def end(self) -> None:
        """A watch ends; after the last one, functions may be warned about anew."""
        with self._lock:
            self._watching -= 1
            if not self._watching:
                self._families.clear()

    def add(self, name: str, file: str, line: int) -> bool:
        """Whether to warn about this function. Where nobody watches that is for the caller to know: always."""
        with self._lock:
            if not self._watching:
                return True
            family = name, file, line
            if family in self._families:
                return False
            if len(self._families) >= _MANY:
                self._families.clear()
            self._families.add(family)
            return True


warned_functions = WarnedFunctions()  # one for the process: what it keeps is what this process's user has read
