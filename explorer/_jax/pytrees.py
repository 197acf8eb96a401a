"""What JAX knows of a class that is registered as a pytree."""

from __future__ import annotations

import inspect
from typing import Any

_pytrees: dict[type, Any]
try:
    from jax._src.tree_util import _registry as _pytrees  # pyright: ignore
except ImportError:  # pragma: no cover - a dataclass of other fields than in a file isn't told from the right one
    _pytrees = {}


def registered_fields(kind: type) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The names that `jax.tree_util.register_dataclass` was given for a class: of its children, and of the rest.

    None for a class that has functions of its own to be taken apart and put together. Nothing public tells the two
    apart, and JAX's C++ puts a dataclass together unchecked: it reads past the end of too few children.
    """
    put_together = getattr(_pytrees.get(kind), "from_iter", None)
    if not inspect.isfunction(put_together) or put_together.__module__ != "jax._src.tree_util":
        return None
    names = inspect.getclosurevars(put_together).nonlocals
    return (names["data_fields"], names["meta_fields"]) if {"data_fields", "meta_fields"} <= set(names) else None
