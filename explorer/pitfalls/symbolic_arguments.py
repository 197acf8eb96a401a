"""Arguments whose sizes vary, described for all their sizes at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, cast

import jax
from jax import export

from explorer.capture.explore import Described


def symbolic_arguments(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]] | None:
    """The arguments with a symbol for each size that varies; None if none does, or the bounds can't be said to JAX."""
    leaves, tree = cast(tuple[list[Any], Any], jax.tree.flatten((list(args), kwargs), is_leaf=_is_described))
    bounds: dict[str, tuple[int, int]] = {}
    numbers = count()
    shapes = {id(leaf): _shape(leaf, bounds, numbers) for leaf in leaves if _is_described(leaf) and _varies(leaf)}
    if not shapes:
        return None
    limits = [(f"{name} >= {max(low, 1)}", f"{name} <= {high}") for name, (low, high) in bounds.items()]

    def symbolic(leaf: Any) -> Any:
        if id(leaf) in shapes:
            return jax.ShapeDtypeStruct(export.symbolic_shape(shapes[id(leaf)], scope=scope), leaf.dtype)
        return leaf.to_struct() if _is_described(leaf) else leaf

    try:
        scope = export.SymbolicScope([limit for pair in limits for limit in pair])
        described = list(map(symbolic, leaves))
    except ValueError:  # no size of theirs is possible
        return None
    return cast(tuple[list[Any], dict[str, Any]], jax.tree.unflatten(tree, described))


def _is_described(leaf: Any) -> bool:
    return issubclass(type(leaf), Described)


def _varies(leaf: Any) -> bool:
    return hasattr(leaf, "shape_bounds") and leaf.shape_bounds.min != leaf.shape_bounds.max


def _shape(leaf: Any, bounds: dict[str, tuple[int, int]], numbers: Any) -> str:
    """As JAX reads it: `batch, 128`."""
    low, high = leaf.shape_bounds.min, leaf.shape_bounds.max
    sizes: list[str] = []
    for axis, dimension in enumerate(leaf.shape):
        if low[axis] == high[axis]:
            sizes.append(str(low[axis]))
            continue
        name = getattr(dimension, "name", None) or f"size_{next(numbers)}"
        bounds[name] = low[axis], high[axis]
        sizes.append(name)
    return f"({', '.join(sizes)},)"
