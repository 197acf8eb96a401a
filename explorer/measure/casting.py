"""Arguments cast to another floating-point dtype."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from explorer.capture.filtered import flatten
from explorer.errors import OptionError
from explorer.measure.naming import struct_of, value_text


def as_float(given: Any, verb: str) -> Any:
    """Return the floating-point dtype that `given` names.

    Raises:
        OptionError: `given` is no dtype, no floating point, or a dtype that JAX would canonicalize to another.
    """
    try:
        dtype = jnp.dtype(given)
    except TypeError:
        raise OptionError(
            f"{verb} takes a dtype to cast to; it got {value_text(given)}.\n"
            "  Hint: jnp.float32, jnp.bfloat16 or 'float16'."
        ) from None
    if not jnp.issubdtype(dtype, jnp.floating):
        raise OptionError(
            f"{verb} casts arguments of floating point to another one; {dtype.name} is none.\n"
            "  Hint: make arguments of another kind in `args=`: args=lambda dtype: (jnp.ones(8, dtype),)."
        )
    if jax.dtypes.canonicalize_dtype(dtype) != dtype:
        raise OptionError(
            f"{verb} can't cast to {dtype.name}: JAX makes {jax.dtypes.canonicalize_dtype(dtype).name} of it.\n"
            "  Hint: jax.config.update('jax_enable_x64', True), before any array is made."
        )
    return dtype


def cast_floats(tree: Any, dtype: Any) -> Any:
    """Return the tree with its floating-point arrays cast to `dtype`."""

    def cast(leaf: Any) -> Any:
        leaf = struct_of(leaf)
        kind = getattr(leaf, "dtype", None)
        if kind is None or not jnp.issubdtype(kind, jnp.floating):
            return leaf
        if isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf.update(dtype=dtype)
        return leaf.astype(dtype)

    leaves, rebuild = flatten(tree)
    return rebuild([cast(leaf) for leaf in leaves])


def has_floats(tree: Any) -> bool:
    """Return True if the tree has a floating-point array."""
    kinds = (getattr(struct_of(leaf), "dtype", None) for leaf in flatten(tree)[0])
    return any(kind is not None and jnp.issubdtype(kind, jnp.floating) for kind in kinds)
