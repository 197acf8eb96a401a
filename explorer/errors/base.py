"""What every error of Explorer's is."""

from __future__ import annotations


class ExplorerError(Exception):
    """Base of every error that Explorer raises on purpose.

    What to do:
        Catch it to take any error of Explorer's for one; each is also of the builtin kind that fits, as a
        TypeError.

    Example:
        >>> import explorer
        >>> try:
        ...     explorer.explore(3)
        ... except explorer.ExplorerError as error:
        ...     print(error)
        explore takes a function and its arguments; it got int. Hint: write explore(f, x), not explore(f(x)).
    """
