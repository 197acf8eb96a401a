"""The public methods and properties of a type, those that it has from Explorer's other classes as well."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from explorer.model.declared import cached_property

# What has no name of its own to look up, and is called all the same.
_SPOKEN = {
    "__call__": "{0}(…)",
    "__getitem__": "{0}[…]",
    "__len__": "len({0})",
    "__iter__": "for … in {0}",
    "__contains__": "… in {0}",
    "__enter__": "with {0}",
}


@dataclass(frozen=True)
class Member:
    """A method or property.

    Args:
        name: As it is looked up.
        kind: `method`, `class method`, `static method` or `property`.
        function: What is called.
        owner: The class that defines it.
    """

    name: str
    kind: str
    function: Callable[..., Any]
    owner: type

    @property
    def docstring(self) -> str:
        return self.function.__doc__ or ""

    def title(self, cls: type) -> str:
        """How it is written."""
        spoken = _SPOKEN.get(self.name)
        return spoken.format(_variable(cls)) if spoken else f".{self.name}"


def members(cls: type) -> Iterator[Member]:
    """Properties and methods with a docstring, in the order of the classes they are defined in."""
    seen: set[str] = set()
    for base in cls.__mro__:
        if not base.__module__.startswith("explorer"):
            continue
        for name, value in vars(base).items():
            kind, function = _resolve(value)
            public = not name.startswith("_") or name in _SPOKEN
            if public and name not in seen and inspect.isfunction(function) and function.__doc__:
                yield Member(name, kind, function, base)
            seen.add(name)


def _resolve(value: Any) -> tuple[str, Any]:
    match value:
        case property():
            return "property", value.fget
        case cached_property():
            return "property", value.func
        case classmethod():
            return "class method", value.__func__
        case staticmethod():
            return "static method", value.__func__
        case _:
            return "method", value


def _variable(cls: type) -> str:
    """A name for a value of a class: `live_memory`."""
    letters = (f"_{letter.lower()}" if letter.isupper() else letter for letter in cls.__name__)
    return "".join(letters).lstrip("_")
