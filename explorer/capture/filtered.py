"""Calls through `equinox.filter_jit`: arrays are traced, and all else in the arguments is static."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

import jax
import jax.core
import numpy as np

_ARRAYS = (jax.Array, jax.core.Tracer, np.ndarray, np.generic, jax.ShapeDtypeStruct)


def is_filtered(function: Any) -> bool:
    """Whether it is what `equinox.filter_jit` gives; Equinox is not imported to see it."""
    kind = cast(type[object], type(function))
    return (kind.__module__, kind.__name__) == ("equinox._jit", "_JitWrapper")


def filtered(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Callable[..., Any]:
    """A function for `jax.jit` that takes `arrays_of` these arguments, and has the rest of them from here."""

    def whole(given: Any, array: Any) -> Any:
        return given if array is None else array

    @functools.wraps(function.__wrapped__)
    def call(*arrays: Any, **named: Any) -> Any:
        all_args, all_kwargs = jax.tree.map(whole, (tuple(args), kwargs), (arrays, named), is_leaf=_is_none)
        return arrays_of(function(*all_args, **all_kwargs))

    return call


def arrays_of(tree: Any) -> Any:
    """A tree with None in place of what is no array."""

    def array(leaf: Any) -> Any:
        return leaf if issubclass(type(leaf), _ARRAYS) else None

    return jax.tree.map(array, tree)


def _is_none(leaf: Any) -> bool:
    return leaf is None
