"""Inspection of objects without running the user's code: no `__class__`, `__getattr__`, property, hash or repr."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import (
    BuiltinFunctionType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, cast

import jax
import jax.core
import numpy as np

from explorer.model.stage import is_library_file

# The classes' own accessors: a metaclass may have others.
_MRO: Callable[[type[Any]], tuple[type[Any], ...]] = type.__dict__["__mro__"].__get__
_VARS: Callable[[type[Any]], Any] = type.__dict__["__dict__"].__get__
_MODULE: Callable[[type[Any]], Any] = type.__dict__["__module__"].__get__
_QUALNAME: Callable[[type[Any]], str] = type.__dict__["__qualname__"].__get__


def kind_of(value: object) -> type[Any]:
    """Return the class of a value, typed `type[Any]`."""
    return type(value)


# By id: a look-up by class would call the metaclass's `__hash__` and `__eq__`.
_PLAIN = frozenset(map(id, (bool, int, float, complex, str, bytes, type(None))))
_CYTHON = kind_of(np.random.Generator.normal)
_DISPATCHED = kind_of(np.sum)
_METHODS = (FunctionType, MethodDescriptorType, _CYTHON, BuiltinFunctionType)


def mro(value: Any) -> tuple[type[Any], ...]:
    """Return the classes of a value, its own first."""
    return _MRO(kind_of(value))


def is_a(value: Any, *classes: type[Any]) -> bool:
    """Return True if a value's class derives from one in `classes`; not by `isinstance`, which reads `__class__`."""
    return any(base is one for base in mro(value) for one in classes)


def is_exactly(value: Any, *classes: type[Any]) -> bool:
    """Return True if a value's class is in `classes`. Not by `in`: a metaclass may define `==`."""
    kind = kind_of(value)
    return any(kind is one for one in classes)


def is_plain(value: Any) -> bool:
    """Return True for a number, a bool, a string, bytes or None, which run no code of the user's."""
    return id(kind_of(value)) in _PLAIN


def is_tracer(value: Any) -> bool:
    return is_a(value, jax.core.Tracer)


def class_name(kind: type[Any]) -> str:
    """Return a class's name with its module: `builtins.list`."""
    module = _MODULE(kind)
    return f"{module if type(module) is str else '?'}.{_QUALNAME(kind)}"


def attributes(value: Any) -> dict[str, Any]:
    """Return the attributes in `__dict__` and slots, past `__getattr__` and properties."""
    values: dict[str, Any] = {}
    for name, descriptor in [item for base in mro(value) for item in list(_VARS(base).items())]:
        if type(descriptor) is MemberDescriptorType and type(name) is str:
            try:
                values[name] = descriptor.__get__(value)
            except AttributeError:  # a slot that has no value yet
                continue
        elif type(descriptor) is GetSetDescriptorType and name == "__dict__":
            own = descriptor.__get__(value)
            if type(own) is dict:
                values |= {key: item for key, item in cast(dict[Any, Any], own).items() if type(key) is str}
    return values


def member(value: Any, name: str) -> Any:
    """Return an attribute if reading it runs nothing; `Ellipsis` otherwise, or if missing."""
    if kind_of(value) is ModuleType or is_a(value, ModuleType):
        return ModuleType.__getattribute__(value, "__dict__").get(name, ...)
    if is_a(value, type):
        return _class_attribute(value, name, value)
    own = attributes(value).get(name, ...)
    return own if own is not ... else _class_attribute(kind_of(value), name, value)


def _class_attribute(kind: type[Any], name: str, receiver: Any) -> Any:
    for base in _MRO(kind):
        held = _VARS(base).get(name, ...)
        if held is ...:
            continue
        if type(held) is staticmethod:
            return cast(Any, held).__func__
        if type(held) is classmethod:
            return MethodType(cast(Any, held).__func__, kind)
        if type(held) is _CLASS_METHOD:  # of C: datetime.now
            return held.__get__(None, kind)
        if is_exactly(held, *_METHODS):
            return held if receiver is kind else MethodType(held, receiver)
        # Another descriptor runs code when it is read; any other object is the attribute itself.
        return ... if any("__get__" in _VARS(one) for one in mro(held)) else held
    return ...


_CLASS_METHOD = kind_of(dict.__dict__["fromkeys"])


def find(node: ast.AST, named: Callable[[str], Any]) -> Any:
    """Return the value of an expression of names, attributes, constant items and constants; `Ellipsis` where unknown.

    `named` returns the value of a name.
    """
    if isinstance(node, ast.Name):
        return named(node.id)
    if isinstance(node, ast.Attribute):
        if isinstance(node.value, ast.Call):
            return _constructed_method(find(node.value.func, named), node.attr)
        owner = find(node.value, named)
        return ... if owner is ... else member(owner, node.attr)
    if isinstance(node, ast.Subscript):
        key = find(node.slice, named)
        return _item(find(node.value, named), key) if is_plain(key) else ...
    if isinstance(node, ast.Constant):
        return node.value
    return ...


def _constructed_method(maker: Any, name: str) -> Any:
    """Return the method that `maker().name` would be, taken from the class: `Random.gauss`; `Ellipsis` if unknown."""
    kind = np.random.Generator if maker is np.random.default_rng else maker
    method = _class_attribute(kind, name, kind) if is_a(kind, type) else ...
    return method if is_exactly(method, *_METHODS) else ...


def _item(owner: Any, key: Any) -> Any:
    if type(owner) is dict:
        # Not by hash: a user's key may have the same hash, and then its `__eq__` would run.
        items = list(cast(dict[Any, Any], owner).items())
        return next((item for own, item in items if type(own) is type(key) and own == key), ...)
    if is_exactly(owner, list, tuple) and type(key) is int and -len(owner) <= key < len(owner):
        return owner[key]
    return ...


def callee_name(callee: Any) -> tuple[str, Any]:
    """Return the name of a callable, with its module, and the object of its method or `__call__` (else None)."""
    kind = kind_of(callee)
    if kind is MethodType:
        return callee_name(callee.__func__)[0], callee.__self__
    if kind is FunctionType:
        return f"{_text(callee.__globals__.get('__name__'))}.{callee.__code__.co_qualname}", None
    if kind is BuiltinFunctionType:
        return _builtin_name(callee)
    if kind is MethodDescriptorType:
        return f"{class_name(callee.__objclass__)}.{callee.__name__}", None
    if kind is _CYTHON or kind is _DISPATCHED:
        return f"{_text(callee.__module__) or 'numpy'}.{callee.__qualname__}", None
    if kind is np.ufunc:
        return f"numpy.{callee.__name__}", None
    if is_a(callee, type):
        return class_name(callee), None
    return f"{class_name(kind)}.__call__", callee


def _builtin_name(callee: Any) -> tuple[str, Any]:
    owner = callee.__self__
    if owner is None or is_a(owner, ModuleType):
        return f"{_text(callee.__module__) or _text(member(owner, '__name__'))}.{callee.__qualname__}", None
    if is_a(owner, type):  # of a class method: datetime.now
        return f"{_text(_MODULE(owner))}.{callee.__qualname__}", owner
    defining = next((base for base in mro(owner) if callee.__name__ in _VARS(base)), kind_of(owner))
    return f"{_text(_MODULE(defining))}.{callee.__qualname__}", owner


def _text(value: Any) -> str:
    return value if kind_of(value) is str else ""


def closure_variables(function: FunctionType) -> dict[str, Any]:
    """Return a function's closure variables by name, without those that have no value yet."""
    variables: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            variables[name] = cell.cell_contents
        except ValueError:
            continue
    return variables


def class_variables(kind: type[Any]) -> dict[str, Any]:
    """Return the class's own variables, past its metaclass."""
    return dict(_VARS(kind))


def init_parameters(value: Any) -> set[str]:
    """Return the names of the parameters of an object's `__init__`, without `self`.

    Empty if it has `*args` or `**kwargs`, or isn't a Python function.
    """
    init = next((held for base in mro(value) if (held := class_variables(base).get("__init__")) is not None), None)
    if type(init) is not FunctionType or init.__code__.co_flags & (CO_VARARGS | CO_VARKEYWORDS):
        return set()
    count = init.__code__.co_argcount + init.__code__.co_kwonlyargcount
    return set(init.__code__.co_varnames[1:count])


def is_users_class(kind: type[Any]) -> bool:
    """Return True if the user wrote the class."""
    module = _text(_MODULE(kind))
    file = _text(member(sys.modules.get(module), "__file__"))
    # A module without a file was typed into a session, or is part of the interpreter.
    return not is_library_file(file) if file else module == "__main__"


def is_users_object(value: Any) -> bool:
    """Return True if the user wrote the object's class, or it is a dataclass or of flax or equinox, as models are."""
    return _MODULE(kind_of(value)) != "builtins" and any(
        _text(_MODULE(base)).partition(".")[0] in ("flax", "equinox")
        or "__dataclass_fields__" in _VARS(base)
        or is_users_class(base)
        for base in mro(value)
    )
