"""Copy a user's functions with other code, and leave the originals as they are.

Other threads may run the user's functions meanwhile, so the originals keep their code and modules. Everything that
leads to a changed function is copied: functions that name it, close over it or wrap it, with one namespace per module,
and the partials, methods, containers and objects between them. If only a class leads there (`layer(x)` calls
`type(layer).__call__`), the copy uses the original.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import jax

from explorer._jax.arguments import is_jitted, jit_options
from explorer.capture.explore import HoldsState
from explorer.capture.safe_reading import attributes, class_variables, closure_variables, is_users_object, kind_of, mro
from explorer.model.stage import is_library_file
from explorer.pitfalls.fix_unit import RewriteUncertain
from explorer.pitfalls.state import is_users_module

_MAX_OBJECTS = 20_000  # objects looked at; a training script with its models has some hundreds
_MAX_ITEMS = 1_000  # items of a container: a longer one holds data
_WRAPPERS = (jax.custom_jvp, jax.custom_vjp)


class FunctionCopies:
    """Copies of everything that leads to functions with certain code objects.

    Args:
        codes: Replacement of each code object, matched by identity: functions of two modules may have equal code.
        names: Further globals of the copied functions. They replace nothing.
    """

    def __init__(self, codes: Mapping[CodeType, CodeType], names: Mapping[str, Any]) -> None:
        self._codes = {id(old): new for old, new in codes.items()}
        self._names = names
        self._leading: set[int] = set()
        self._kept: list[Any] = []  # whose addresses are keys: none may be used again
        self._copies: dict[int, Any] = {}
        self._namespaces: dict[int, ModuleType] = {}

    def copy(self, *values: Any) -> tuple[Any, ...]:
        """Return the values, with a copy in place of each that leads to a changed function.

        Raises:
            RewriteUncertain: Nothing leads to such a function, or something between them can't be copied.
        """
        self._leading = self._find_leading(values)
        if not any(id(value) in self._leading for value in values):
            raise RewriteUncertain("no name or closure leads to the function: a class alone does")
        return tuple(map(self._called, values))

    def _called(self, value: Any) -> Any:
        """Return what to call instead of a value: for an object its copied `__call__`, which Python takes from the
        class.
        """
        copy = self._copied(value)
        call = _methods(value).get("__call__") if copy is not value and _is_object(value) else None
        return MethodType(self._copied(call), copy) if call is not None and id(call) in self._leading else copy

    def _find_leading(self, values: tuple[Any, ...]) -> set[int]:
        users: dict[int, list[int]] = {}
        waiting, seen, functions = list(values), set[int](), list[FunctionType]()
        while waiting:
            value = waiting.pop()
            if id(value) in seen:
                continue
            if len(seen) > _MAX_OBJECTS:
                raise RewriteUncertain("too much can be reached from the function")
            seen.add(id(value))
            self._kept.append(value)
            if kind_of(value) is FunctionType:
                functions.append(value)
            for part in _parts(value):
                users.setdefault(id(part), []).append(id(value))
                waiting.append(part)
        # With one function of a module all are copied: they share its globals, which each may set.
        spaces = {id(one.__globals__) for one in functions if id(one.__code__) in self._codes}
        return _with_users([id(one) for one in functions if id(one.__globals__) in spaces], users)

    def _copied(self, value: Any) -> Any:
        if id(value) not in self._leading:
            return value
        if id(value) not in self._copies:
            self._copies.setdefault(id(value), self._new_copy(value))
        return self._copies[id(value)]

    def _new_copy(self, value: Any) -> Any:
        kind = kind_of(value)
        if kind is FunctionType:
            return self._copy_function(value)
        if kind is MethodType:
            return MethodType(self._copied(value.__func__), self._copied(value.__self__))
        if kind is partial:
            args = map(self._copied, value.args)
            return partial(self._copied(value.func), *args, **self._copied_items(value.keywords))
        if is_jitted(value):
            options = jit_options(value)
            if options is None:
                raise RewriteUncertain("how the function was jitted isn't known")
            return jax.jit(self._copied(value.__wrapped__), **options)
        if _is_stateless_jit(value):
            return jax.jit(self._copied(value.__wrapped__))
        if is_users_module(value):
            names = cast(dict[str, Any], vars(value))
            space = self._namespace(names)
            copy = self._copies[id(value)] = self._namespaces[id(names)]  # before its parts: they may lead to it
            self._fill(space, names)
            return copy
        if _is_container(value):
            return self._copied_items(value) if kind is dict else kind(map(self._copied, value))
        return self._copy_object(value)

    def _copy_function(self, function: FunctionType) -> FunctionType:
        code = self._codes.get(id(function.__code__), function.__code__)
        if code.co_freevars != function.__code__.co_freevars:
            raise RewriteUncertain("it would need other variables of the functions around it")
        is_users = not is_library_file(function.__code__.co_filename)
        cells = tuple(CellType() for _ in code.co_freevars)
        namespace = function.__globals__
        if is_users:
            namespace = self._namespace(function.__globals__)
        copy = FunctionType(code, namespace, function.__name__, None, cells)
        self._copies[id(function)] = copy  # before its parts: a function may lead to itself
        copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
        copy.__defaults__ = self._copied_items(function.__defaults__)
        copy.__kwdefaults__ = self._copied_items(function.__kwdefaults__)
        for name, value in closure_variables(function).items():
            cells[code.co_freevars.index(name)].cell_contents = self._copied(value)
        vars(copy).update({name: self._copied(value) for name, value in vars(function).items()})
        if is_users:
            self._fill(namespace, function.__globals__)
        return copy

    def _copied_items(self, items: Any) -> Any:
        if kind_of(items) is tuple:
            return tuple(map(self._copied, items))
        return {name: self._copied(value) for name, value in items.items()} if items is not None else None

    def _namespace(self, names: dict[str, Any]) -> dict[str, Any]:
        """Return the copy of a module's names, in a module so that `module.function` finds the copy."""
        if id(names) not in self._namespaces:
            self._namespaces[id(names)] = module = ModuleType(str(names.get("__name__", "")))
            vars(module).update(self._names)
            vars(module).update(names)
        return vars(self._namespaces[id(names)])

    def _fill(self, copy: dict[str, Any], names: dict[str, Any]) -> None:
        for name, value in list(names.items()):
            if id(value) in self._leading:
                copy[name] = self._copied(value)

    def _copy_object(self, value: Any) -> Any:
        """Copy an object without running its class's `__init__`, `__new__` or `__setattr__`."""
        copy = self._copies[id(value)] = object.__new__(kind_of(value))
        for name, attribute in attributes(value).items():
            object.__setattr__(copy, name, self._copied(attribute))
        for name, method in _methods(value).items():
            # Found before the class's; Python looks for `__call__` and its like at the class alone.
            if id(method) in self._leading and not name.startswith("__"):
                object.__setattr__(copy, name, MethodType(self._copied(method), copy))
        return copy


def _with_users(changed: list[int], users: Mapping[int, list[int]]) -> set[int]:
    leading = set(changed)
    while changed:
        further = set(users.get(changed.pop(), ())) - leading
        leading |= further
        changed += further
    return leading


def _is_stateless_jit(value: Any) -> bool:
    return issubclass(kind_of(value), HoldsState) and not value.captured


def _is_container(value: Any) -> bool:
    kind = kind_of(value)
    return (kind is list or kind is tuple or kind is dict) and len(value) <= _MAX_ITEMS


def _is_object(value: Any) -> bool:
    return kind_of(value) in _WRAPPERS or is_users_object(value)


def _methods(value: Any) -> dict[str, FunctionType]:
    methods: dict[str, FunctionType] = {}
    for base in reversed(mro(value)):
        methods |= {name: held for name, held in class_variables(base).items() if kind_of(held) is FunctionType}
    return methods


def _parts(value: Any) -> Iterator[Any]:
    kind = kind_of(value)
    if kind is FunctionType:
        yield from _function_parts(value)
    elif kind is MethodType:
        yield from (value.__func__, value.__self__)
    elif kind is partial:
        yield from (value.func, *value.args, *value.keywords.values())
    elif is_jitted(value) or _is_stateless_jit(value):
        yield value.__wrapped__
    elif is_users_module(value):
        yield from (held for held in list(cast(dict[str, Any], vars(value)).values()) if callable(held))
    elif _is_container(value):
        yield from list(value.values()) if kind is dict else list(value)
    elif _is_object(value) and kind_of(value) is not type:
        yield from attributes(value).values()
        yield from _methods(value).values()


def _function_parts(function: FunctionType) -> Iterator[Any]:
    yield from closure_variables(function).values()
    yield from vars(function).values()
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    if not is_library_file(function.__code__.co_filename):
        names = function.__globals__
        yield from (names[name] for name in _names(function.__code__) if name in names)


def _names(code: CodeType) -> Iterator[str]:
    """Yield the global and attribute names in a code object and the code objects inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
