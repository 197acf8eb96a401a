"""When it is time to compile calls of one kind."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from explorer.hotpath.codes import entered_by

_KINDS = 64  # of arguments of one function, of which it is known how often they came
_OFTEN = 3  # calls of one kind, of a function that is hot already: of sizes that come once there may be thousands
_WAITS = 3  # times that a function waits for one that calls it
_frame: Callable[[int], FrameType] = getattr(sys, "_getframe")  # noqa: B009 - documented, for debuggers


class Trigger:
    """Says of one function when it is called often and long enough.

    Args:
        calls: So many, and
        seconds: so long in all, before.

    Attributes:
        is_wanted: Whether what it calls waits for it: then it is time as soon as it can be.
    """

    def __init__(self, calls: int, seconds: float) -> None:
        self.is_wanted = False
        self._calls, self._seconds = calls, seconds
        self._counts: dict[int, int] = {}
        self._is_waiting = False
        self._waits, self._wait_until = 0, 0

    def is_time(self, kind: int, before: int, seconds: float) -> bool:
        """Whether a call is the one.

        Args:
            kind: Of its arguments, as a hash.
            before: How many calls there were before it, of any kind,
            seconds: and what they took.
        """
        if len(self._counts) > _KINDS:
            self._counts.clear()
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        if self.is_wanted:
            return before > 0
        is_often = before >= max(self._calls, self._wait_until) and count >= min(self._calls, _OFTEN)
        return is_often and seconds >= self._seconds

    @property
    def is_waiting(self) -> bool:
        """Whether it was tried, and put off."""
        return self._is_waiting

    def wait(self, seconds: float) -> None:
        """It isn't time before calls took so long in all."""
        self._seconds, self._is_waiting, self.is_wanted = max(self._seconds, seconds), True, False

    def must_wait(self, owner: object, before: int) -> bool:
        """Whether a function that may be compiled calls this one just now: compiled, it would do without this one.

        Args:
            owner: What stands for this function in frames.
            before: How many calls there were.
        """
        if self._waits >= _WAITS:
            return False
        frame: FrameType | None = _frame(1)
        while frame is not None:
            other = entered_by(frame.f_code)
            trigger: Any = getattr(other, "trigger", None)
            if other is not owner and isinstance(trigger, Trigger) and getattr(other, "is_undecided", False):
                trigger.is_wanted = True
                self._waits, self._wait_until = self._waits + 1, 2 * before
                return True
            frame = frame.f_back
        return False
