"""The distance between two results of a function."""

from __future__ import annotations

from math import nan
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from explorer.model.results.sweep import Difference

_KINDS: Any = (jax.Array, np.ndarray, np.number, np.bool_, bool, int, float, complex)


def difference_of(result: Any, plain: Any) -> Difference:
    """Return the largest difference of two values at the same place of two results.

    Functions and other objects in a result, as in a module of Equinox, are left out. Two NaN, or equal infinities,
    don't differ. Values are compared in double precision.

    Example:
        >>> difference_of([jnp.array([1.0, 4.0])], [jnp.array([1.0, 4.5])])
        Difference(absolute=0.5, relative=0.1111111111111111)
    """
    ours, theirs = _values(result), _values(plain)
    if len(ours) != len(theirs):
        return Difference(nan, nan)
    absolute = relative = 0.0
    for one, other in zip(map(_numbers, ours), map(_numbers, theirs), strict=True):
        if one.shape != other.shape:
            return Difference(nan, nan)
        apart = ~((one == other) | (np.isnan(one) & np.isnan(other)))
        if not apart.any():
            continue
        largest = np.abs(one[apart] - other[apart]).max()
        scale = np.abs(other[np.isfinite(other)]).max(initial=0.0)
        # NumPy's maximum of a number and NaN is NaN; Python's is the first argument.
        absolute = float(np.maximum(absolute, largest))
        relative = float(np.maximum(relative, largest / scale if scale else nan))
    return Difference(absolute, relative)


def _values(tree: Any) -> list[Any]:
    leaves: list[Any] = jax.tree.leaves(tree)
    return [leaf for leaf in leaves if isinstance(leaf, _KINDS)]


def _numbers(leaf: Any) -> np.ndarray[Any, np.dtype[Any]]:
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    array = np.asarray(leaf)
    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)
