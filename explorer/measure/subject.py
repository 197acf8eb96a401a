"""The function to measure: how to call it compiled, and how to call it eagerly."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MethodType
from typing import Any

import jax

from explorer._jax.arguments import is_jitted
from explorer.capture.explore import Explored
from explorer.capture.filtered import is_filtered
from explorer.capture.readers.jaxpr import short_type
from explorer.errors import NotCallableError


@dataclass(frozen=True)
class Subject:
    """A function and the arguments of a call.

    Args:
        name: The name that the user knows it by.
        compiled: The function that runs compiled.
        eager: The function as it is written; None if no Python is left of it.
        args, kwargs: The arguments.
        is_traced: True if it can be traced and compiled again; False for a program that is compiled already.
        is_plain_jit: True for a `jax.jit` function, whose calls reuse what `.trace().lower().compile()` made.
    """

    name: str
    compiled: Callable[..., Any]
    eager: Callable[..., Any] | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    is_traced: bool = True
    is_plain_jit: bool = True


def subject_of(given: Any, args: tuple[Any, ...], kwargs: dict[str, Any], verb: str = "time") -> Subject:
    """Return the function to measure for a callable, a `jax.jit` function or method, or an `Executable`.

    Raises:
        NotCallableError: `given` can't be called.
    """
    __tracebackhide__ = True
    if not callable(given):
        raise NotCallableError(
            f"{verb} takes a function and its arguments; it got {type(given).__name__}. "
            f"Hint: write {verb}(f, x), not {verb}(f(x))."
        )
    function: Any = given
    name = name_of(function)
    while _kind(function) is partial and _is_compiling(function.func):
        function, args, kwargs = function.func, (*function.args, *args), {**function.keywords, **kwargs}
    if _is_compiled(function):
        return Subject(name, function, None, args, kwargs, is_traced=False)
    if _kind(function) is MethodType and _is_compiling(function.__func__):
        below = getattr(function.__func__, "__wrapped__", None)
        eager = MethodType(below, function.__self__) if below is not None else None
        return Subject(name, function, eager, args, kwargs, is_plain_jit=is_jitted(function.__func__))
    if _is_compiling(function):
        return Subject(
            name, function, getattr(function, "__wrapped__", None), args, kwargs, is_plain_jit=is_jitted(function)
        )
    return Subject(name, jax.jit(_hashable(function)), function, args, kwargs)


def name_of(function: Any) -> str:
    """Return the function's `__name__`, or its type's, without the `partial` objects around it."""
    while _kind(function) is partial:
        function = function.func
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def signature_of(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Return the arguments with their types, as `(x: f32[8,128], n: 3)`; a tree as its number of arrays."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
        named = [
            (f"{name}[{i}]" if kind is inspect.Parameter.VAR_POSITIONAL else name, one)
            for name, value in bound.arguments.items()
            for kind in (bound.signature.parameters[name].kind,)
            for i, one in enumerate(value if kind is inspect.Parameter.VAR_POSITIONAL else (value,))
        ]
    except (TypeError, ValueError):  # a builtin has no signature; what doesn't fit is refused where it is called
        named = [*((f"arg{i}", value) for i, value in enumerate(args)), *kwargs.items()]
    return f"({', '.join(f'{name}: {_type_of(value)}' for name, value in named)})"


def _is_compiling(function: Any) -> bool:
    """Return True for a function that compiles when called: of `jax.jit`, `equinox.filter_jit`, `nnx.jit`, `ex.jit`."""
    is_jitted_alike = hasattr(function, "trace") and not hasattr(function, "as_text")  # which what is compiled has
    return is_filtered(function) or (not isinstance(function, MethodType) and is_jitted_alike)


def _is_compiled(function: Any) -> bool:
    """Return True for a compiled program: an `Executable` or the result of `jax.jit(f).lower(…).compile()`."""
    return isinstance(function, jax.stages.Compiled) or (isinstance(function, Explored) and not _is_compiling(function))


def _kind(value: object) -> type[object]:
    return type(value)


def _hashable(function: Any) -> Any:
    # jax.jit hashes its function, and a callable model may have arrays to hash.
    # jax.jit hashes its function, and a callable model may have arrays to hash.
    is_plain = inspect.isroutine(function) or _kind(function) is partial
    return function if is_plain else partial(function)


def _type_of(value: Any) -> str:
    leaves = jax.tree.leaves(value)
    if len(leaves) != 1 or not hasattr(leaves[0], "dtype"):
        return f"{len(leaves)} arrays" if len(leaves) > 1 else _shown(value)
    struct = leaves[0] if isinstance(leaves[0], jax.Array) else jax.ShapeDtypeStruct(leaves[0].shape, leaves[0].dtype)
    return short_type(struct)


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, bool | int | float | str | None) else type(value).__name__
