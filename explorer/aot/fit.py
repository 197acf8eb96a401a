"""Whether a value is what an input was compiled for; if not, what exactly is wrong, and where the user called."""

from __future__ import annotations

import inspect
from typing import Any

from explorer.aot.inputs import InputInfo
from explorer.capture.sources import place
from explorer.errors import InputDtypeError, InputRankError, InputShapeError, NotAnArrayError

__all__ = ["called_at", "check"]


def check(name: str, info: InputInfo, value: Any) -> None:
    """Refuse a value that is not what was compiled for.

    Raises:
        NotAnArrayError, InputRankError, InputShapeError, InputDtypeError: By what is wrong with it.
    """
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    told = f"  compiled for {info.dtype}{list(info.shape)}\n{called_at()}  Hint: "
    if shape is None or dtype is None:
        raise NotAnArrayError(
            f"input `{name}` is no array but {type(value).__name__}.\n{told}jnp.asarray(value, {str(info.dtype)!r})."
        )
    if len(shape) != len(info.shape):
        raise InputRankError(
            f"input `{name}` has rank {len(shape)}, shape {tuple(shape)}, not rank {len(info.shape)}.\n"
            f"{told}reshape it, or compile for this rank."
        )
    for axis, (got, wanted) in enumerate(zip(shape, info.shape, strict=True)):
        if got != wanted:
            raise InputShapeError(
                f"input `{name}` has shape {tuple(shape)}; dimension {axis} is {got}, not {wanted}.\n"
                f"{told}compile for this shape too."
            )
    if dtype != info.dtype:
        raise InputDtypeError(
            f"input `{name}` has dtype {dtype}, not {info.dtype}.\n"
            f"{told}convert it, {name}.astype({str(info.dtype)!r}), or compile for {dtype}."
        )


def called_at() -> str:
    """The line of an error that says where the user called: the innermost frame outside this room."""
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("explorer.aot."):
        frame = frame.f_back
    return f"  called at  {place(frame.f_code.co_filename, frame.f_lineno)}\n" if frame is not None else ""
