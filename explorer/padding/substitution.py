"""The sizes of a bucket put into an equation's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from explorer.padding.sizes import Sizes, is_symbolic


def at_bucket(params: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
    """Parameters with numbers for sizes; jaxprs stay as they are, for those are walked."""
    return {key: _at_bucket(value, sizes) for key, value in params.items()}


def _at_bucket(value: Any, sizes: Sizes) -> Any:
    if is_symbolic(value):
        return sizes.bucket(value)
    if isinstance(value, (tuple, list)):
        held = cast(tuple[Any, ...], value)
        items = [_at_bucket(item, sizes) for item in held]
        return getattr(type(held), "_make", type(held))(items)  # a named tuple's own
    return value


def mentions_symbols(value: Any) -> bool:
    """Whether a type, a parameter or a jaxpr has a size that isn't a number, however deep."""
    if is_symbolic(value):
        return True
    if isinstance(value, Mapping):
        return any(map(mentions_symbols, cast(Mapping[str, Any], value).values()))
    if isinstance(value, (tuple, list)):
        return any(map(mentions_symbols, cast(tuple[Any, ...], value)))
    inner: Any = getattr(value, "jaxpr", value)
    if hasattr(inner, "eqns") and hasattr(inner, "invars"):
        return _jaxpr_mentions(inner)
    shape: Any = getattr(value, "shape", None)
    return isinstance(shape, tuple) and any(map(is_symbolic, cast(tuple[Any, ...], shape)))


def _jaxpr_mentions(jaxpr: Any) -> bool:
    variables = (*jaxpr.invars, *jaxpr.outvars)
    return any(mentions_symbols(variable.aval) for variable in variables) or any(map(_mentions, jaxpr.eqns))


def _mentions(equation: Any) -> bool:
    variables = (*equation.invars, *equation.outvars)
    return any(mentions_symbols(variable.aval) for variable in variables) or mentions_symbols(equation.params)
