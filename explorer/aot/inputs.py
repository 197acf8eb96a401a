"""What an input will look like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from explorer.errors import InputInfoError

__all__ = ["InputInfo"]

_SIZES = 2**63  # XLA counts in int64
_KINDS = (jnp.number, jnp.bool_)


@dataclass(frozen=True, init=False, repr=False)
class InputInfo:
    """The shape and dtype of an array that is given at run time.

    Args:
        shape: A tuple or list of the dimensions' sizes, ints of at least 0; `()` for a scalar.
        dtype: Anything JAX takes as one: `jnp.float32`, `"int8"`.

    Raises:
        InputInfoError: A size is no such int, or the dtype is unknown, or JAX would silently narrow it.

    Example:
        >>> InputInfo((2, 8), "float32")
        InputInfo((2, 8), float32)
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __init__(self, shape: Sequence[int], dtype: Any) -> None:
        object.__setattr__(self, "shape", _checked_shape(shape))
        object.__setattr__(self, "dtype", _checked_dtype(dtype))

    @classmethod
    def like(cls, array: Any) -> InputInfo:
        """What an array is, or what a `jax.ShapeDtypeStruct` says; the array itself is not kept.

        Raises:
            InputInfoError: It has no shape and dtype, or none that an input can have.

        Example:
            >>> InputInfo.like(np.ones((2, 8), "float32"))
            InputInfo((2, 8), float32)
        """
        shape, dtype = getattr(array, "shape", None), getattr(array, "dtype", None)
        if shape is None or dtype is None:
            raise InputInfoError(
                f"{type(array).__name__} has no shape and dtype.\n  Hint: give an array, or InputInfo(shape, dtype)."
            )
        return cls(shape, dtype)

    def to_struct(self) -> jax.ShapeDtypeStruct:
        """The same, as JAX writes it."""
        return jax.ShapeDtypeStruct(self.shape, self.dtype)

    def __repr__(self) -> str:
        return f"InputInfo({self.shape}, {self.dtype})"


def _checked_shape(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, (tuple, list)):
        raise InputInfoError(
            f"a shape is a tuple of ints; it came as {type(shape).__name__}.\n"
            "  Hint: a vector of 8 is InputInfo((8,), dtype)."
        )
    return tuple(_checked_size(axis, size) for axis, size in enumerate(cast(Sequence[Any], shape)))


def _checked_size(axis: int, size: Any) -> int:
    # True is an int to Python, and np.int64 is none: what counts as a size is decided here.
    if isinstance(size, (int, np.integer)) and not isinstance(size, bool) and 0 <= size < _SIZES:
        return int(cast(int, size))
    hint = "dimensions that vary, (min, opt, max) or named, are not built yet; " if _is_range(size) else ""
    raise InputInfoError(
        f"dimension {axis} of a shape is {size!r}; allowed is an int of at least 0, below 2**63.\n"
        f"  Hint: {hint}compile once for each size."
    )


def _is_range(size: Any) -> bool:
    return isinstance(size, (tuple, list)) or hasattr(size, "min")


def _checked_dtype(dtype: Any) -> np.dtype[Any]:
    try:
        if jnp.issubdtype(dtype, jax.dtypes.extended):  # a PRNG key's, which NumPy doesn't know
            return dtype
        wanted = None if dtype is None else jnp.dtype(dtype)  # to NumPy None is float64
    except (TypeError, ValueError):
        wanted = None
    # NumPy also has text, objects, records and the other byte order.
    if wanted is None or not wanted.isnative or not any(jnp.issubdtype(wanted, kind) for kind in _KINDS):
        raise InputInfoError(
            f"{dtype!r} is no dtype of JAX.\n  Hint: write one of jax.numpy, such as jnp.float32, or its name."
        )
    got = jax.dtypes.canonicalize_dtype(wanted)
    if got != wanted:
        raise InputInfoError(
            f"dtype {wanted} would become {got}: JAX narrows 64-bit types.\n"
            f"  Hint: say {got}, or allow 64 bits with jax.config.update('jax_enable_x64', True)."
        )
    return wanted
