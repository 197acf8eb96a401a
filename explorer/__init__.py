"""See what the compiler did to your JAX function, and why."""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module

from explorer import _lazy
from explorer import errors as errors
from explorer.errors import ExplorerError as ExplorerError
from explorer.model.capture import Capture
from explorer.model.declared import define_with


def _define_methods() -> None:
    import_module("explorer.methods")
    import_module("explorer.result_methods")


# At the first call of such a method: they import every room.
define_with(_define_methods)
load = Capture.load
__version__ = "0.2.0"
_PLACES = _lazy.names_of("explorer")
_TRIPY = ("Compiler", "DimensionInputInfo")
__all__ = sorted(_PLACES)  # pyright: ignore[reportUnsupportedDunderAll] - `__init__.pyi` lists them


def __getattr__(name: str) -> object:
    if name in _PLACES:
        # Stored, so that later accesses don't come here.
        return globals().setdefault(name, _lazy.load(_PLACES[name], name))
    return _moved(name)


def _moved(name: str) -> object:
    """Return an object that was once at the top level, and warn with its new place; AttributeError for other names."""
    if not name.startswith("_"):
        for place in ("compat.tripy",) if name in _TRIPY else ("errors", "types"):
            module = import_module(f"explorer.{place}")
            if name in module.__all__:
                warning = f"explorer.{name} is now explorer.{place}.{name}; the next release removes the old name"
                # Past `__getattr__`: the line that uses the old name.
                warnings.warn(warning, DeprecationWarning, stacklevel=3)
                return getattr(module, name)
    raise AttributeError(f"module 'explorer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)


def _watch_if_requested() -> None:
    """Watch the session if the environment asks for a log; a failure must not stop the user's program."""
    if any(map(os.environ.get, ("EXPLORER_INSTRUCTION_LOG", "EXPLORER_DEBUG_COMPILE"))):
        try:
            import_module("explorer.ledger.watch").watch_if_requested()
        except Exception as error:
            print(f"explorer: there will be no log: {type(error).__name__}: {error}", file=sys.stderr)


def _compile_if_requested() -> None:
    """Turn on hot paths if the environment asks for it; an invalid value is an error."""
    names = ("AUTO_COMPILE", "COMPILE", "COMPILE_THRESHOLD", "CONFIG")
    if any(os.environ.get(f"EXPLORER_{name}") for name in names):
        import_module("explorer.hotpath.auto").start_if_requested()


_watch_if_requested()
_compile_if_requested()
