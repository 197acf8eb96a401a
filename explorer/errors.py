"""Every error Explorer raises, and when.

ExplorerError                  anything below
├── ArgumentsError             the arguments given to explore() do not fit the function (also a TypeError)
├── CaptureFileError           a capture file is none, truncated, altered, or newer (also a ValueError)
├── ExploreError               a step of explore() failed; `.capture` holds the steps that worked
├── NotCallableError           a function was expected and something else came (also a TypeError)
└── UnreadableTextError        text given as HLO is none (also a ValueError)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from explorer.model.capture import Capture

__all__ = [
    "ArgumentsError",
    "CaptureFileError",
    "ExploreError",
    "ExplorerError",
    "NotCallableError",
    "UnreadableTextError",
]


class ExplorerError(Exception):
    """Base of every error that Explorer raises on purpose."""


class ArgumentsError(ExplorerError, TypeError):
    """The arguments given to explore() do not fit the function's signature."""


class CaptureFileError(ExplorerError, ValueError):
    """A file or its bytes hold no capture that this Explorer can read."""


class ExploreError(ExplorerError):
    """Tracing, lowering or compiling the user's function failed; the cause is their own error."""

    def __init__(self, message: str, capture: Capture) -> None:
        super().__init__(message)
        self.capture = capture


class NotCallableError(ExplorerError, TypeError):
    """A function was expected."""


class UnreadableTextError(ExplorerError, ValueError):
    """The text holds no module of the expected kind."""
