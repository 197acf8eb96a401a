"""Switch of compilation for the whole process: off, a jitted function runs as plain Python."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType

_FALSE = ("", "0", "false", "no", "off")

_enabled = os.environ.get("EXPLORER_DISABLE_COMPILE", "").strip().lower() in _FALSE
_listeners: list[Callable[[], None]] = []


def is_enabled() -> bool:
    return _enabled


def on_change(listener: Callable[[], None]) -> None:
    _listeners.append(listener)


def _set(enabled: bool) -> None:
    global _enabled
    _enabled = enabled
    for listener in _listeners:
        listener()


class _Switch:
    """Setting that takes effect when it is made; as a context manager, it restores the previous one at the end."""

    to: bool

    def __init__(self) -> None:
        self.before = _enabled
        _set(self.to)

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _set(self.before)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class disable_compile(_Switch):
    """Run functions of `jit` as plain Python from now on, so that `print` shows values and a debugger stops in them.

    It takes effect at once, in the whole process. `with disable_compile():` ends it after the block. The environment
    variable EXPLORER_DISABLE_COMPILE=1 starts a process with compilation off.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> @explorer.jit
        ... def double(x):
        ...     print(x * 2)
        ...     return x * 2
        >>> with explorer.disable_compile():
        ...     _ = double(jnp.arange(3))
        [0 2 4]
    """

    to = False


class enable_compile(_Switch):
    """Compile functions of `jit` again: the reverse of `disable_compile`.

    Example:
        >>> import explorer
        >>> from explorer.jitted.switch import is_enabled
        >>> with explorer.disable_compile():
        ...     with explorer.enable_compile():
        ...         is_enabled()
        ...     is_enabled()
        True
        False
    """

    to = True
