"""Whose is the keyword of `explorer.time(f, x, seconds=3)`: the function's, or Explorer's?

explore, lint, time, profile, roofline, memory, compare, sweep and what_if take a function, then its arguments exactly
as in a call, and beside them options of their own. One rule for all of them:

- A keyword belongs to the function if it is the name of a parameter of it (`inspect.signature`) that may be given by
  name and has no value yet, neither by position nor from `functools.partial`. Anything else that the verb knows is its
  option. A function that takes `**kwargs` names no parameter, so the option stays one: behind most `**kwargs` there is
  a wrapper that knows nothing of such a name, and `time(wrapper, x, seconds=1)` means the time to spend.
- Where a keyword could be both, the function gets it, for the arguments are "exactly as in a call", and an
  `AmbiguousOptionWarning` says how to pass the option.
- `Call(f, x, seconds=3)` is a call on its own, as `functools.partial` is, and never ambiguous: every verb takes one in
  place of a function with arguments, `explorer.time(Call(f, x, seconds=3), seconds=1)`, and every keyword beside it is
  an option. It is also how a function with `**kwargs` gets one that has an option's name.

What was weighed against it: options under other names (`timeit`'s `number=`) only make the clash rarer; a prefix, or
one `options=`, would make every simple call longer for the sake of a few; and the option first, as it was, fails where
the user has written nothing but a call.
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
    """A function with the arguments of a call, none of which is taken for an option of Explorer's.

    Every function of Explorer's that takes a function and its arguments takes a `Call` in place of both.

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
        """The function with its arguments; `function` itself where it is a call already."""
        return function if isinstance(function, Call) else cls(function, *args, **kwargs)

    def __repr__(self) -> str:
        count = len(self.args) + len(self.kwargs)
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return f"Call({name}, {count} argument{'s' * (count != 1)})"


def takes_call(verb: Callable[P, R]) -> Callable[P, R]:
    """Decorate a public function whose first parameter is the user's function, followed by its `*args` and `**kwargs`.

    What the verb traces, compiles and runs it does for itself: no watch records it. What it returns is listed by
    `explorer.session()` for as long as the user holds it.

    The keyword-only parameters of `verb` are its options. Where an argument has the name of one of them, `verb` is
    called with a `Call` in place of the function and its arguments, so it begins with
    `call = Call.of(function, args, kwargs)`.

    Raises:
        ArgumentsError: There are arguments beside a `Call`.
        OptionError: A keyword that is the function's own leaves the verb without an option that it needs.
    """
    parameters = inspect.signature(verb).parameters.values()
    options = {each.name: each.default for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY}
    call_verb: Callable[..., R] = verb  # whose parameters are sorted here and not by the type checker

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
    """The arguments as the verb takes them: a `Call` in front where a name is an option's and an argument's."""
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
    text, hint = _clash_text(verb, min(needed or own))
    if needed:
        raise OptionError(f"{text}, which it can't do without.\n  Hint: with both, {hint}.")
    warnings.warn(f"{text}. With the option, or without this warning: {hint}", AmbiguousOptionWarning, 3)
    mine = {key: kwargs[key] for key in clashing - own}
    theirs = {key: value for key, value in kwargs.items() if key not in mine}
    return (Call(args[0], *args[1:], **theirs),), mine


def _clash_text(verb: str, name: str) -> tuple[str, str]:
    text = f"`{name}` is given to the function, which has a parameter of that name, and is no option of {verb}"
    return text, f"explorer.{verb}(explorer.Call(f, x, {name}=…), {name}=…)"


def _refuse_more(verb: str, count: int, names: Set[str]) -> None:
    __tracebackhide__ = True
    if count or names:
        more = ", ".join([*([f"{count} by position"] if count else []), *sorted(names)])
        raise ArgumentsError(
            f"{verb} got a Call, which has all arguments of its function, and more of them: {more}.\n"
            f"  Hint: {verb}(Call(f, x, y=1)), with options of {verb} behind it."
        )


def _open_parameters(subject: Any, args: tuple[Any, ...]) -> set[str]:
    """The parameters that may be given by name and have no value yet; of several functions by name, of all of them."""
    if isinstance(subject, Mapping):  # as compare() takes: those with arguments of their own take none of these
        functions = [each for each in cast("Mapping[Any, Any]", subject).values() if callable(each)]
        return {name for function in functions for name in _open_parameters(function, args)}
    try:
        signature = inspect.signature(subject)
    except (TypeError, ValueError):  # a builtin has none, and what can't be called is refused by the verb
        return set()
    try:
        filled = {*signature.bind_partial(*args).arguments, *_bound_by_name(subject)}
    except TypeError:  # too many by position: the verb says so
        return set()
    parameters = signature.parameters.values()
    return {parameter.name for parameter in parameters if parameter.kind in _BY_NAME} - filled


def _bound_by_name(function: Any) -> Iterator[str]:
    """The names that `functools.partial` has bound, below decorators too."""
    while isinstance(function, partial) or hasattr(function, "__wrapped__"):
        if isinstance(function, partial):
            yield from function.keywords
            function = cast(Any, function.func)
        else:
            function = function.__wrapped__
