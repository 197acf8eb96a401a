"""Where this runs: in a notebook's kernel, in IPython in a terminal, or in neither."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


def in_terminal() -> bool:
    """Whether this is IPython in a terminal: it shows text, and packing a page for it is lost work."""
    return any(kind.__name__ == "TerminalInteractiveShell" for kind in type(ipython_shell()).__mro__)


def in_kernel() -> bool:
    """Whether a kernel runs this: what is displayed can be talked to."""
    return getattr(ipython_shell(), "kernel", None) is not None


def is_attended() -> bool:
    """A notebook that is run as a whole, by nbclient for one, takes no input; what it shows is kept."""
    content: Any = ipython_shell().kernel.get_parent().get("content") or {}
    return content.get("allow_stdin") is not False


def ipython_shell() -> Any:
    """IPython's shell if it runs this, else None; IPython is not imported for the question."""
    ipython: Any = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def open_wire(name: str, kind: str = "Wire") -> Any:
    """A wire that the page finds by its name; `kind` is a class of `widgets.py`.

    That module is loaded here, where a kernel shows something, and nowhere before: anywidget is slow to load.
    """
    return getattr(import_module("explorer.view.widgets"), kind)(capture=name)
