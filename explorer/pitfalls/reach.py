"""What a function can reach by name besides its arguments, and the functions that it may call there."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import jax

from explorer.capture.safe_reading import (
    attributes,
    class_variables,
    closure_variables,
    is_a,
    is_exactly,
    is_users_object,
    kind_of,
    member,
    mro,
)
from explorer.model.stage import is_library_file

_JITTED = kind_of(jax.jit(lambda: None))


def reachable(function: Any) -> dict[str, Any]:
    """What a function, and the user's functions that it names, can reach: globals, closures, `self`."""
    named: dict[str, Any] = {}
    waiting, seen = [function], set[int]()
    if not is_exactly(function, FunctionType, MethodType) and is_users_object(function):
        named["self"] = function  # which is called itself
    while waiting:
        callee = waiting.pop()
        if type(callee) is MethodType:
            named.setdefault("self", callee.__self__)
        if type(callee) is not FunctionType:
            waiting += _called(callee)
        elif id(callee) not in seen and not is_library_file(callee.__code__.co_filename):
            seen.add(id(callee))
            for name, value in _names(callee):
                if not is_a(value, ModuleType):
                    module = str(callee.__globals__.get("__name__"))
                    # Two modules may have one name for two things.
                    is_another = named.setdefault(name, value) is not value and name not in callee.__code__.co_freevars
                    named |= {named_in(name, module): value} if is_another else {}
                waiting += _called(value)
    return named


def named_in(name: str, module: str) -> str:
    """The path of a module's variable where another module has one of this name that is reached first."""
    return f"{name} of {module}"


def _called(value: Any) -> list[Any]:
    """The functions that are called when a value is, or its methods."""
    kind = kind_of(value)
    if kind is FunctionType:
        wrapped = attributes(value).get("__wrapped__")
        return [value] if wrapped is None else [value, wrapped]
    if kind is _JITTED:
        return _called(value.__wrapped__)
    if kind is MethodType:
        return [value.__func__, *(_methods(value.__self__) if is_users_object(value.__self__) else [])]
    return _methods(value) if is_users_object(value) else []


def _methods(value: Any) -> list[Any]:
    return [held for base in mro(value) for held in class_variables(base).values() if type(held) is FunctionType]


def _names(function: FunctionType) -> Iterator[tuple[str, Any]]:
    yield from closure_variables(function).items()
    yield from default_values(function).items()
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        codes += [constant for constant in code.co_consts if type(constant) is CodeType]
        for name in filter(function.__globals__.__contains__, code.co_names):
            value = function.__globals__[name]
            yield name, value
            if type(value) is ModuleType and _is_users_module(value):  # config.rate
                inside = ((other, member(value, other)) for other in code.co_names)
                yield from ((f"{name}.{other}", item) for other, item in inside if item is not ...)


def default_values(function: FunctionType) -> dict[str, Any]:
    """The parameters' defaults by name, which are made once and kept: those that can be changed."""
    code, defaults = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
    values = dict(zip(names, defaults, strict=True)) | (function.__kwdefaults__ or {})
    return {name: value for name, value in values.items() if is_exactly(value, list, dict, set)}


def _is_users_module(module: ModuleType) -> bool:
    file = member(module, "__file__")
    return type(file) is str and not is_library_file(file)
