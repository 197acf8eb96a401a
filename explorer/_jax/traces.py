"""What JAX knows of a trace and doesn't tell: the whole Python stack of an equation, inner jaxprs, foreign values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from jax.core import Tracer

from explorer.model.graph import Frame

__all__ = ["foreign_tracers", "inner_jaxprs", "user_stack"]

try:
    # Public `source_info_util.summarize` gives one frame as text; the links need the whole stack with columns.
    from jax._src.source_info_util import user_frames as _user_frames  # pyright: ignore
except ImportError:  # pragma: no cover - degrades to no source links
    _user_frames = None


def user_stack(traceback: Any) -> tuple[Frame, ...]:
    """The user's frames of a jaxpr equation's traceback, innermost first; JAX's own are left out."""
    if _user_frames is None or traceback is None:
        return ()
    return tuple(
        Frame(f.file_name, f.function_name, f.start_line, f.start_column, f.end_line, f.end_column)
        for f in _user_frames(traceback)
    )


def foreign_tracers(traced: Any) -> list[Any]:
    """The traced values of other traces that a `jax.stages.Traced` uses; JAX makes arguments of them, in silence."""
    return [value for value in getattr(traced, "_consts", ()) if isinstance(value, Tracer)]


def inner_jaxprs(params: dict[str, Any]) -> list[tuple[str, Any]]:
    """The jaxprs inside an equation's parameters, as `(parameter, open jaxpr)`.

    Up to 0.10 a ClosedJaxpr wraps a Jaxpr in `.jaxpr`; from 0.11 there is one class whose `.jaxpr` is itself.
    """
    found: list[tuple[str, Any]] = []
    for key, value in params.items():
        several = isinstance(value, (tuple, list))
        items = cast(Sequence[Any], value) if several else (value,)
        for i, item in enumerate(items):
            inner = getattr(item, "jaxpr", item)
            if hasattr(inner, "eqns") and hasattr(inner, "invars"):
                found.append((f"{key}[{i}]" if several else key, inner))
    return found
