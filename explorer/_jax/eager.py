"""Hooks for operations that run outside of traces, and for array values that are read.

JAX's C++ calls one hook after each call of a compiled function that it knew already: primitives that run eagerly,
jnp's functions, the user's `jax.jit` functions. The ledger sees each first call, which compiles. The hook exists for
JAX's check for NaNs, which still runs below ours. Reads of values go through the class of arrays: Python, NumPy on an
accelerator, and printing use `_value`. NumPy on the CPU reads the buffer in C, which nothing can observe.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import Any, Protocol, cast

import jax.core

from explorer._jax.arguments import Array, static_arguments
from explorer._jax.calls import suppression

try:
    from jax._src import config as _config  # pyright: ignore
    from jax._src import source_info_util as _source_info_util  # pyright: ignore
    from jax._src import traceback_util as _traceback_util  # pyright: ignore
    from jax._src.api import _post_hook_state as _state  # pyright: ignore

    _hook_state: Any = cast(Any, _state)
    _unset: Any = vars(_config)["config_ext"].unset
    for _name in ("get_global", "set_global", "get_local", "set_local", "value"):
        getattr(_hook_state, _name)
    # Reading a value calls a function here. Its frame is hidden in tracebacks, as JAX's own are.
    _source_info_util.register_exclusion(__file__)
    _traceback_util.register_exclusion(__file__)
except (ImportError, AttributeError, KeyError):  # pragma: no cover - nothing is observed, and `is_seen` is False
    _hook_state = _unset = None

_Array: Any = Array
_LOOKS = ("_value", "item", "__array__", "block_until_ready")  # of the class, as far as it has them


class EagerListener(Protocol):
    """Listener on the thread where it happens. Exceptions of its methods go to `fault`.

    `ran` is the dispatch of a compiled function that was called with values, `observed` a wait for an array or its
    value.
    """

    def ran(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None: ...
    def observed(self, array: Any, how: str) -> None: ...
    def fault(self, error: Exception) -> None: ...


@dataclass(frozen=True, slots=True)
class Described:
    """A compiled function: the primitive with its parameters, or the name of a function; and its static arguments."""

    name: str
    is_primitive: bool
    parameters: dict[str, Any]
    static_positions: tuple[int, ...]
    static_names: tuple[str, ...]


def is_seen() -> bool:
    return _hook_state is not None


def identity_of(function: Any) -> Any:
    """Return an object shared by all calls of a compiled function; JAX may make a new function per call."""
    python = getattr(function, "_fun", None)
    return _cells(getattr(function, "_cache_miss", None)).get("jaxpr", function) if python is None else function


def described(function: Any) -> Described:
    """Return the name, parameters and static arguments of a compiled function, from what JAX keeps with it."""
    python = getattr(function, "_fun", None)
    static = static_arguments(function)
    if python is None:  # made for one call, from a jaxpr: within a derivative or a batch
        kept = _cells(getattr(function, "_cache_miss", None))
        return Described(str(kept.get("name", "jit")), False, {}, *static)
    name = str(getattr(function, "__name__", "jit"))
    if getattr(function, "_apply_primitive", False):
        parameters = _cells(python).get("params")
        by_name = cast("dict[str, Any]", parameters) if isinstance(parameters, dict) else {}
        return Described(name, True, by_name, (), ())
    return Described(name, False, {}, *static)


def _cells(function: Any) -> dict[str, Any]:
    names: tuple[str, ...] = getattr(getattr(function, "__code__", None), "co_freevars", ())
    return {
        name: cell.cell_contents for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=True)
    }


class _Hooks:
    """The hooks in JAX's place: set with the first listener, removed with the last."""

    def __init__(self) -> None:
        self._listeners: tuple[EagerListener, ...] = ()
        self._lock = RLock()
        self._hook: Callable[..., None] | None = None
        self._below: Callable[..., None] | None = None  # of all threads
        self._locals: dict[Any, Callable[..., None] | None] = {}  # of one thread, with what was there before
        self._looks: dict[str, Any] = {}

    def listen(self, listener: EagerListener) -> None:
        with self._lock:
            if _hook_state is None:
                return
            self._listeners = (*self._listeners, listener)
            if self._hook is None:
                self._below = _hook_state.get_global()
                self._hook = self._ran_before(self._below)
                _hook_state.set_global(self._hook)
                self._look()
            local = _hook_state.get_local()
            if local is not _unset and local not in self._locals:
                # After `with jax.debug_nans(True)` the thread's own hook, None, hides the global hook.
                hook = self._ran_before(local)
                self._locals[hook] = local
                _hook_state.set_local(hook)

    def unlisten(self, listener: EagerListener) -> None:
        with self._lock:
            self._listeners = tuple(one for one in self._listeners if one is not listener)
            if self._listeners or self._hook is None:
                return
            if _hook_state.get_global() is self._hook:  # else JAX's check for NaNs was turned on or off meanwhile
                _hook_state.set_global(self._below)
            if _hook_state.get_local() in self._locals:  # another thread's hook stays, and notifies no listener
                _hook_state.set_local(self._locals[_hook_state.get_local()])
            self._hook = None
            self._locals.clear()
            for name, (own, standing) in self._looks.items():
                # Only our own: another library may have wrapped the attribute since.
                if vars(_Array).get(name) is standing:
                    setattr(_Array, name, own)
            self._looks.clear()

    def is_active(self) -> bool:
        """Return True if JAX calls the hook on this thread. Toggling JAX's own check for NaNs replaces the hook."""
        return self._hook is not None and (_hook_state.value is self._hook or _hook_state.value in self._locals)

    def _ran_before(self, below: Callable[..., None] | None) -> Callable[..., None]:
        def hook(function: Any, args: Any, kwargs: Any, result: Any) -> None:
            if not suppression.is_on:
                for listener in self._listeners:
                    try:
                        # An exception here would reach the user's operation.
                        listener.ran(function, args, kwargs, result)
                    except Exception as error:
                        listener.fault(error)
            if below is not None:
                below(function, args, kwargs, result)

        return hook

    def _observed(self, array: Any, how: str) -> None:
        if not suppression.is_on:
            for listener in self._listeners:
                try:
                    listener.observed(array, how)
                except Exception as error:
                    listener.fault(error)

    def _look(self) -> None:
        for name in _LOOKS:
            # Only what the class defines itself: an inherited attribute couldn't be restored by assignment.
            own = cast("dict[str, Any]", vars(_Array)).get(name)
            if own is not None:
                standing: Any = self._property(own) if isinstance(own, property) else self._method(name, own)
                self._looks[name] = own, standing
                setattr(_Array, name, standing)

    def _property(self, own: property) -> property:
        get: Any = own.fget

        def value(array: Any) -> Any:
            self._observed(array, "value")
            return get(array)

        return property(value, own.fset, own.fdel, own.__doc__)

    def _method(self, name: str, own: Any) -> Callable[..., Any]:
        def method(array: Any, *args: Any, **kwargs: Any) -> Any:
            self._observed(array, name)
            return own(array, *args, **kwargs)

        method.__name__, method.__qualname__, method.__doc__ = name, f"Array.{name}", getattr(own, "__doc__", None)
        return method


# One per process, also if this file is loaded again while a listener is set.
eager_hooks: _Hooks = globals().get("eager_hooks") or _Hooks()


def is_traced(value: Any) -> bool:
    return isinstance(value, jax.core.Tracer)
