"""A function with some of its arguments bound as constants."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def bind_constants(
    function: Callable[..., Any],
    signature: inspect.Signature,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    names: Collection[str],
) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """Bind the arguments of these names; return everything unchanged if that is not possible.

    `functools.partial` binds them by name. Unlike a wrapper of ours it leaves no frame among the user's lines that JAX
    records. Therefore the arguments behind a bound one must be passed by name too.

    Returns:
        The function with its constants, and the remaining arguments by position and by name.

    Example:
        >>> def scale(x, n, y):
        ...     return x * n + y
        >>> function, args, kwargs = bind_constants(scale, inspect.signature(scale), (2, 3, 4), {}, ["n"])
        >>> args, kwargs, function(*args, **kwargs)
        ((2,), {'y': 4}, 10)
    """
    parameters = signature.parameters
    positional = [name for name, parameter in parameters.items() if parameter.kind in _BY_POSITION][: len(args)]
    cut = next((i for i, name in enumerate(positional) if name in names), len(args))
    behind = positional[cut:]
    has_unnamed = len(args) > len(positional) or any(parameters[name].kind not in _BY_NAME for name in behind)
    if not names or (cut < len(args) and has_unnamed):
        return function, args, kwargs
    every = dict(zip(behind, args[cut:], strict=False)) | kwargs
    constant = {name: value for name, value in every.items() if name in names}
    rest = {name: value for name, value in every.items() if name not in names}
    return partial(function, **constant), args[:cut], rest
