"""The only file that touches non-public or version-dependent JAX. Each use says why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from explorer.model.graph import Frame

__all__ = ["inner_jaxprs", "user_stack"]

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
