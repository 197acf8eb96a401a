"""The magics: `%load_ext explorer` puts `%explore` and `%%explore` into a notebook."""

from __future__ import annotations

from typing import Any

__all__ = ["load_ipython_extension", "unload_ipython_extension"]

# IPython is imported where one runs already: `import explorer` in a script pays nothing for the magics.


def load_ipython_extension(ipython: Any) -> None:
    """What `%load_ext explorer` calls: add the magics and their completions, once.

    Example:
        >>> from IPython.core.interactiveshell import InteractiveShell
        >>> import explorer
        >>> shell = InteractiveShell()
        >>> explorer.load_ipython_extension(shell)
        >>> "explore" in shell.magics_manager.magics["line"]
        True
    """
    from explorer.notebook.extension import load

    load(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """What `%unload_ext explorer` calls: take away what loading added, and nothing else.

    Example:
        >>> from IPython.core.interactiveshell import InteractiveShell
        >>> import explorer
        >>> shell = InteractiveShell()
        >>> explorer.load_ipython_extension(shell)
        >>> explorer.unload_ipython_extension(shell)
        >>> "explore" in shell.magics_manager.magics["line"]
        False
    """
    from explorer.notebook.extension import unload

    unload(ipython)
