"""The classes that the public surface returns: by the annotations of public functions, methods and properties."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any


def returned_classes(public: Mapping[str, Any]) -> dict[type, str]:
    """Explorer's classes that public objects return, each with the name of one that does; those they return, too."""
    returned: dict[type, str] = {}
    waiting = list(public.items())
    while waiting:
        name, value = waiting.pop()
        for where, function in _public_functions(name, value):
            for cls in _annotated_classes(function):
                if cls not in returned:
                    returned[cls] = where
                    waiting.append((cls.__name__, cls))
    return returned


def _public_functions(name: str, value: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    if not isinstance(value, type):
        if inspect.isfunction(value) and value.__module__.startswith("explorer."):
            yield name, value
        return
    for base in value.__mro__:
        for attribute, member in vars(base).items() if base.__module__.startswith("explorer") else ():
            function = _function_of(member)
            is_public = not attribute.startswith("_") or attribute in ("__getitem__", "__iter__", "__call__")
            if is_public and inspect.isfunction(function):
                yield f"{name}.{attribute}", function


def _function_of(member: Any) -> Any:
    match member:
        case property():
            return member.fget
        case functools.cached_property():
            return member.func
        case staticmethod() | classmethod():
            return member.__func__
        case _:
            return member


def _annotated_classes(function: Callable[..., Any]) -> Iterator[type]:
    annotation = function.__annotations__.get("return")
    for node in ast.walk(ast.parse(annotation, mode="eval")) if isinstance(annotation, str) else ():
        if isinstance(node, ast.Name):
            cls = _resolve(function.__module__, node.id)
            if isinstance(cls, type) and cls.__module__.startswith("explorer.") and not cls.__name__.startswith("_"):
                yield cls


def _resolve(module: str, name: str) -> Any:
    """What a name stands for in a module's annotations, for which it may be imported under TYPE_CHECKING only."""
    if hasattr(sys.modules[module], name):
        return getattr(sys.modules[module], name)
    source = _type_imports(module).get(name)
    return getattr(import_module(source), name) if source else None


@functools.cache
def _type_imports(module: str) -> dict[str, str]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module)
    return {alias.asname or alias.name: str(node.module) for node in imports for alias in node.names}
