"""What a capture was made of, for as long as the capture is there: to compile the same with something changed.

Of the arguments only the types are kept. A function that could hold arrays, a method or a closure, is kept by the user
alone; a plain one is kept here too, as it may have been written into the call.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from explorer.errors import NotRecordedError
from explorer.model.capture import Capture


@dataclass(frozen=True)
class Origin:
    """A function, and what stands for its arguments."""

    function: Callable[[], Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


_origins: weakref.WeakKeyDictionary[Capture, Origin] = weakref.WeakKeyDictionary()


def keep_origin(capture: Capture, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Know from now on what a capture was made of; `args` and `kwargs` have shapes in place of arrays."""
    _origins[capture] = Origin(_reference(function), args, kwargs)


def origin_of(capture: Capture) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The function of a capture, and what stands for its arguments.

    Raises:
        NotRecordedError: It was opened from a file or made by another program; or the function is gone.
    """
    origin = _origins.get(capture)
    if origin is None:
        raise NotRecordedError(
            f"what {capture.function} was compiled from isn't known in this session.\n"
            "  Hint: explore the function here; of a module from elsewhere there is only its text."
        )
    function = origin.function()
    if function is None:
        raise NotRecordedError(
            f"{capture.function} is gone: nothing holds the function any more.\n  Hint: keep it under a name."
        )
    return function, origin.args, origin.kwargs


def has_origin(capture: Capture) -> bool:
    """Whether the same could be compiled with something changed."""
    origin = _origins.get(capture)
    return origin is not None and origin.function() is not None


def _reference(function: Any) -> Callable[[], Any]:
    inner = getattr(function, "__wrapped__", function)
    if isinstance(inner, FunctionType) and not inner.__closure__:
        return lambda: function
    try:
        return weakref.ref(function)
    except TypeError:
        return lambda: None
