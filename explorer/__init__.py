"""See what the compiler did to your JAX function, and why."""

from explorer.capture.explore import explore
from explorer.errors import (
    ArgumentsError,
    CaptureFileError,
    ExploreError,
    ExplorerError,
    NotCallableError,
    UnreadableTextError,
)
from explorer.model.capture import Capture

load = Capture.load

__all__ = [
    "ArgumentsError",
    "Capture",
    "CaptureFileError",
    "ExploreError",
    "ExplorerError",
    "NotCallableError",
    "UnreadableTextError",
    "explore",
    "load",
]
__version__ = "0.1.0"
