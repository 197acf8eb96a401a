"""Who is meant, without keeping them alive and never by address: a new object where a dead one was is another."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import MethodType
from typing import Any

from explorer.jitted.reading import Same

Reference = Callable[[], Any]


class Ref(weakref.ref[Any]):
    """A weak reference that equals another only if both mean the same living object."""

    __slots__ = ("_hash",)

    def __new__(cls, value: Any, callback: Callable[[Any], None] | None = None) -> Ref:
        self = super().__new__(cls, value, callback)
        self._hash = id(value)
        return self

    def __init__(self, value: Any, callback: Callable[[Any], None] | None = None) -> None:
        super().__init__(value, callback)  # pyright: ignore[reportCallIssue] - the stubs have only __new__

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Ref) and (value := self()) is not None and value is other())

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True)
class Method:
    """A bound method, which is a new object at each access: the same if its object and its function are."""

    owner: Reference
    function: Reference

    def __call__(self) -> Any:
        owner, function = self.owner(), self.function()
        return None if owner is None or function is None else MethodType(function, owner)


def reference(value: Any, on_death: Callable[[Any], None] | None = None) -> Reference:
    """A function that gives the value while it lives. What can't be referred to weakly is kept alive."""
    if isinstance(value, MethodType):
        return Method(reference(value.__self__, on_death), reference(value.__func__, on_death))
    try:
        return Ref(value, on_death)
    except TypeError:
        return Same(value)


def is_dead(reference: Reference) -> bool:
    return not isinstance(reference, Same) and reference() is None
