"""Whether a compiled call gave what the eager one did, but for the order in which sums are added."""

from __future__ import annotations

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from explorer.capture.differences import difference_of
from explorer.hotpath.arrays import ARRAYS

_tree: Any = jax.tree  # whose structures have no type
_ULPS = 512  # of the largest number of an array: what reassociated sums of some thousand terms differ by


def difference(eager: Any, compiled: Any) -> str:
    """How two results differ, in words; empty where they are the same to a user."""
    before, structure = _tree.flatten(eager)
    after, other = _tree.flatten(compiled)
    if structure != other:
        return f"it gives {other} in place of {structure}"
    for one, two in zip(before, after, strict=True):
        for name in ("shape", "dtype", "weak_type", "sharding", "committed"):
            if getattr(one, name, None) != getattr(two, name, None):  # a key has no weak type
                return (
                    f"the {name.replace('_', ' ')} of a result is {getattr(two, name)} in place of {getattr(one, name)}"
                )
        if not is_close(one, two):
            return "its numbers differ by more than the order of sums explains"
    return ""


def is_close(one: jax.Array, two: jax.Array) -> bool:
    """Whether two arrays of one dtype are equal but for rounding."""
    if jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
        one, two = jax.random.key_data(one), jax.random.key_data(two)
    if not jnp.issubdtype(one.dtype, jnp.inexact):  # 64 bits of which may not fit into a double
        return bool(np.array_equal(np.asarray(one), np.asarray(two)))
    tolerance = _ULPS * float(cast(Any, jnp.finfo(one.dtype)).eps)
    apart = difference_of(two, one)
    return apart.absolute == 0 or apart.relative <= tolerance


def shared_container(args: Any, kwargs: Any, result: Any) -> bool:
    """Whether a result has a container of the arguments', or one twice: a compiled copy would give new ones."""
    seen = {id(container) for container in _containers((args, kwargs))}
    for container in _containers(result):
        if id(container) in seen:
            return True
        seen.add(id(container))
    return False


def _containers(tree: Any) -> list[Any]:
    """The lists and dicts in a tree, and objects that can be changed."""
    containers: list[Any] = []

    def note(node: Any) -> bool:
        is_object = hasattr(node, "__dict__") and not isinstance(node, type) and type(node) not in ARRAYS
        if isinstance(node, (list, dict)) or is_object:
            containers.append(node)
        return False

    jax.tree.leaves(tree, is_leaf=note)
    return containers
