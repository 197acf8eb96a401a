"""A user's arguments without their memory: what `args=` makes, as shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

_tree: Any = jax.tree  # whose functions have no types


def abstract_arguments(maker: Callable[..., Any], values: dict[str, Any]) -> Any:
    """What `maker(**values)` returns, with a `jax.ShapeDtypeStruct` for each array that it makes.

    It is traced, so that arrays too large for this machine cost nothing. A maker that needs their values is called.
    """
    seen: list[tuple[list[Any], Any]] = []

    def arrays_of_maker() -> list[Any]:
        leaves, tree = _tree.flatten(maker(**values), is_leaf=_is_none)
        arrays = [i for i, leaf in enumerate(leaves) if isinstance(leaf, (jax.Array, np.ndarray))]
        # A weak type is that of a number in Python: such stay what they are.
        seen.append(([None if i in arrays else leaf for i, leaf in enumerate(leaves)], (tree, arrays)))
        return [leaves[i] for i in arrays]

    try:
        structs = jax.eval_shape(arrays_of_maker)
    except Exception:  # it looks at values, or is no function of JAX's: then it has to make them
        return maker(**values)
    leaves, (tree, arrays) = seen[-1]
    for i, struct in zip(arrays, structs, strict=True):
        leaves[i] = jax.ShapeDtypeStruct(struct.shape, struct.dtype)
    return jax.tree.unflatten(tree, leaves)


def _is_none(leaf: object) -> bool:
    return leaf is None
