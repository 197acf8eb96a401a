"""The classes of arrays, without making one: that starts the backends, which a program may yet want to configure."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

Array: type[Any]
KeyArray: type[Any]
try:
    from jax._src.array import ArrayImpl as Array  # pyright: ignore
    from jax._src.random.prng import PRNGKeyArray as KeyArray  # pyright: ignore
except (ImportError, AttributeError):  # pragma: no cover - then the backends start with the import
    Array, KeyArray = type(jnp.zeros(())), type(jax.random.key(0))
