"""What public functions returned in this session, each for as long as somebody else holds it.

`ex.session()` lists it. Nothing is kept alive by that: a value that the user drops is gone from here with it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from itertools import count
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_numbers = count(1)
_values: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def remember(value: T) -> T:
    """Have a value listed from now on; what can't be held weakly is not."""
    with suppress(TypeError):
        _values[next(_numbers)] = value
    return value


def remembered(function: Callable[P, T]) -> Callable[P, T]:
    """The function, whose results are listed."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        __tracebackhide__ = True
        return remember(function(*args, **kwargs))

    return call


def remembered_values() -> list[tuple[int, Any]]:
    """What is still there, each with its number, the earliest first."""
    return sorted(_values.items(), key=lambda item: item[0])
