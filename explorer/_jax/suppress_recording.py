"""What Explorer compiles for itself is not the user's affair: no watch records it."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager


class _Suppression(threading.local):
    """Whether what this thread compiles is Explorer's own."""

    is_on = False


suppression = _Suppression()


@contextmanager
def suppress_recording() -> Generator[None]:
    """While this lasts, what the thread compiles is Explorer's own, and no watch records it."""
    before, suppression.is_on = suppression.is_on, True
    try:
        yield
    finally:
        suppression.is_on = before
