"""Every error Explorer raises, and when.

ExplorerError                  anything below
├── UnreadableTextError        text given as HLO, StableHLO or a jaxpr is none (also a ValueError)
"""

from __future__ import annotations

__all__ = ["ExplorerError", "UnreadableTextError"]


class ExplorerError(Exception):
    """Base of every error that Explorer raises on purpose."""


class UnreadableTextError(ExplorerError, ValueError):
    """The text holds no module of the expected kind."""
