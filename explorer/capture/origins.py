"""Origins of captures: function, types of arguments, constants of the trace; and the time of a call.

Of the arguments only the types are kept. A method or a closure could hold arrays, and is referenced weakly; a plain
function is kept, because it may have been written into the call. Every view of a program (a function with types of
arguments) shows one time of its call: the last measured one.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FunctionType, MethodType, ModuleType
from typing import Any, cast

import jax
import numpy as np

from explorer._jax.traces import foreign_tracers
from explorer.capture.filtered import flatten
from explorer.errors import NotRecordedError
from explorer.model.capture import Capture
from explorer.model.results.hot_paths import HotRow
from explorer.model.results.timing import EARLIER, Samples
from explorer.model.stage import Constant

# The function's reference, and the descriptions of its arguments.
_origins: weakref.WeakKeyDictionary[Capture, tuple[Callable[[], Any], tuple[Any, ...], dict[str, Any]]]
_origins = weakref.WeakKeyDictionary()
# By id(), each with a weak reference to test that the id is still that object's.
_times: dict[int, tuple[weakref.ref[Any], dict[Hashable, Samples | None]]] = {}


def keep_origin(capture: Capture, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Keep the function of a capture, and the types of its arguments."""
    leaves, rebuild = flatten((args, kwargs))
    _origins[capture] = (_reference(function), *rebuild([_described(leaf) for leaf in leaves]))
    if not is_explored(function, args, kwargs):
        _keep_time(function, args, kwargs, None)


def origin_of(capture: Capture) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return a capture's function, and the descriptions of its arguments; raise NotRecordedError if unknown or gone."""
    origin = _origins.get(capture)
    if origin is None:
        raise NotRecordedError(
            f"the source of {capture.function} isn't known in this session.\n"
            "  Hint: explore the function here; a program that was opened from a file or a text has no Python function."
        )
    reference, args, kwargs = origin
    function = reference()
    if function is None:
        raise NotRecordedError(
            f"{capture.function} is gone: no variable refers to it any more.\n  Hint: keep it under a name."
        )
    return function, args, kwargs


def has_origin(capture: Capture) -> bool:
    """Return True if a capture's function is still alive, so that it can be compiled again with changes."""
    origin = _origins.get(capture)
    return origin is not None and origin[0]() is not None


def steady_of(capture: Capture) -> Samples | None:
    """Return the time of a call of the capture's program; None if it wasn't measured in this session."""
    return call_time(*origin_of(capture)) if has_origin(capture) else None


def call_time(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Samples | None:
    """Return the time of a call of a program; None if it wasn't measured in this session."""
    with suppress(TypeError):  # an argument without a hash
        return _times_of(function).get(_program(function, args, kwargs))
    return None


def is_explored(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return True if the program was explored, so that a call compiles nothing."""
    with suppress(TypeError):
        return _program(function, args, kwargs) in _times_of(function)
    return False


def agree_on_time(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], now: Samples, *, is_latest: bool = False
) -> tuple[Samples, str]:
    """Compare a measurement of a program's call with the earlier one; return the time to show from now on, and a note.

    Of two that agree it is the earlier one (the new one if `is_latest`), else the new one. The note is "" unless they
    differ.
    """
    earlier = call_time(function, args, kwargs)
    is_alike = earlier is not None and (earlier.low <= now.high and now.low <= earlier.high)
    if earlier is not None and is_alike and not is_latest:
        return earlier, ""
    _keep_time(function, args, kwargs, now)
    return now, "" if earlier is None or is_alike else f"{EARLIER}{earlier}; now: {now}"


def _keep_time(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], time: Samples | None) -> None:
    at = id(owner := _owner(function))
    with suppress(TypeError):  # what has no weak references, or an argument without a hash
        if not _times_of(function):
            _times[at] = weakref.ref(owner, lambda gone: _forget(at, gone)), {}
        _times[at][1][_program(function, args, kwargs)] = time


def _times_of(function: Any) -> dict[Hashable, Samples | None]:
    entry = _times.get(id(_owner(function)))
    return entry[1] if entry is not None and entry[0]() is _owner(function) else {}


def _forget(at: int, gone: weakref.ref[Any]) -> None:
    # A new object may have the dead one's id by now.
    if at in _times and _times[at][0] is gone:
        del _times[at]


def _owner(function: Any) -> Any:
    """Return an object that lives as long as the function: of a method, which Python makes per access, its object."""
    return function.__self__ if isinstance(function, MethodType) else function


def _program(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Hashable:
    """Return a key of a call's program: its method, JAX's matmul precision, types of arrays, and other arguments."""
    config: Any = jax.config
    leaves = tuple(_type_of(leaf) for leaf in jax.tree.leaves((args, kwargs)))
    return getattr(function, "__func__", None), config.jax_default_matmul_precision, leaves


def _type_of(leaf: Any) -> Hashable:
    if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
        return cast(type[object], type(leaf)), leaf
    sharding = getattr(leaf, "sharding", None)
    is_spread = sharding is not None and sharding.num_devices > 1  # an abstract mesh has no set of devices
    is_numpy = isinstance(leaf, np.ndarray | np.generic)
    dtype = jax.dtypes.canonicalize_dtype(leaf.dtype) if is_numpy else leaf.dtype
    return tuple(leaf.shape), str(dtype), sharding if is_spread else None


def _described(leaf: Any) -> Any:
    if isinstance(leaf, jax.Array):
        sharding = leaf.sharding if leaf.committed else None
        is_weak = getattr(leaf, "weak_type", False)  # which random keys don't have
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding, weak_type=is_weak)
    if isinstance(leaf, np.ndarray):
        array = cast("np.ndarray[tuple[int, ...], np.dtype[Any]]", leaf)
        return jax.ShapeDtypeStruct(array.shape, jax.dtypes.canonicalize_dtype(array.dtype))
    return leaf


def _reference(function: Any) -> Callable[[], Any]:
    inner = getattr(function, "__wrapped__", function)
    if isinstance(inner, FunctionType) and not inner.__closure__:
        return lambda: function
    try:
        return weakref.ref(function)
    except TypeError:
        # An object that can't be referenced weakly, such as one with slots: it must not be kept alive.
        return lambda: None


_MAX_DEPTH = 8  # attributes of attributes


def name_constants(
    jaxpr: Any, function: Callable[..., Any], given: Mapping[str, Any] | None = None
) -> tuple[Constant, ...]:
    """Return the constants of a closed jaxpr, largest first.

    The name is the path by which the function reaches the constant: a global, a closure cell, an attribute of its
    object or an argument (`weights`, `self.proj.w['a']`); else `constant 0`, `constant 1`, ….
    """
    named: dict[int, str] = {}
    for name, value in _reachable(function, given or {}) if jaxpr.consts else ():
        named.setdefault(id(value), name)
    constants = [
        Constant(
            named.get(id(value), f"constant {i}"),
            jax.typeof(value).str_short(short_dtypes=True),
            int(getattr(value, "nbytes", 0)),
        )
        for i, value in enumerate(jaxpr.consts)
    ]
    return tuple(sorted(constants, key=lambda constant: -constant.bytes))


class LeakedTracer(jax.errors.UnexpectedTracerError):
    """Error for a constant that is a tracer of another trace. JAX itself raises only when the program is called."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        super().__init__(f"a value of another trace is used: {', '.join(names)}")


def refuse_leaks(traced: Any, function: Callable[..., Any], given: Mapping[str, Any] | None = None) -> None:
    """Raise LeakedTracer if a function uses a tracer of another trace as an array."""
    leaked = foreign_tracers(traced)
    if leaked:
        named = {id(value): name for name, value in _reachable(function, given or {})}
        raise LeakedTracer([named.get(id(value), "a value") for value in leaked])


def _reachable(function: Callable[..., Any], given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield (path, leaf) of each array, class, module and plain function that the function's code can name."""
    roots: dict[str, Any] = dict(given)
    code_holder: Any = getattr(function, "__func__", function)
    if inspect.isfunction(code_holder):
        cells = inspect.getclosurevars(code_holder)
        roots |= {**cells.globals, **cells.nonlocals}
    owner = getattr(function, "__self__", None if inspect.isfunction(function) else function)
    roots |= {f"self.{name}": value for name, value in getattr(owner, "__dict__", {}).items()}
    seen: set[int] = set()
    for root, value in roots.items():
        yield from _inside(root, value, _MAX_DEPTH, seen)


def _inside(root: str, value: Any, depth: int, seen: set[int]) -> Iterator[tuple[str, Any]]:
    leaves = cast(list[tuple[Any, Any]], jax.tree_util.tree_flatten_with_path(value)[0])
    for path, leaf in leaves:
        name = root + jax.tree_util.keystr(path)
        attributes: dict[str, Any] = getattr(leaf, "__dict__", {})
        is_plain = isinstance(leaf, (type, ModuleType)) or (callable(leaf) and not attributes)
        if hasattr(leaf, "dtype") or is_plain or not depth:
            yield name, leaf
        elif id(leaf) not in seen:
            # Objects may refer to each other in a circle.
            seen.add(id(leaf))
            for attribute, inner in list(attributes.items()):
                yield from _inside(f"{name}.{attribute}", inner, depth - 1, seen)


# Hot functions, by a registry: the room of hot paths is above its readers ---------------------------------------------


@dataclass(frozen=True, slots=True)
class HotStatus:
    """The calls of a function, why it stays eager if it does, and True if hot paths guard what it reads now."""

    row: HotRow
    is_on: bool


_Lookup = Callable[[Any], HotStatus | None]
_lookups: list[_Lookup] = []


def register_lookup(lookup: _Lookup) -> None:
    """Register a function that returns the `HotStatus` of a function, or None if unknown."""
    _lookups.append(lookup)


def hot_status(function: Any) -> HotStatus | None:
    """Return a function's `HotStatus`; None if it wasn't called often while hot paths were on."""
    return next((status for lookup in _lookups if (status := lookup(function)) is not None), None)
