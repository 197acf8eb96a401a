"""What all our magics have in common."""

from __future__ import annotations

from typing import Any

from IPython.core.magic import Magics

__all__ = ["ShellMagics"]


class ShellMagics(Magics):
    """The magics of one shell; `replaced` are those of others whose names they took."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell=shell)
        self.shell: Any = shell
        self.replaced: dict[str, dict[str, Any]] = {}

    def stop(self) -> None:
        """End what goes on by itself, when the extension is unloaded; for most nothing does."""
