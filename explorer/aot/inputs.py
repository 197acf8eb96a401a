"""What an input will look like."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from explorer.errors import InputInfoError

__all__ = ["InputInfo"]


@dataclass(frozen=True, init=False, repr=False)
class InputInfo:
    """The shape and dtype of an array that is given at run time.

    Args:
        shape: Sizes of the dimensions, ints of at least 0; `()` for a scalar.
        dtype: Anything JAX takes as one: `jnp.float32`, `"int8"`.

    Raises:
        InputInfoError: A size is no such int, or the dtype is unknown, or JAX would silently narrow it.

    Example:
        >>> InputInfo((2, 8), "float32")
        InputInfo((2, 8), float32)
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __init__(self, shape: Iterable[int], dtype: Any) -> None:
        object.__setattr__(self, "shape", _checked_shape(shape))
        object.__setattr__(self, "dtype", _checked_dtype(dtype))

    def to_struct(self) -> jax.ShapeDtypeStruct:
        """The same, as JAX writes it."""
        return jax.ShapeDtypeStruct(self.shape, self.dtype)

    def __repr__(self) -> str:
        return f"InputInfo({self.shape}, {self.dtype})"


def _checked_shape(shape: Any) -> tuple[int, ...]:
    if isinstance(shape, str) or not isinstance(shape, Iterable):
        raise InputInfoError(
            f"a shape is a tuple of ints; it came as {shape!r}.\n  Hint: a vector of 8 is InputInfo((8,), dtype)."
        )
    sizes: list[int] = []
    for axis, size in enumerate(cast(Iterable[Any], shape)):
        # True is an int to Python, and np.int64 is none: what counts as a size is decided here.
        if isinstance(size, (bool, np.bool_)) or not isinstance(size, (int, np.integer)) or size < 0:
            hint = "dimensions that vary, (min, opt, max) or named, are not built yet; " if _is_range(size) else ""
            raise InputInfoError(
                f"dimension {axis} of a shape is {size!r}; allowed is an int of at least 0.\n"
                f"  Hint: {hint}compile once for each size."
            )
        sizes.append(int(cast(int, size)))
    return tuple(sizes)


def _is_range(size: Any) -> bool:
    return isinstance(size, (tuple, list)) or hasattr(size, "min")


def _checked_dtype(dtype: Any) -> np.dtype[Any]:
    try:
        if jnp.issubdtype(dtype, jax.dtypes.extended):  # a PRNG key's, which NumPy doesn't know
            return dtype
        wanted = jnp.dtype(dtype)
    except TypeError:
        raise InputInfoError(
            f"{dtype!r} is no dtype.\n  Hint: write one of jax.numpy, such as jnp.float32, or its name."
        ) from None
    got = jax.dtypes.canonicalize_dtype(wanted)
    if got != wanted:
        raise InputInfoError(
            f"dtype {wanted} would become {got}: JAX narrows 64-bit types.\n"
            f"  Hint: say {got}, or allow 64 bits with jax.config.update('jax_enable_x64', True)."
        )
    return wanted
