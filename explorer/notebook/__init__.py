"""The magics: `%load_ext explorer` adds them to a notebook."""

from __future__ import annotations

from typing import Any

__all__ = ["load_ipython_extension", "unload_ipython_extension"]

# IPython is imported only here, where one runs already: `import explorer` in a script doesn't load it.


def load_ipython_extension(ipython: Any) -> None:
    """Add the magics and their completers to a shell, once; called by `%load_ext explorer`.

    Example:
        >>> from IPython.core.interactiveshell import InteractiveShell
        >>> import explorer
        >>> shell = InteractiveShell()
        >>> explorer.load_ipython_extension(shell)
        >>> "explore" in shell.magics_manager.magics["line"]
        True
    """
    from explorer.notebook.magics import load

    load(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """Remove the magics from a shell, and nothing else; called by `%unload_ext explorer`.

    Example:
        >>> from IPython.core.interactiveshell import InteractiveShell
        >>> import explorer
        >>> shell = InteractiveShell()
        >>> explorer.load_ipython_extension(shell)
        >>> explorer.unload_ipython_extension(shell)
        >>> "explore" in shell.magics_manager.magics["line"]
        False
    """
    from explorer.notebook.magics import unload

    unload(ipython)
