"""Warnings that point at the user's own line, and the errors of captured state."""

from __future__ import annotations

import inspect
import warnings
from types import FrameType

_PASSED = ("explorer", "jax", "jaxlib", "contextlib", "functools")


def warn_user(message: str, category: type[Warning]) -> None:
    depth, frame = 1, inspect.currentframe()
    while frame is not None and _is_passed(frame):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, category, stacklevel=depth)


def users_line() -> tuple[str, int]:
    """File and line of the innermost frame outside of Explorer and JAX."""
    frame = inspect.currentframe()
    while frame is not None and _is_passed(frame):
        frame = frame.f_back
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def _is_passed(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] in _PASSED
