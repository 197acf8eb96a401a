"""See what the compiler did to your JAX function, and why."""

from explorer.capture.explore import explore
from explorer.errors import ExploreError, ExplorerError, NotCallableError, UnreadableTextError
from explorer.model.capture import Capture

__all__ = ["Capture", "ExploreError", "ExplorerError", "NotCallableError", "UnreadableTextError", "explore"]
__version__ = "0.1.0"
