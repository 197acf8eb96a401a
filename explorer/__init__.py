"""See what the compiler did to your JAX function, and why."""

from explorer.errors import ExplorerError, UnreadableTextError

__all__ = ["ExplorerError", "UnreadableTextError"]
__version__ = "0.1.0"
