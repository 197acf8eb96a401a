"""Access to the running notebook: kernel, running cell, and outputs that are updated."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

PLOTLY = "application/vnd.plotly.v1+json"
"""MIME type of a plotly figure in an output."""


def in_terminal() -> bool:
    """Return True in IPython in a terminal, which shows text and needs no page."""
    return any(kind.__name__ == "TerminalInteractiveShell" for kind in type(ipython_shell()).__mro__)


def in_kernel() -> bool:
    """Return True in a kernel, where outputs can exchange messages."""
    return getattr(ipython_shell(), "kernel", None) is not None


def is_attended() -> bool:
    """Return True if the running cell can take input, False in a notebook that nbclient runs as a whole.

    The outputs of such a run are kept.
    """
    content: Any = ipython_shell().kernel.get_parent().get("content") or {}
    return content.get("allow_stdin") is not False


def ipython_shell() -> Any:
    """Return IPython's shell if this code runs in IPython, else None. IPython is never imported."""
    ipython: Any = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def open_wire(name: str, kind: str = "Wire") -> Any:
    """Return a new wire, which the page finds by `name`; `kind` is a class of `widgets.py`.

    Only this function loads that module, because anywidget is slow to load.
    """
    return getattr(import_module("explorer.view.widgets"), kind)(capture=name)


def parent_request() -> dict[str, Any]:
    """Return the message that started the running cell; empty without a kernel."""
    kernel: Any = getattr(ipython_shell(), "kernel", None)
    return kernel.get_parent() if hasattr(kernel, "get_parent") else {}


class Shown:
    """Outputs of a notebook's cells by name; outputs that no cell shows any more are closed.

    Outputs are closed only after a cell has run again, because the cell may show the same output again.
    """

    def __init__(self) -> None:
        self._runs: dict[str, dict[str, dict[str, Callable[[], None]]]] = {}  # by cell, then by run
        self._shell: Any = None

    def add(self, name: str, close: Callable[[], None]) -> None:
        """Register an output of the running cell; `close` is called once no cell shows the output `name`.

        Do nothing if the frontend gives cells no ids.
        """
        cell, run = _running()
        if cell is None:
            return  # without cell ids, a run replaces no earlier run
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
    """Return the id of the running cell, None if unknown, and the id of the request that started the run."""
    request = parent_request()
    metadata: Any = request.get("metadata") or {}
    header: Any = request.get("header") or {}
    cell: object = metadata.get("cellId")
    return (cell if isinstance(cell, str) else None), str(header.get("msg_id"))


shown = Shown()


@dataclass(eq=False)
class Output:
    """One output of a cell.

    Args:
        id: Display id in the notebook.
        make: Function that returns the object to display.
        every: Seconds between two updates within a cell; 0 if a wire updates it.
    """

    id: str
    make: Callable[[], dict[str, Any]]
    every: float = 0.0
    stored: object = None
    _at: float = 0.0

    def publish(self, state: object, update: bool) -> None:
        self.stored, self._at = state, time.monotonic()
        shown = self.make()
        publish = ipython_shell().display_pub.publish
        if update and PLOTLY in shown:
            # Plotly's renderer in JupyterLab never redraws a chart that it has drawn: another kind of output in between
            # makes a new renderer.
            between = {kind: data for kind, data in shown.items() if kind != PLOTLY}
            publish(data=between, transient={"display_id": self.id}, update=True)
        publish(data=shown, transient={"display_id": self.id}, update=update)

    def is_due(self) -> bool:
        return self.every > 0 and time.monotonic() - self._at >= self.every


# Outputs without all code take it from another cell's; one of two may be cleared.
_ENOUGH = 2
_carriers: list[str] = []


def carries_all() -> bool:
    """Return True if the running cell's output must contain the code of all panes.

    These are the first two cells with views, all cells in Colab, and cells that can't be identified.
    """
    request = parent_request()
    metadata: Any = request.get("metadata") or {}
    cell = metadata.get("cellId") or _text_of(request)
    # Colab isolates each output in a frame, which can't reach another's code.
    if not isinstance(cell, str) or "google.colab" in sys.modules:
        return True
    deleted: Any = metadata.get("deletedCells") or ()  # since the cell that was run before
    _carriers[:] = [carrier for carrier in _carriers if carrier not in deleted]
    if cell not in _carriers and len(_carriers) < _ENOUGH:
        _carriers.append(cell)
    return cell in _carriers


def _text_of(request: dict[str, Any]) -> str | None:
    """Return the cell's text if the notebook runs unattended, as in nbclient, which takes no input; else None."""
    content: Any = request.get("content") or {}
    return content.get("code") if content.get("allow_stdin") is False else None
