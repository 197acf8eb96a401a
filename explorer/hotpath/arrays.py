"""Which values are arrays that a compiled program takes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from explorer._jax.array_types import Array, KeyArray

# What holds numbers, and typed keys; what stands for them in a trace are others.
ARRAYS: frozenset[type[Any]] = frozenset((Array, KeyArray))
_SMALL = 64  # elements: a shape, axes, a number of turns


def may_be_replaced(array: jax.Array) -> bool:
    """Whether an array that was read may be another at the next call, with the same program.

    Integers and truth values may have been taken for a size, an axis, a number of turns: as long as there are few,
    their very values are in the program.
    """
    return (not jnp.issubdtype(array.dtype, jnp.integer) and array.dtype != jnp.bool_) or array.size > _SMALL
