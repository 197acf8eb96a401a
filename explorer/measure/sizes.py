"""Arguments at other sizes: ranges of `InputInfo`s, and makers of arguments that allocate no arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import Any

import jax
import numpy as np

from explorer.capture.explore import Described

_tree: Any = jax.tree  # whose functions have no types


def abstract_maker(args: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same callable, returning shapes instead of arrays, so that any size can be requested."""

    @wraps(args)
    def shapes(**values: Any) -> Any:
        return abstract_arguments(args, values)

    return shapes


def abstract_arguments(maker: Callable[..., Any], values: dict[str, Any]) -> Any:
    """Return the result of `maker(**values)` with a `jax.ShapeDtypeStruct` for each array that it makes.

    It is traced, so that arrays too large for this machine cost nothing. A maker that needs array values is called.
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


def ranges_of(given: Sequence[Any]) -> dict[str, tuple[int, int, int]]:
    """Return the least, usual and largest size of each varying dimension of `InputInfo`s, by name."""
    ranges: dict[str, tuple[int, int, int]] = {}
    for number, leaf in enumerate(flattened(tuple(given))[0]):
        for axis, size in enumerate(_shape(leaf)):
            if not isinstance(size, int):
                low, opt, high = (size.min, size.opt, size.max)
                if high > low:
                    ranges[_size_name(size, number, axis)] = (max(low, 1), max(opt, low, 1), high)
    return ranges


def sized_maker(given: Sequence[Any]) -> Callable[..., Any]:
    """Return a function from sizes by name to arguments like these; other dimensions keep their usual size."""
    leaves, tree = flattened(tuple(given))
    return partial(_sized, leaves, tree)


def flattened(arguments: Any) -> tuple[list[Any], Any]:
    """Return the leaves and the structure of a tree in which an `InputInfo` is a leaf."""
    return _tree.flatten(arguments, is_leaf=is_described)


def is_described(leaf: object) -> bool:
    return isinstance(leaf, Described)


def _shape(leaf: Any) -> Sequence[Any]:
    """Return the sizes of a description of an array: numbers, or ranges of them."""
    return getattr(leaf, "shape", ()) if isinstance(leaf, Described) else ()


def _sized(leaves: Sequence[Any], tree: Any, **sizes: int) -> Any:
    return jax.tree.unflatten(tree, [_leaf_sized(leaf, number, sizes) for number, leaf in enumerate(leaves)])


def _leaf_sized(leaf: Any, number: int, sizes: Mapping[str, int]) -> Any:
    if not isinstance(leaf, Described):
        return leaf
    struct = leaf.to_struct()
    sized = [
        size if isinstance(size, int) else sizes.get(_size_name(size, number, axis), size.opt)
        for axis, size in enumerate(_shape(leaf))
    ]
    return jax.ShapeDtypeStruct(tuple(sized), struct.dtype, sharding=struct.sharding)


def _size_name(size: Any, number: int, axis: int) -> str:
    """Return the dimension's name, or `arg0.shape[1]` if it has none."""
    return getattr(size, "name", f"arg{number}.shape[{axis}]")


def _is_none(leaf: object) -> bool:
    return leaf is None
