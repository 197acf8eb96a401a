"""What JAX knows of a trace and doesn't tell: the whole Python stack of an equation, inner jaxprs, foreign values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import jax
from jax.core import Tracer

from explorer.model.graph import Frame

try:
    # Public `source_info_util.summarize` gives one frame as text; the links need the whole stack with columns.
    from jax._src.source_info_util import is_user_filename as _is_users  # pyright: ignore
    from jax._src.source_info_util import raw_frame_to_frame as _read_frame  # pyright: ignore
except ImportError:  # pragma: no cover - degrades to no source links
    _is_users = _read_frame = None

try:
    # `jax.core.get_opaque_trace_state` compares two moments; whether this one is in a trace at all, only this says.
    from jax._src.core import trace_state_clean as is_top_level  # pyright: ignore
except ImportError:  # pragma: no cover - it is asked the long way each time

    def is_top_level() -> bool:
        return False


# Reading a frame takes a microsecond, and a program has the same few thousand in all its equations. By the identity of
# the code, which is kept alive beside: to hash a code object would take as long.
_frames: dict[tuple[int, int], tuple[Any, Frame | None]] = {}
_MOST_FRAMES = 100_000


def user_stack(traceback: Any) -> tuple[Frame, ...]:
    """The user's frames of a jaxpr equation's traceback, innermost first; JAX's own are left out."""
    if _is_users is None or traceback is None:
        return ()
    if len(_frames) > _MOST_FRAMES:
        _frames.clear()
    codes, offsets = traceback.raw_frames()
    stack: list[Frame] = []
    for code, offset in zip(codes, offsets, strict=True):
        entry = _frames.get((id(code), offset))
        if entry is None:
            entry = _frames[id(code), offset] = code, _frame(code, offset)
        if entry[1] is not None:
            stack.append(entry[1])
    return tuple(stack)


def called_through(traceback: Any, *names: str) -> bool:
    """True if a jaxpr equation was made below a function of JAX's of one of these names: `jacfun` of `jax.jacfwd`."""
    if _is_users is None or traceback is None:
        return False
    codes, _ = traceback.raw_frames()
    return any(code.co_name in names and not _is_users(code.co_filename) for code in codes)


def _frame(code: Any, offset: int) -> Frame | None:
    if _is_users is None or _read_frame is None or not _is_users(code.co_filename):
        return None
    f = _read_frame(code, offset)
    return Frame(f.file_name, f.function_name, f.start_line, f.start_column, f.end_line, f.end_column)


def is_in_jaxpr_trace() -> bool:
    """Whether what runs now becomes part of a jaxpr, where all that is no tracer is baked in.

    So it is within jit, scan and checkpoint, but not within an eager grad or vmap.
    """
    return not is_top_level() and isinstance(jax.lax.full((), 0), Tracer)


def foreign_tracers(traced: Any) -> list[Any]:
    """The traced values of other traces that a `jax.stages.Traced` uses; JAX makes arguments of them, in silence."""
    return [value for value in getattr(traced, "_consts", ()) if isinstance(value, Tracer)]


def calls_compiled(jaxpr: Any) -> dict[str, list[Any]]:
    """The compiled functions that a traced one calls itself, without JAX's own: by name the jaxpr of each call.

    A call says in its debug info where its function is: `f at /path/to.py:12`.
    """
    calls: dict[str, list[Any]] = {}
    for equation in jaxpr.eqns:
        if equation.primitive.name not in ("jit", "pjit"):  # from one version to another
            continue
        for _, inner in inner_jaxprs(equation.params):
            info: Any = getattr(inner, "debug_info", None)
            if is_of_users(info):
                calls.setdefault(info.func_src_info.partition(" at ")[0], []).append(inner)
    return calls


def is_of_users(debug_info: Any) -> bool:
    """Whether what has this debug info is a function of the user's, and not JAX's own."""
    _, _, place = str(getattr(debug_info, "func_src_info", None) or "").partition(" at ")
    return bool(place) and _is_users is not None and _is_users(place.rpartition(":")[0])


def inner_jaxprs(params: dict[str, Any]) -> list[tuple[str, Any]]:
    """The jaxprs inside an equation's parameters, as `(parameter, open jaxpr)`.

    Up to 0.10 a ClosedJaxpr wraps a Jaxpr in `.jaxpr`; from 0.11 there is one class whose `.jaxpr` is itself.
    """
    inner_ones: list[tuple[str, Any]] = []
    for key, value in params.items():
        several = isinstance(value, (tuple, list))
        items = cast(Sequence[Any], value) if several else (value,)
        for i, item in enumerate(items):
            inner = getattr(item, "jaxpr", item)
            if hasattr(inner, "eqns") and hasattr(inner, "invars"):
                inner_ones.append((f"{key}[{i}]" if several else key, inner))
    return inner_ones


def scan_inputs(params: dict[str, Any]) -> tuple[int, int]:
    """How many of a scan's inputs are the same in each turn, and how many are carried to the next; then come slices.

    From 0.12 its parameters have trees instead of counts.
    """
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    try:
        same, carried, _ = map(len, params["ft_in"].unpack())
    except (KeyError, AttributeError, TypeError, ValueError):  # pragma: no cover - what comes out of a loop isn't known
        return 0, 0
    return same, carried


def bind_equation(equation: Any, operands: Sequence[Any]) -> list[Any]:
    """The results of one equation of a jaxpr, of traced values or not; public is only to run a whole jaxpr."""
    results = equation.primitive.bind(*operands, **equation.primitive.get_bind_params(equation.params))
    return list(results) if equation.primitive.multiple_results else [results]
