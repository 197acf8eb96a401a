"""Properties that are worked out once, on whichever thread asks first."""

from __future__ import annotations

from functools import cached_property as _with_lock  # noqa: TID251
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as cached_property  # noqa: TID251
else:

    class cached_property(_with_lock):
        """`functools.cached_property` without its lock, as from Python 3.12 on.

        The lock of Python 3.11 is of the class, not of the instance: a thread that works out a stage's graph, which
        needs the text, and one that works out another stage's text wait for each other for ever. Without it both may
        work a value out; the one that is done first is everybody's.
        """

        def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
            if instance is None:
                return self
            return instance.__dict__.setdefault(self.attrname, self.func(instance))
