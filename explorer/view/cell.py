"""The cell that runs, and the wires that it opened: a cell that is run again leaves none behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from explorer.view.session import ipython_shell


def parent_request() -> dict[str, Any]:
    """The message that asked to run this cell; empty where no kernel runs."""
    kernel: Any = getattr(ipython_shell(), "kernel", None)
    return kernel.get_parent() if hasattr(kernel, "get_parent") else {}


class Shown:
    """What the cells of a notebook show, by name; what no cell shows any more is closed.

    That is only known once a cell has run again: until then it may show the same once more.
    """

    def __init__(self) -> None:
        self._runs: dict[str, dict[str, dict[str, Callable[[], None]]]] = {}  # by cell, then by run
        self._shell: Any = None

    def add(self, name: str, close: Callable[[], None]) -> None:
        """The cell that runs shows what has this name; `close` is called when none does."""
        cell, run = _running()
        if cell is None:
            return  # who doesn't name cells, replaces none
        self._runs.setdefault(cell, {}).setdefault(run, {})[name] = close
        shell = ipython_shell()
        if shell is not self._shell:
            self._shell = shell
            shell.events.register("post_run_cell", self._after_cell)

    def _after_cell(self, _: object = None) -> None:
        cell, run = _running()
        runs = self._runs.get(cell or "", {})
        before = {name: close for of in set(runs) - {run} for name, close in runs.pop(of).items()}
        shown = {name for runs in self._runs.values() for names in runs.values() for name in names}
        for name, close in before.items():
            if name not in shown:
                close()


def _running() -> tuple[str | None, str]:
    """The cell that runs, and its run."""
    request = parent_request()
    metadata: Any = request.get("metadata") or {}
    header: Any = request.get("header") or {}
    cell: object = metadata.get("cellId")
    return (cell if isinstance(cell, str) else None), str(header.get("msg_id"))


shown = Shown()
