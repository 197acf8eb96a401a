"""Whether something warns: a compiled call would do so once, where the function as it is may do so each time."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock, get_ident
from typing import Any

_lock = Lock()
_noted: dict[int, list[str]] = {}  # by thread
_warn: Any = warnings.warn


@contextmanager
def warnings_held() -> Generator[list[str]]:
    """Within, this thread's warnings go to a list; those of other threads go where they always do."""
    global _warn
    here, outer = get_ident(), _noted.get(get_ident())
    held: list[str] = []
    try:  # around all of it: an interrupt may come anywhere
        with _lock:
            if not _noted:
                _warn, warnings.warn = warnings.warn, _warn_or_note
            _noted[here] = held
        yield held
    finally:
        with _lock:
            if outer is not None:
                _noted[here] = outer
            else:
                _noted.pop(here, None)
            if not _noted and warnings.warn is _warn_or_note:
                warnings.warn = _warn


def _warn_or_note(message: Any, category: Any = None, stacklevel: int = 1, *args: Any, **kwargs: Any) -> None:
    held = _noted.get(get_ident())
    if held is None:
        _warn(message, category, stacklevel + 1, *args, **kwargs)
    else:
        held.append(str(message))
