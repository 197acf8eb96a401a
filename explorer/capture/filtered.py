"""Wrappers around `jax.jit`: `equinox.filter_jit`, which makes everything but arrays static, and `flax.nnx.jit`.

Neither library is imported to recognize its wrapper. Both keep the `jax.jit` function that they call as an attribute. A
copy of the wrapper with another function there still flattens its arguments and returns its state updates.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import jax
import jax.core
import numpy as np

from explorer._jax.arguments import is_jitted, pmapped_call

_ARRAYS = (jax.Array, jax.core.Tracer, np.ndarray, np.generic, jax.ShapeDtypeStruct)


def is_filtered(function: Any) -> bool:
    """Return True for the result of `equinox.filter_jit`."""
    kind = cast(type[object], type(function))
    return (kind.__module__, kind.__name__) == ("equinox._jit", "_JitWrapper")


def filtered(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Callable[..., Any]:
    """Return a function for `jax.jit` that takes `arrays_of` these arguments and holds the others itself."""

    def whole(given: Any, array: Any) -> Any:
        return given if array is None else array

    @functools.wraps(function.__wrapped__)
    def call(*arrays: Any, **named: Any) -> Any:
        all_args, all_kwargs = jax.tree.map(
            # None marks a place without array; without `is_leaf` it would be an empty tree.
            whole,
            (tuple(args), kwargs),
            (arrays, named),
            is_leaf=lambda leaf: leaf is None,
        )
        return arrays_of(function(*all_args, **all_kwargs))

    return call


def arrays_of(tree: Any) -> Any:
    """Return the tree with None in place of each leaf that is no array."""

    def array(leaf: Any) -> Any:
        return leaf if issubclass(type(leaf), _ARRAYS) else None

    return jax.tree.map(array, tree)


def inner_jit(wrapper: Any) -> Any:
    """Return the `jax.jit` function that a wrapper calls; None for anything but a known library's wrapper."""
    library = cast(type[object], type(wrapper)).__module__.partition(".")[0]
    names = _inner_attributes(wrapper) if library in ("flax", "equinox") else []
    return getattr(wrapper, names[0]) if len(names) == 1 else None


def with_inner(wrapper: Any, function: Callable[..., Any]) -> Any:
    """Return a copy of the wrapper that calls `function` in place of its `jax.jit` function."""
    (name,) = _inner_attributes(wrapper)
    other = copy.copy(wrapper)
    object.__setattr__(other, name, function)  # Equinox's is a frozen dataclass
    return other


def inner_call(wrapper: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments that a wrapper passes to its `jax.jit` function, without calling that function."""
    leaves, rebuild = flatten((tuple(args), kwargs))
    at = [i for i, leaf in enumerate(leaves) if isinstance(leaf, jax.ShapeDtypeStruct)]
    if not is_filtered(wrapper) or not at:
        return _seen_call(wrapper, args, kwargs)
    seen: list[Any] = []

    def see(tracers: Sequence[Any]) -> None:  # Equinox treats a tracer as an array, and a struct as static
        described = {id(tracer): leaves[i] for i, tracer in zip(at, tracers, strict=True)}
        given = dict(zip(at, tracers, strict=True))
        call = _seen_call(wrapper, *rebuild([given.get(i, leaf) for i, leaf in enumerate(leaves)]))

        def describe(leaf: Any) -> Any:
            return described.get(id(leaf), leaf)

        seen.append(jax.tree.map(describe, call))

    jax.eval_shape(see, [leaves[i] for i in at])
    return seen[0]


def _seen_call(wrapper: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    def seen(*inner_args: Any, **inner_kwargs: Any) -> Any:
        raise _SeenError(inner_args, inner_kwargs)

    try:
        with_inner(wrapper, seen)(*args, **kwargs)
    except _SeenError as call:
        return call.call
    raise TypeError(f"{type(wrapper).__name__} doesn't call its jax.jit function")


def inner_trace(wrapper: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, list[str]] | None:
    """Trace the `jax.jit` function inside an `equinox.filter_jit` or `jax.pmap` wrapper; the wrapper's calls reuse it.

    Return the trace and the user's name of each array argument, empty if unknown; None for any other function.
    """
    call = _call_within(wrapper, args, kwargs)
    if call is None:
        return None
    inner, inner_args, inner_kwargs = call
    leaves, rebuild = flatten((tuple(args), kwargs))
    arrays = [leaf for leaf in leaves if issubclass(type(leaf), _ARRAYS)]
    named: Any = (args, kwargs)
    given = _arrays_in(inner_args, inner_kwargs)
    if len({id(array) for array in arrays}) < len(arrays):
        # One array is passed twice: descriptions, each an object of its own, show where each of the two goes.
        named = rebuild([_described(leaf) for leaf in leaves])
        given = _arrays_in(*(_call_within(wrapper, *named) or ((), (), {}))[1:])
    return inner.trace(*inner_args, **inner_kwargs), _names_of(given, wrapper, *named)


def _call_within(wrapper: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]] | None:
    """Return the `jax.jit` function that a wrapper calls, and its arguments; None for any other function."""
    if is_filtered(wrapper):
        inner = inner_jit(wrapper)
        return None if inner is None else (inner, *inner_call(wrapper, args, kwargs))
    call = pmapped_call(wrapper, args, kwargs) if hasattr(wrapper, "lower") else None
    return None if call is None else (call[0], tuple(call[1]), {})


def _arrays_in(args: Any, kwargs: Mapping[str, Any]) -> list[Any]:
    return [leaf for leaf in jax.tree.leaves((args, kwargs)) if issubclass(type(leaf), _ARRAYS)]


def _described(leaf: Any) -> Any:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if issubclass(type(leaf), _ARRAYS) else leaf


def _names_of(arrays: Sequence[Any], wrapper: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[str]:
    """Return the path of each array in the user's call, empty where unknown."""
    names: dict[int, str] = {}
    for name, value in inspect.signature(wrapper).bind(*args, **kwargs).arguments.items():
        leaves = cast("list[tuple[Any, Any]]", jax.tree_util.tree_leaves_with_path(value))
        # By identity: the wrapper passes the user's own arrays, in another tree.
        names |= {id(leaf): f"{name}{jax.tree_util.keystr(path)}" for path, leaf in leaves}
    return [names.get(id(array), "") for array in arrays]


def flatten(values: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """Return the leaves of a tree, with those of flax modules, and a function that builds the tree from other leaves.

    Each tree that it builds has new flax modules, which share what the first ones share: a call that updates them
    leaves the first ones as they are.
    """
    nnx = sys.modules.get("flax.nnx")
    # Older versions of flax call it Object. Only a library that is loaded can have made a module.
    kinds = () if nnx is None else (nnx.Variable, getattr(nnx, "Pytree", None) or nnx.Object)
    nodes, structure = _flattened(values, is_leaf=lambda value: isinstance(value, kinds))
    at = [i for i, node in enumerate(nodes) if isinstance(node, kinds)]
    if nnx is None or not at:
        return nodes, functools.partial(jax.tree.unflatten, structure)
    definition, state = nnx.split([nodes[i] for i in at])  # all at once, for what they share
    of_modules, inner = _flattened(state)
    others = [node for i, node in enumerate(nodes) if i not in {*at}]

    def rebuild(leaves: Sequence[Any]) -> Any:
        modules = iter(nnx.merge(definition, jax.tree.unflatten(inner, leaves[: len(of_modules)])))
        rest = iter(leaves[len(of_modules) :])
        return jax.tree.unflatten(structure, [next(modules if i in at else rest) for i in range(len(nodes))])

    return [*of_modules, *others], rebuild


def _flattened(values: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Any]:
    return cast("tuple[list[Any], Any]", jax.tree.flatten(values, is_leaf))


class _SeenError(Exception):
    def __init__(self, *call: Any) -> None:
        super().__init__("seen")
        self.call = call


def _inner_attributes(wrapper: Any) -> list[str]:
    return [name for name, value in cast("dict[str, Any]", vars(wrapper)).items() if is_jitted(value)]
