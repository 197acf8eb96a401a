"""The rule that decides if a keyword of `explorer.time(f, x, seconds=3)` is the function's or an option of Explorer's.

explore, lint, time, profile, roofline, memory, compare, sweep and what_if take a function, its arguments exactly as in
a call, and options of their own:

- A keyword belongs to the function if it names a parameter (`inspect.signature`) that may be given by name and has no
  value yet, neither by position nor from `functools.partial`. Any other keyword that the verb knows is its option. The
  `**kwargs` of a function name no parameter: most are of wrappers, and `time(wrapper, x, seconds=1)` means the option.
- If a keyword could be both, the function gets it, because the arguments are "exactly as in a call". An
  `AmbiguousOptionWarning` says how to pass the option.
- `Call(f, x, seconds=3)` is a call on its own, as `functools.partial` is, and never ambiguous. Every verb takes one in
  place of a function with arguments: `explorer.time(Call(f, x, seconds=3), seconds=1)`.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Set
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar, cast

from explorer._jax.calls import suppress_recording
from explorer.errors import AmbiguousOptionWarning, ArgumentsError, OptionError
from explorer.model.results.session import remember

P = ParamSpec("P")
R = TypeVar("R")
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Call:
    """A function with the arguments of a call; its keywords are never options of Explorer's.

    Every function of Explorer's that takes a function and its arguments also takes a `Call` in their place.

    Args:
        function: Any callable, a `jax.jit` function, or an `Executable`.
        args, kwargs: As for a call.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> def decay(x, seconds):
        ...     return x * jnp.exp(-seconds)
        >>> explorer.time(explorer.Call(decay, jnp.ones(3), seconds=2.0), seconds=0.01).function
        'decay'
    """

    def __init__(self, function: Any, /, *args: Any, **kwargs: Any) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs

    @classmethod
    def of(cls, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        return function if isinstance(function, Call) else cls(function, *args, **kwargs)

    def __repr__(self) -> str:
        count = len(self.args) + len(self.kwargs)
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return f"Call({name}, {count} argument{'s' * (count != 1)})"


def takes_call(verb: Callable[P, R]) -> Callable[P, R]:
    """Decorate a public function whose first parameter is the user's function, followed by its `*args` and `**kwargs`.

    No watch records what the verb traces, compiles and runs. `explorer.session()` lists its result as long as it lives.
    The keyword-only parameters of `verb` are its options. If an argument has the name of an option, `verb` gets a
    `Call` in place of the function and its arguments, so it begins with `call = Call.of(function, args, kwargs)`.
    """
    parameters = inspect.signature(verb).parameters.values()
    options = {each.name: each.default for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY}
    call_verb: Callable[..., R] = verb  # the type checker can't follow the routing

    @wraps(verb)
    def routed(*args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = True
        routed_args, routed_kwargs = _route(verb.__name__, options, args, kwargs)
        with suppress_recording():
            return remember(call_verb(*routed_args, **routed_kwargs))

    return routed


def _route(
    verb: str, options: Mapping[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the verb's (args, kwargs), a `Call` holding the function's part if an option shares an argument's name."""
    if not args:
        return args, kwargs
    if isinstance(args[0], Call):
        _refuse_more(verb, len(args) - 1, kwargs.keys() - options.keys())
        return args, kwargs
    clashing = kwargs.keys() & options.keys()
    own = clashing & _open_parameters(args[0], args[1:]) if clashing else clashing
    if not own:
        return args, kwargs
    needed = [key for key in own if options[key] is inspect.Parameter.empty]
    name = min(needed or own)
    text = f"`{name}` goes to the function, which has a parameter of that name, and not to {verb} as an option"
    hint = f"explorer.{verb}(explorer.Call(f, x, {name}=…), {name}=…)"
    if needed:
        raise OptionError(f"{text}, but {verb} needs that option.\n  Hint: with both, {hint}.")
    warnings.warn(f"{text}. With the option, or without this warning: {hint}", AmbiguousOptionWarning, 3)
    mine = {key: kwargs[key] for key in clashing - own}
    theirs = {key: value for key, value in kwargs.items() if key not in mine}
    return (Call(args[0], *args[1:], **theirs),), mine


def _refuse_more(verb: str, count: int, names: Set[str]) -> None:
    __tracebackhide__ = True
    if count or names:
        more = ", ".join([*([f"{count} by position"] if count else []), *sorted(names)])
        raise ArgumentsError(
            f"{verb} got a Call, which has all arguments of its function, and further arguments: {more}.\n"
            f"  Hint: {verb}(Call(f, x, y=1)), with options of {verb} after it."
        )


def _open_parameters(subject: Any, args: tuple[Any, ...]) -> set[str]:
    """Return the names of the parameters that have no value yet and can be passed by keyword.

    For a mapping, return the names for all functions in it. Empty for a builtin or if `args` don't fit.
    """
    if isinstance(subject, Mapping):  # as in compare(): functions with arguments of their own ignore these
        functions = [each for each in cast("Mapping[Any, Any]", subject).values() if callable(each)]
        return {name for function in functions for name in _open_parameters(function, args)}
    try:
        signature = inspect.signature(subject)
    except (TypeError, ValueError):  # a builtin has no signature; the verb refuses what can't be called
        return set()
    try:
        filled = {*signature.bind_partial(*args).arguments, *_bound_by_name(subject)}
    except TypeError:  # too many by position: the verb raises
        return set()
    parameters = signature.parameters.values()
    return {parameter.name for parameter in parameters if parameter.kind in _BY_NAME} - filled


def _bound_by_name(function: Any) -> Iterator[str]:
    """Yield the names that `functools.partial` has bound, below decorators too."""
    while isinstance(function, partial) or hasattr(function, "__wrapped__"):
        if isinstance(function, partial):
            yield from function.keywords
            function = cast(Any, function.func)
        else:
            function = function.__wrapped__
