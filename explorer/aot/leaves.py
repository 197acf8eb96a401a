"""A call's leaves, once they are known to fit, as a program takes them."""

from __future__ import annotations

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from explorer.aot.inputs import DimensionInputInfo, InputInfo


def as_jit_takes_it(info: InputInfo | DimensionInputInfo, leaf: Any) -> Any:
    """A leaf that fits as jax.jit would have it, so that moving it is what `jax.transfer_guard` takes it for."""
    if isinstance(info, DimensionInputInfo):
        return int(leaf)
    if isinstance(leaf, jax.Array):
        # What isn't committed goes where the binary has it.
        is_placed = info.sharding is None or not leaf.committed or leaf.sharding == info.sharding
        return leaf if is_placed else jax.device_put(leaf, info.sharding)
    is_numpy = type(leaf) is np.ndarray or isinstance(leaf, np.generic)
    return cast(Any, leaf) if is_numpy else jnp.asarray(leaf, info.dtype)


def firm(info: InputInfo, leaf: Any) -> Any:
    """A leaf that fits, of no weak type: those of a program would change by it."""
    if isinstance(leaf, jax.Array) and not jax.typeof(leaf).weak_type:
        array: Any = leaf
        is_placed = info.sharding is None or isinstance(leaf, Tracer) or leaf.sharding == info.sharding
        return array if is_placed else jax.device_put(leaf, info.sharding)
    return jnp.asarray(leaf, info.dtype)
