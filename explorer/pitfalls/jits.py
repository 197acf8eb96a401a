"""The `jax.jit` functions that rules look at: the function inside, its arguments by name, which of them are static."""

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
    """An argument of a call, by its parameter's name.

    Args:
        name: Of the parameter; of one in `*args`, as Python would write it: `args[1]`.
        value: What was given.
        static: Whether `jax.jit` was told that it is static.
    """

    name: str
    value: Any
    static: bool


def call_arguments(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[CallArgument]:
    """The arguments of a call of `target`, those of a bound method with its `self`."""
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
    """The names that positions have; the code says them, where a signature might run something."""
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
    """The decorator that makes a `jax.jit` function of a `def` in a function, or of the function itself."""
    decorators: list[ast.expr] = getattr(node or function.node, "decorator_list", [])
    return next((expression for expression in decorators if is_jit(function, expression)), None)


def is_jit(function: FunctionSource, node: ast.expr) -> bool:
    """Whether an expression is `jax.jit`, `jax.jit(…)` with options alone, or `partial(jax.jit, …)`."""
    if isinstance(node, ast.Call):
        if function.value(node.func) is partial and node.args:
            return is_jit(function, node.args[0])
        return not node.args and is_jit(function, node.func)
    value = function.value(node)
    return value is jax.jit or value is jax.pmap or (type(value) is FunctionType and _dotted(value) in _JITS)


def is_jit_call(function: FunctionSource, node: ast.Call) -> bool:
    """Whether a call makes a `jax.jit` function: `jax.jit(f)`, `partial(jax.jit, static_argnums=0)(f)`."""
    return bool(node.args) and function.value(node.func) is not partial and is_jit(function, node.func)


def jit_target(function: FunctionSource, node: ast.Call) -> Any:
    """The `jax.jit` function that a call calls, if its name says; else None."""
    value = function.value(node.func)
    return value if is_jitted(value) else None


def hash_of(kind: type) -> Any:
    """What a class hashes its objects with: None for not at all, `object.__hash__` for by identity."""
    return next((held["__hash__"] for base in _bases(kind) if "__hash__" in (held := class_variables(base))), None)


def short_name(kind: type) -> str:
    return class_name(kind).rpartition(".")[2]


def _bases(kind: type) -> tuple[type, ...]:
    return type.__dict__["__mro__"].__get__(kind)


def _dotted(value: FunctionType) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def is_users_jitted(value: Any) -> bool:
    """Whether a value is a `jax.jit` function that is none of those which a module of JAX's has, as `jnp.exp`."""
    wrapped = attributes(value).get("__wrapped__") if is_jitted(value) else None
    if type(wrapped) is not FunctionType:
        return wrapped is not None
    module = sys.modules.get(str(wrapped.__globals__.get("__name__")))
    return not module or member(module, wrapped.__name__) is not value
