"""Trace a function under observation: its symbolic arguments, the calls it makes, and the warnings."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import count
from threading import get_ident
from types import FunctionType, MethodType
from typing import Any, cast

import jax
from jax import export

from explorer._jax.arguments import is_jitted
from explorer._jax.symbolic import undecided_equalities
from explorer._jax.traces import uncached_traces
from explorer.capture.explore import Described
from explorer.capture.filtered import arrays_of, filtered, is_filtered
from explorer.capture.safe_reading import is_users_object, kind_of
from explorer.model.stage import is_library_file
from explorer.pitfalls.driver import read_driver
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import hash_of
from explorer.pitfalls.recorder import record_calls
from explorer.pitfalls.state import reachable, snapshot


def gather(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], record: bool = True) -> Evidence:
    """Return the evidence of one trace of a function, which the rules check; a driver is read instead of traced.

    Without `record`, calls are not recorded.
    """
    users = unwrap(function)
    target: Any = function
    evidence = Evidence(users, function, args, kwargs)
    # A driver's trace would end at the first result that it reads.
    if read_driver(evidence):
        return evidence.collect()
    if isinstance(target, MethodType) and is_jitted(target.__func__):  # its `trace` doesn't pass self
        args = (target.__self__, *args)
        target = target.__func__
    if is_filtered(target):
        target = filtered(target, args, kwargs)
        args, kwargs = arrays_of((tuple(args), kwargs))
    evidence.before = snapshot(reachable(users))
    with (
        _recorded_warnings() as evidence.warnings,
        uncached_traces(),
        undecided_equalities() as evidence.undecided,
        record_calls(users) if record else nullcontext() as evidence.recording,
    ):
        try:
            target = target if hasattr(target, "trace") else jax.jit(_hashable(target))  # jit refuses some callables
            traced = target.trace(*args, **kwargs)
            evidence.leaves = jax.tree.leaves((args, kwargs))
            evidence.traced = traced if hasattr(traced, "jaxpr") else traced.traced  # flax.nnx.jit wraps JAX's
        except Exception as error:  # the rules say why
            evidence.error = error
    evidence.after = snapshot(reachable(users))
    return evidence.collect()


def _hashable(function: Any) -> Any:
    """Return a callable object that hashes by value in a `partial`, others as they are: a model may hold arrays, which
    have no hash, and `jax.jit` hashes its function.
    """
    if type(function) is FunctionType:
        return function
    by_value = hash_of(kind_of(function)) is not object.__hash__
    return partial(function) if by_value and is_users_object(function) else function


def unwrap(function: Any) -> Any:
    """Return the user's function below jit, partial() and decorators that set `__wrapped__`."""
    for _ in range(100):  # a decorator may name itself
        if isinstance(function, partial):
            function = function.func
        elif type(function) is MethodType and is_jitted(function.__func__):
            function = MethodType(unwrap(function.__func__), function.__self__)
        elif type(function) is not MethodType and "__wrapped__" in getattr(function, "__dict__", {}):
            if _only_takes_its_name(function):
                break
            function = function.__wrapped__
        else:
            break
    return function


def _only_takes_its_name(function: Any) -> bool:
    """Return True if a user's function wraps a library's function, as `@wraps(jnp.sin)` does."""
    own, wrapped = file_of(function), file_of(unwrap(function.__wrapped__))
    return bool(own) and not is_library_file(own) and (not wrapped or is_library_file(wrapped))


def file_of(function: Any) -> str:
    """Return the file that defines a Python function, and "" for other callables."""
    return getattr(getattr(function, "__code__", None), "co_filename", "")


@contextmanager
def _recorded_warnings() -> Generator[list[tuple[str, str, int]]]:
    """Record the warnings of this thread as (message, file, line), whatever the user's filters are.

    Warnings are shown as usual, but none is raised: a filter "error" would end the trace at the first one.
    """
    recorded: list[tuple[str, str, int]] = []
    thread = get_ident()
    filters = tuple(warnings.filters)
    with warnings.catch_warnings():
        show = warnings.showwarning

        def listen(message: Any, category: Any, filename: str, lineno: int, *rest: Any, **named: Any) -> None:
            is_new = True
            if get_ident() == thread:  # filters are shared by all threads
                at = _users_line(filename, lineno) if is_library_file(filename) else (filename, lineno)
                is_new = (str(message), *at) not in recorded
                recorded.append((str(message), *at))
            if is_new and _is_shown(filters, str(message), category, filename, lineno):
                show(message, category, filename, lineno, *rest, **named)

        warnings.simplefilter("always")
        warnings.showwarning = listen
        yield recorded


def _is_shown(filters: Sequence[Any], message: str, category: type[Warning], file: str, line: int) -> bool:
    name = os.path.splitext(os.path.basename(file))[0]  # filters match the module's name
    for action, text, kind, module, at in filters:
        if issubclass(category, kind) and at in (0, line) and _matches(text, message) and _matches(module, name):
            return action != "ignore"
    return True


def _matches(pattern: Any, text: str) -> bool:
    """Return True if a warning filter's pattern matches. None matches all; Python's own filters hold plain strings."""
    return pattern is None or (pattern == text if type(pattern) is str else pattern.search(text) is not None)


def _users_line(file: str, line: int) -> tuple[str, int]:
    """Return (file, line) of the user's that is running, else those given: JAX gives many warnings its own lines."""
    frame = inspect.currentframe()
    while frame is not None and is_library_file(frame.f_code.co_filename):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else (file, line)


def symbolic_arguments(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]] | None:
    """Return the arguments with symbols for sizes that vary; None if no size varies, or JAX can't take the bounds."""
    leaves, tree = cast(tuple[list[Any], Any], jax.tree.flatten((list(args), kwargs), is_leaf=_is_described))
    bounds: dict[str, tuple[int, int]] = {}
    numbers = count()
    shapes = {
        id(leaf): _shape(leaf, bounds, numbers)
        for leaf in leaves
        if _is_described(leaf) and hasattr(leaf, "shape_bounds") and leaf.shape_bounds.min != leaf.shape_bounds.max
    }
    if not shapes:
        return None
    limits: list[str] = []
    for name, (low, high) in bounds.items():
        limits += [f"{name} >= {max(low, 1)}", f"{name} <= {high}"]

    def symbolic(leaf: Any) -> Any:
        if id(leaf) in shapes:
            return jax.ShapeDtypeStruct(export.symbolic_shape(shapes[id(leaf)], scope=scope), leaf.dtype)
        return _plain(leaf)

    try:
        scope = export.SymbolicScope(limits)
        described = list(map(symbolic, leaves))
    except ValueError:  # the bounds admit no size
        return None
    return cast(tuple[list[Any], dict[str, Any]], jax.tree.unflatten(tree, described))


def plain_arguments(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    return jax.tree.map(_plain, (args, kwargs), is_leaf=_is_described)


def _plain(leaf: Any) -> Any:
    return leaf.to_struct() if _is_described(leaf) else leaf


def _is_described(leaf: Any) -> bool:
    return issubclass(type(leaf), Described)


def _shape(leaf: Any, bounds: dict[str, tuple[int, int]], numbers: Any) -> str:
    """Return a shape as JAX parses it: `(batch, 128,)`. `bounds` collects the bounds of the symbols."""
    low, high = leaf.shape_bounds.min, leaf.shape_bounds.max
    sizes: list[str] = []
    for axis, dimension in enumerate(leaf.shape):
        if low[axis] == high[axis]:
            sizes.append(str(low[axis]))
            continue
        name = getattr(dimension, "name", None) or f"size_{next(numbers)}"
        bounds[name] = low[axis], high[axis]
        sizes.append(name)
    return f"({', '.join(sizes)},)"
