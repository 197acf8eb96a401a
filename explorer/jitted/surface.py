"""What code around `jax.jit` asks of its result beside a call: names, `lower`, `eval_shape`, errors of JAX's kinds."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, cast

from explorer.capture.sources import called_at
from explorer.errors import NotCallableError, TracedValueError


def name_of_function(function: Any) -> str:
    """What the compiler, messages and records call a function: of a partial the name below, of an object its class."""
    name: str | None = getattr(function, "__name__", None)
    if name is None and isinstance(function, partial):
        return name_of_function(cast("partial[Any]", function).func)
    return type(function).__name__ if name is None else name


def check_function(function: Any) -> None:
    """Refuse what `jax.jit` would refuse, or would trace into nothing.

    Raises:
        NotCallableError: It can't be called, or its call runs nothing of it.
    """
    if isinstance(function, (staticmethod, classmethod)):
        kind = "staticmethod" if isinstance(function, staticmethod) else "classmethod"
        what, hint = f"a {kind}", f"write @{kind} above @jit"
    elif not callable(function):
        what, hint = type(function).__name__, "write jit(f)(x), not jit(f(x))"
    elif inspect.isgeneratorfunction(function):
        what, hint = f"the generator function {function.__name__}", "return the values, stacked or in a tuple"
    else:
        return
    raise NotCallableError(f"jit takes a function; it got {what}.\n{called_at()}  Hint: {hint}.")


def _qualified_name(function: Any) -> str:
    name: str | None = getattr(function, "__qualname__", None)
    if name is None and isinstance(function, partial):
        return _qualified_name(cast("partial[Any]", function).func)
    return name_of_function(function) if name is None else name


def copy_names(function: Any, wrapper: Any) -> None:
    """Give a wrapper the names, the documentation and the annotations of its function, as `jax.jit` does."""
    functools.update_wrapper(wrapper, function, updated=())
    wrapper.__name__ = name_of_function(function)
    wrapper.__qualname__ = _qualified_name(function)
    wrapper.__annotations__ = getattr(function, "__annotations__", {})


class JaxSurface:
    """The parts of a `jax.jit` function that are no call."""

    _program: Any
    __wrapped__: Callable[..., Any]

    def __getattr__(self, name: str) -> Any:
        # Attributes that the function was given (`step.version = 2`) are read where they are, and not copied: a module
        # as the function would be kept in two worlds.
        wrapped = self.__dict__.get("__wrapped__")
        try:
            return vars(wrapped)[name]
        except (TypeError, KeyError):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}") from None

    def lower(self, /, *args: Any, **kwargs: Any) -> Any:
        """As of a `jax.jit` function: a `jax.stages.Lowered`, whose `compile()` gives what can be called.

        With captured state, what `compile()` gives reads and writes that state at each call.
        """
        lowered = self._program.trace(*args, **kwargs).lower()
        return StatefulLowered(self._program, lowered) if self._program.has_state else lowered

    def eval_shape(self, /, *args: Any, **kwargs: Any) -> Any:
        """The shapes and dtypes of what a call would return; it runs on no device, and the state stays as it is."""
        out = self._program.trace(*args, **kwargs).out_info
        return out[0] if self._program.has_state else out

    def clear_cache(self) -> None:
        """Let go of all that was compiled, as a `jax.jit` function's `clear_cache` does."""
        self._program.clear()

    def _cache_size(self) -> int:
        """How many kinds of calls the dispatcher has an answer to: what those who count compiles ask `jax.jit`."""
        return self._program.dispatch._cache_size()


class StatefulLowered:
    """A `jax.stages.Lowered` of a function with captured state; whatever else is asked of it, that answers."""

    def __init__(self, program: Any, lowered: Any) -> None:
        self._program, self._lowered = program, lowered

    def compile(self, *args: Any, **kwargs: Any) -> StatefulCompiled:
        """As of a `jax.stages.Lowered`; the state is no argument of what it gives."""
        return StatefulCompiled(self._program, self._lowered.compile(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._lowered, name)


class StatefulCompiled:
    """A `jax.stages.Compiled` of a function with captured state: a call reads the state, runs, and writes it."""

    def __init__(self, program: Any, compiled: Any) -> None:
        self._compiled = compiled
        # A program whose variants are this one: it reads and writes as the other does, with the same locks and checks.
        self._program = copy.copy(program)
        self._program.jitted = self._program.dispatch = compiled

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._program.call(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._compiled, name)


@lru_cache(maxsize=64)
def also_jax_error(kind: type[TracedValueError], error: type[Exception]) -> type[TracedValueError]:
    """A class of errors that is Explorer's, and also the one that `jax.jit` would have raised.

    So `except jax.errors.TracerBoolConversionError` around a call still catches it.
    """

    def init(self: Any, message: str, capture: Any) -> None:
        Exception.__init__(self, message)  # JAX's own would take a tracer, and word the message itself
        self.capture = capture

    own = {"__module__": kind.__module__, "__doc__": kind.__doc__, "__init__": init}
    return cast("type[TracedValueError]", type(kind.__name__, (kind, error), own))
