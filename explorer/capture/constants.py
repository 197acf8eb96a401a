"""The arrays that a trace baked in, under the names the user's Python has for them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, cast

import jax

from explorer.model.capture import Constant

__all__ = ["name_constants"]


def name_constants(jaxpr: Any, function: Callable[..., Any]) -> tuple[Constant, ...]:
    """The constants of a closed jaxpr, largest first.

    One that the function reaches by a global, a closure cell or an attribute of its object carries that path
    (`weights`, `self.w['a']`); the others are `constant 0`, `constant 1`, ….
    """
    named = {id(value): name for name, value in _reachable(function)} if jaxpr.consts else {}
    found = [
        Constant(
            named.get(id(value), f"constant {i}"),
            jax.typeof(value).str_short(short_dtypes=True),
            int(getattr(value, "nbytes", 0)),
        )
        for i, value in enumerate(jaxpr.consts)
    ]
    return tuple(sorted(found, key=lambda constant: -constant.bytes))


def _reachable(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Array leaves that the function's code can name, with the name."""
    roots: dict[str, Any] = {}
    code_holder: Any = getattr(function, "__func__", function)
    if inspect.isfunction(code_holder):
        cells = inspect.getclosurevars(code_holder)
        roots |= {**cells.globals, **cells.nonlocals}
    owner = getattr(function, "__self__", None if inspect.isfunction(function) else function)
    roots |= {f"self.{name}": value for name, value in getattr(owner, "__dict__", {}).items()}
    for root, value in roots.items():
        leaves = cast(list[tuple[Any, Any]], jax.tree_util.tree_flatten_with_path(value)[0])
        for path, leaf in leaves:
            yield root + jax.tree_util.keystr(path), leaf
