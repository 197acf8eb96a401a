"""A function with some of its arguments held: constants of what is compiled of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

__all__ = ["held"]

_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def held(
    function: Callable[..., Any],
    signature: inspect.Signature,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    names: Collection[str],
) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """The function with the arguments of these names in it, and the others; all as it was where that can't be.

    What comes behind a held argument is given by name, for `functools.partial` holds them by name: unlike a function of
    ours it leaves no frame in what JAX records of the user's lines.

    Example:
        >>> def scale(x, n, y):
        ...     return x * n + y
        >>> function, args, kwargs = held(scale, inspect.signature(scale), (2, 3, 4), {}, ["n"])
        >>> args, kwargs, function(*args, **kwargs)
        ((2,), {'y': 4}, 10)
    """
    parameters = signature.parameters
    positional = [name for name, one in parameters.items() if one.kind in _BY_POSITION][: len(args)]
    cut = next((i for i, name in enumerate(positional) if name in names), len(args))
    behind = positional[cut:]
    has_unnamed = len(args) > len(positional) or any(parameters[name].kind not in _BY_NAME for name in behind)
    if not names or (cut < len(args) and has_unnamed):
        return function, args, kwargs
    every = dict(zip(behind, args[cut:], strict=False)) | kwargs
    constant = {name: value for name, value in every.items() if name in names}
    rest = {name: value for name, value in every.items() if name not in names}
    return partial(function, **constant), args[:cut], rest
