"""An IPython shell of this process, for the tests of magics and of cells."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

__all__ = ["fresh_shell", "run"]


@contextmanager
def fresh_shell(definitions: str) -> Iterator[InteractiveShell]:
    """A fresh IPython that keeps no history file, in which some definitions have run, and nothing of ours is loaded."""
    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=config)
    shell.run_cell(definitions).raise_error()
    yield shell
    InteractiveShell.clear_instance()


def run(ip: InteractiveShell, cell: str) -> Any:
    """Run a cell; give its value, and raise what it raised."""
    with capture_output():
        result = ip.run_cell(cell, store_history=True)
    result.raise_error()
    return result.result
