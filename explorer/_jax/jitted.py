"""What a `jax.jit` function was info, which nothing public gives back."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import jax

_Jitted: type | None = type(jax.jit(lambda: None))


def is_jitted(value: Any) -> bool:
    """Whether a value is what `jax.jit` returns; runs no code of the value's."""
    return type(value) is _Jitted


def static_arguments(jitted: Any) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The `static_argnums` and `static_argnames` of a `jax.jit` function, each completed from the other by JAX."""
    info: Any = getattr(jitted, "_jit_info", None) if is_jitted(jitted) else None
    return tuple(getattr(info, "static_argnums", ())), tuple(getattr(info, "static_argnames", ()))


def donated_arguments(jitted: Any) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The `donate_argnums` and `donate_argnames` of a `jax.jit` function, each completed from the other by JAX."""
    info: Any = getattr(jitted, "_jit_info", None) if is_jitted(jitted) else None
    return tuple(getattr(info, "donate_argnums", ())), tuple(getattr(info, "donate_argnames", ()))


def jit_options(jitted: Any) -> dict[str, Any] | None:
    """What makes `jax.jit(function, **options)` do as `jitted` does; None where that can't be info."""
    info: Any = getattr(jitted, "_jit_info", None) if is_jitted(jitted) else None
    try:
        placed = (
            *info.out_shardings_leaves,
            *info.in_layouts_leaves,
            *info.out_layouts_leaves,
            info.device,
            info.backend,
        )
        is_plain = not info.user_specified_in_shardings and all(
            value is None or type(value).__name__ == "UnspecifiedValue" for value in placed
        )
        names = ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "keep_unused", "inline")
        options = {name: getattr(info, name) for name in names}
        return options | {"compiler_options": dict(info.compiler_options_kvs) or None} if is_plain else None
    except (AttributeError, TypeError):  # another JAX keeps it elsewhere
        return None


def pmapped_call(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, list[Any]] | None:
    """Return the `jax.jit` function that a `jax.pmap` function calls, and the arrays that it gives to it.

    A `jax.pmap` function has `lower` and no `trace`; only its closure knows both. None for what is no such function.
    """
    lower = getattr(function, "lower", None)
    if not inspect.isfunction(lower) or not lower.__module__.startswith("jax."):
        return None
    infer: Any = inspect.getclosurevars(lower).nonlocals.get("infer_params")
    try:
        _, jitted, leaves, *_ = infer(*args, **kwargs)
        return (jitted, list(leaves)) if is_jitted(jitted) else None
    except (TypeError, ValueError):  # pragma: no cover - another JAX keeps it otherwise
        return None
