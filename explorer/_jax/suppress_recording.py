"""What Explorer compiles for itself is not the user's affair: no watch records it."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["own", "unseen"]


class _Own(threading.local):
    """Whether what this thread compiles is Explorer's own."""

    is_on = False


own = _Own()


@contextmanager
def unseen() -> Generator[None]:
    """While this lasts, what the thread compiles is Explorer's own, and no watch records it."""
    before, own.is_on = own.is_on, True
    try:
        yield
    finally:
        own.is_on = before
