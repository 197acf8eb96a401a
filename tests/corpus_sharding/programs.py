"""How a program of this corpus is written down, and the meshes that they use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

P = PartitionSpec


class Program(NamedTuple):
    """A program and what lint must say of it.

    Args:
        name: Of the function that makes it.
        make: Gives the function and its arguments.
        rule: That must hit it; empty where none may.
        marker: Stands in the line that must be named; empty where only the rule counts.
    """

    name: str
    make: Callable[[], tuple[Any, ...]]
    rule: str = ""
    marker: str = ""


def mesh_of(**sizes: int) -> Mesh:
    """A mesh of the first devices, whose sharding the compiler propagates."""
    names = tuple(sizes)
    return jax.make_mesh(tuple(sizes.values()), names, axis_types=(AxisType.Auto,) * len(names))


def array(mesh: Mesh, shape: tuple[int, ...], *spec: Any, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    """An array that isn't there yet, split so."""
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))


def keep(mesh: Mesh, value: Any, *spec: Any) -> Any:
    """A value whose sharding is asked for."""
    return jax.lax.with_sharding_constraint(value, NamedSharding(mesh, P(*spec)))


def norm(x: Any) -> Any:
    """Without weights."""
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-6)
