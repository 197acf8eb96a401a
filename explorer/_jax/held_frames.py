"""What JAX keeps of each symbolic dimension by accident: an error with the whole stack below it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from jax import export

_core: Any
try:
    from jax._src import core as _core  # pyright: ignore

    _canonicalize: Any = _core._canonicalize_dimension
except (ImportError, AttributeError):  # pragma: no cover - then the garbage collector is waited for
    _core = _canonicalize = None

_lock = Lock()
_users = 0


@contextmanager
def without_held_frames() -> Generator[None]:
    """Within: JAX takes a symbolic dimension into a shape without catching an error.

    Its own way asks `operator.index` and keeps the TypeError in a variable of the same frame: a circle of references.
    With it all frames down to the user's module stay, and what their variables hold, the function that is traced and
    its weights, until the garbage collector comes by.
    """
    global _users
    if _core is None:  # pragma: no cover - as above
        yield
        return
    with _lock:
        _users += 1
        _core._canonicalize_dimension = _canonicalize_directly
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                _core._canonicalize_dimension = _canonicalize


def _canonicalize_directly(dim: Any) -> Any:
    return dim if export.is_symbolic_dim(dim) else _canonicalize(dim)
