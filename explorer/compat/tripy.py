"""Names of Tripy's API that Explorer itself doesn't need."""

from __future__ import annotations

from explorer.aot import Compiler, DimensionInputInfo

__all__ = ["Compiler", "DimensionInputInfo"]
