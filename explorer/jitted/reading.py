"""What captured state is at the moment of a call: its arrays, and all else as a key that says when to trace anew."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import FunctionType
from typing import Any, cast

import jax
import jax.core

from explorer.jitted.kinds import Holder, is_array, is_trace_state, kind_of

_ARRAY, _ARRAYS, _AGAIN, _MARK = "array", "arrays", "again", "mark"
_PLAIN = frozenset((type(None), bool, int, str, bytes, FunctionType))
# The class of the arrays that a call gives, once one has come by: jax.Array is abstract, and isinstance() of it slow.
JAX_ARRAY: set[type[Any]] = set()


class Same:
    """Equal to itself only: for what can't be hashed, so that nothing is ever taken for another by its address."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> Any:
        return self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def read(roots: Sequence[object]) -> tuple[tuple[Any, ...], list[Any], Sequence[Any]]:
    """The state below some roots: its key, its arrays, and the holders, in the order in which a trace meets them too.

    Each call of a function with captured state comes by here. A list or dict of arrays costs a look at its types, not a
    step per array.
    """
    if len(roots) == 1:
        root = cast(Any, roots[0])
        cls = type(roots[0])
        if cls is dict and JAX_ARRAY.issuperset(map(type, root.values())):
            labels, arrays = cast(Holder, kind_of(root)).open(root)
            return (cls, labels, _ARRAYS), cast(list[Any], arrays), roots
        if cls is list and JAX_ARRAY.issuperset(map(type, root)):
            return (cls, range(len(root)), _ARRAYS), list(root), roots
    reading = _Reading()
    for root in roots:
        reading.read(root)
    return tuple(reading.key), reading.arrays, reading.holders


class _Reading:
    __slots__ = ("arrays", "holders", "key", "seen")

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self.holders: list[Any] = []
        self.key: list[Any] = []
        self.seen: dict[int, int] = {}  # by address, while `holders` keeps each one alive

    def read(self, value: object) -> None:
        cls = type(value)
        key = self.key
        if cls in _PLAIN:
            key += (cls, value)
            return
        kind = kind_of(value)
        if kind is None:
            self.read_leaf(cls, value)
            return
        if isinstance(kind, Holder):
            index = self.seen.setdefault(id(value), len(self.holders))
            if index < len(self.holders):
                key += (_AGAIN, index)
                return
            self.holders.append(value)
        form, items = kind.open(value)
        if JAX_ARRAY.issuperset(map(type, items)) or all(map(is_array, items)):
            self.arrays += items
            JAX_ARRAY.update(map(type, filter(_is_concrete, items)))
            key += (cls, form, _ARRAYS)
            return
        key += (cls, form)
        for item in items:
            self.read(item)

    def read_leaf(self, cls: type[object], value: object) -> None:
        if is_array(value):
            self.arrays.append(value)
            self.key.append(_ARRAY)
        elif is_trace_state(cls):
            self.key.append(_MARK)
        else:
            self.key += (cls, constant(value))


def paths(roots: Iterable[tuple[str, object]]) -> list[str]:
    """The paths of the arrays, in the order of `read`."""
    array_paths: list[str] = []
    seen: set[int] = set()

    def walk(path: str, value: object) -> None:
        kind = kind_of(value)
        if kind is None:
            if is_array(value):
                array_paths.append(path)
            return
        if isinstance(kind, Holder):
            if id(value) in seen:
                return
            seen.add(id(value))
        form, items = kind.open(value)
        labels = form if isinstance(kind, Holder) else range(len(items))
        for label, item in zip(labels, items, strict=True):
            walk(path + (kind.path(label) if isinstance(kind, Holder) else f"[{label}]"), item)

    for name, root in roots:
        walk(name and f".{name}", root)
    return array_paths


def _is_concrete(value: Any) -> bool:
    return isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer)


def constant(value: object) -> Any:
    """What a constant is compared by. Its class is compared beside it: True is not 1."""
    if isinstance(value, (float, complex)):
        return repr(value)  # nan is the same each time, and -0.0 is another than 0.0
    if isinstance(value, (set, frozenset)):
        return frozenset((type(item), constant(item)) for item in cast("set[object]", value))
    try:
        hash(value)
    except TypeError:
        return Same(value)
    return value
