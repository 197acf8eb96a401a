"""What a `jax.jit` function was told, which nothing public gives back."""

from __future__ import annotations

from typing import Any

import jax

__all__ = ["is_jitted", "static_arguments"]

_Jitted: type | None = type(jax.jit(lambda: None))


def is_jitted(value: Any) -> bool:
    """Whether a value is what `jax.jit` returns; runs no code of the value's."""
    return type(value) is _Jitted


def static_arguments(jitted: Any) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The `static_argnums` and `static_argnames` of a `jax.jit` function, each completed from the other by JAX."""
    told: Any = getattr(jitted, "_jit_info", None) if is_jitted(jitted) else None
    return tuple(getattr(told, "static_argnums", ())), tuple(getattr(told, "static_argnames", ()))
