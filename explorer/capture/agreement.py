"""Comparison of two programs by running both on random numbers, and of two results of a function."""

from __future__ import annotations

import math
from math import nan
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from explorer._jax.calls import suppress_recording
from explorer._jax.traces import inner_jaxprs, jaxpr_as_fun
from explorer.capture.explore import keys_like
from explorer.model.results.sweep import Difference

_MAX_BYTES = 1 << 28  # bytes of all values: what would take longer to run than to compile isn't run
_TOLERANCE = 1e-3  # of the largest value: two programs may add in another order, and a wrong size does more than that
_HALF_TOLERANCE = 5e-2


def differ(one: Any, other: Any) -> bool:
    """Return True if two closed jaxprs of the same arrays give different results on a few random numbers.

    Programs with effects (`io_callback`, `debug.print`), too large ones and those that raise an error count as equal.
    """
    avals = one.in_avals
    if one.effects or other.effects or max(_bytes(one), _bytes(other)) > _MAX_BYTES:
        return False
    if [(a.shape, a.dtype) for a in one.out_avals] != [(a.shape, a.dtype) for a in other.out_avals]:
        return True
    # A fixed seed: a finding must not come and go.
    generator = np.random.default_rng(0)
    arrays = [_numbers(aval, generator) for aval in avals]
    run, run_other = cast(Any, jaxpr_as_fun(one)), cast(Any, jaxpr_as_fun(other))

    def both(*arrays: Any) -> tuple[Any, Any]:
        return run(*arrays), run_other(*arrays)

    try:
        with suppress_recording():
            results, others = cast(tuple[Any, Any], jax.jit(both)(*arrays))
    except Exception:  # out of memory, a NaN that jax_debug_nans met: nothing is known
        return False
    return not all(map(_is_close, results, others))


def _bytes(closed: Any) -> int:
    jaxpr = getattr(closed, "jaxpr", closed)
    avals: list[Any] = [variable.aval for equation in jaxpr.eqns for variable in equation.outvars]
    own = sum(math.prod(aval.shape) * 8 for aval in avals if hasattr(aval, "shape"))  # a dtype of 8 bytes at most
    return own + sum(_bytes(inner) for e in jaxpr.eqns for _, inner in inner_jaxprs(e.params))


def _numbers(aval: Any, generator: np.random.Generator) -> jax.Array:
    shape: tuple[int, ...] = aval.shape
    if jnp.issubdtype(aval.dtype, jax.dtypes.prng_key):
        return keys_like(aval)
    if jnp.issubdtype(aval.dtype, jnp.inexact):
        return jnp.asarray(generator.standard_normal(shape)).astype(aval.dtype)
    return jnp.asarray(generator.integers(0, 3, shape)).astype(aval.dtype)


def _is_close(one: Any, other: Any) -> bool:
    is_half = bool(jnp.issubdtype(one.dtype, jnp.inexact)) and one.dtype.itemsize <= 2
    return difference_of(other, one).relative <= (_HALF_TOLERANCE if is_half else _TOLERANCE)


_KINDS: Any = (jax.Array, np.ndarray, np.number, np.bool_, bool, int, float, complex)


def difference_of(result: Any, plain: Any) -> Difference:
    """Return the largest absolute difference of two results, and the largest relative to an array of `plain`.

    The relative one is an array's largest difference over the largest finite magnitude in that array of `plain`. It is
    NaN if that magnitude is 0. Both are NaN if shapes or numbers of arrays differ, or if only one of two values is NaN.

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
    for one, other in zip(map(_comparable, ours), map(_comparable, theirs), strict=True):
        if one.shape != other.shape:
            return Difference(nan, nan)
        apart = ~((one == other) | (np.isnan(one) & np.isnan(other)))
        if not apart.any():
            continue
        largest = np.abs(one[apart] - other[apart]).max()
        # Relative to the largest value of the array: a tiny element next to large ones may differ by more than itself.
        scale = np.abs(other[np.isfinite(other)]).max(initial=0.0)
        # NumPy's maximum of a number and NaN is NaN; Python's is the first argument.
        absolute = float(np.maximum(absolute, largest))
        relative = float(np.maximum(relative, largest / scale if scale else nan))
    return Difference(absolute, relative)


def _values(tree: Any) -> list[Any]:
    leaves: list[Any] = jax.tree.leaves(tree)
    return [leaf for leaf in leaves if isinstance(leaf, _KINDS)]


def _comparable(leaf: Any) -> np.ndarray[Any, np.dtype[Any]]:
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    array = np.asarray(leaf)
    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)
