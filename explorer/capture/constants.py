"""The arrays that a trace baked in, under the names that the user's Python has for them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, cast

import jax

from explorer._jax import foreign_tracers
from explorer.model.stage import Constant

_MAX_DEPTH = 8  # attributes of attributes


def name_constants(
    jaxpr: Any, function: Callable[..., Any], given: Mapping[str, Any] | None = None
) -> tuple[Constant, ...]:
    """Return the constants of a closed jaxpr, largest first.

    The name is the path by which the function reaches the constant: a global, a closure cell, an attribute of its
    object or an argument (`weights`, `self.proj.w['a']`); else `constant 0`, `constant 1`, ….
    """
    named: dict[int, str] = {}
    for name, value in _reachable(function, given or {}) if jaxpr.consts else ():
        named.setdefault(id(value), name)
    constants = [
        Constant(
            named.get(id(value), f"constant {i}"),
            jax.typeof(value).str_short(short_dtypes=True),
            int(getattr(value, "nbytes", 0)),
        )
        for i, value in enumerate(jaxpr.consts)
    ]
    return tuple(sorted(constants, key=lambda constant: -constant.bytes))


class LeakedTracer(jax.errors.UnexpectedTracerError):
    """Error for a constant that is a tracer of another trace. JAX itself raises only when the program is called."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        super().__init__(f"a value of another trace is used: {', '.join(names)}")


def refuse_leaks(traced: Any, function: Callable[..., Any], given: Mapping[str, Any] | None = None) -> None:
    """Raise LeakedTracer if a function uses a tracer of another trace as an array."""
    leaked = foreign_tracers(traced)
    if leaked:
        named = {id(value): name for name, value in _reachable(function, given or {})}
        raise LeakedTracer([named.get(id(value), "a value") for value in leaked])


def _reachable(function: Callable[..., Any], given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield names and array leaves that the function's code can name."""
    roots: dict[str, Any] = dict(given)
    code_holder: Any = getattr(function, "__func__", function)
    if inspect.isfunction(code_holder):
        cells = inspect.getclosurevars(code_holder)
        roots |= {**cells.globals, **cells.nonlocals}
    owner = getattr(function, "__self__", None if inspect.isfunction(function) else function)
    roots |= {f"self.{name}": value for name, value in getattr(owner, "__dict__", {}).items()}
    seen: set[int] = set()
    for root, value in roots.items():
        yield from _inside(root, value, _MAX_DEPTH, seen)


def _inside(root: str, value: Any, depth: int, seen: set[int]) -> Iterator[tuple[str, Any]]:
    leaves = cast(list[tuple[Any, Any]], jax.tree_util.tree_flatten_with_path(value)[0])
    for path, leaf in leaves:
        name = root + jax.tree_util.keystr(path)
        attributes: dict[str, Any] = getattr(leaf, "__dict__", {})
        is_plain = isinstance(leaf, (type, ModuleType)) or (callable(leaf) and not attributes)
        if hasattr(leaf, "dtype") or is_plain or not depth:
            yield name, leaf
        elif id(leaf) not in seen:
            seen.add(id(leaf))
            for attribute, inner in list(attributes.items()):
                yield from _inside(f"{name}.{attribute}", inner, depth - 1, seen)
