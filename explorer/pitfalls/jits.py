"""Facts about `jax.jit` functions: the wrapped function, arguments by name, static arguments."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import jax

from explorer._jax.arguments import is_jitted, static_arguments
from explorer.capture.safe_reading import attributes, class_name, class_variables, member
from explorer.pitfalls.function_source import FunctionSource

_JITS = ("jax.jit", "jax.pmap", "equinox.filter_jit", "equinox._jit.filter_jit", "flax.nnx.jit")


@dataclass(frozen=True)
class CallArgument:
    name: str  # of the parameter; of one in `*args`, as Python would write it: `args[1]`
    value: Any  # what was given
    static: bool  # True if it is a static argument of `jax.jit`


def call_arguments(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[CallArgument]:
    """Yield the arguments of a call of `target`, including `self` of a jitted bound method."""
    if type(target) is MethodType and is_jitted(target.__func__):
        target, args = target.__func__, (target.__self__, *args)
    numbers, names = static_arguments(target)
    parameters = _parameters(target)
    count = len(args)
    for i, value in enumerate(args):
        name = parameters[i] if i < len(parameters) else f"args[{i - len(parameters)}]"
        yield CallArgument(name, value, i in numbers or i - count in numbers or name in names)
    for name, value in kwargs.items():
        yield CallArgument(name, value, name in names)


def _parameters(target: Any) -> tuple[str, ...]:
    """Return the names of the positional parameters, from the code object: a signature might run user code."""
    for _ in range(100):
        if type(target) is MethodType:
            return _parameters(target.__func__)[1:]
        if isinstance(target, partial):
            return _parameters(target.func)[len(target.args) :]
        if type(target) is FunctionType:
            return target.__code__.co_varnames[: target.__code__.co_argcount]
        target = getattr(target, "__dict__", {}).get("__wrapped__")
    return ()


def decorator(function: FunctionSource, node: ast.AST | None = None) -> ast.expr | None:
    """Return the decorator that jits a `def`, by default the function itself."""
    decorators: list[ast.expr] = getattr(node or function.node, "decorator_list", [])
    return next((expression for expression in decorators if is_jit(function, expression)), None)


def is_jit(function: FunctionSource, node: ast.expr) -> bool:
    """Return True for `jax.jit`, `jax.jit(…)` with options alone, and `partial(jax.jit, …)`."""
    if isinstance(node, ast.Call):
        if function.value(node.func) is partial and node.args:
            return is_jit(function, node.args[0])
        return not node.args and is_jit(function, node.func)
    value = function.value(node)
    name = f"{value.__module__}.{value.__qualname__}" if type(value) is FunctionType else ""
    return value is jax.jit or value is jax.pmap or name in _JITS


def is_jit_call(function: FunctionSource, node: ast.Call) -> bool:
    """Return True for a call that makes a jitted function: `jax.jit(f)`, `partial(jax.jit, static_argnums=0)(f)`."""
    return bool(node.args) and function.value(node.func) is not partial and is_jit(function, node.func)


def hash_of(kind: type) -> Any:
    """Return a class's `__hash__`: None for unhashable, `object.__hash__` for identity."""
    bases: tuple[type, ...] = type.__dict__["__mro__"].__get__(kind)
    return next((held["__hash__"] for base in bases if "__hash__" in (held := class_variables(base))), None)


def short_name(kind: type) -> str:
    return class_name(kind).rpartition(".")[2]


def is_users_jitted(value: Any) -> bool:
    """Return True for a jitted function that isn't one of JAX's own, such as `jnp.exp`."""
    wrapped = attributes(value).get("__wrapped__") if is_jitted(value) else None
    if type(wrapped) is not FunctionType:
        return wrapped is not None
    module = sys.modules.get(str(wrapped.__globals__.get("__name__")))
    return not module or member(module, wrapped.__name__) is not value
