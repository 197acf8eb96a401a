"""What captured state is made of: how each kind of value is opened, put together again, and named in a message.

Three sorts. A *holder* can be changed (a list, a dict, an object with attributes) and keeps its identity. A *branch*
can't (a tuple, a registered pytree without attributes of its own), so it is rebuilt. All else is a leaf: an array, or
a constant.
"""

from __future__ import annotations

import sys
from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import jax
import numpy as np

Labels = Sequence[Any]
_LIBRARIES = sys.stdlib_module_names | {"jax", "jaxlib", "numpy", "ml_dtypes", "explorer"}
_ATOMS = (int, float, complex, str, bytes, set, frozenset, type, Enum, ModuleType, BaseException)
_NO_NUMBERS = "OUSmM"  # NumPy's objects, texts and times: no arrays to JAX


class Holder:
    """A kind of value that can be changed in place."""

    def open(self, value: Any) -> tuple[Labels, Collection[Any]]:
        """What it holds, and under which labels."""
        raise NotImplementedError

    def fill(self, value: Any, labels: Labels, items: Iterable[Any]) -> None:
        """Make it hold just this."""
        raise NotImplementedError

    def put(self, value: Any, labels: Labels, items: Iterable[Any]) -> None:
        """The same, where it has these labels already."""
        self.fill(value, labels, items)

    def empty(self, value: Any) -> Any:
        """A new one of its class that holds nothing."""
        hollow = copy(value)
        hollow.clear()
        return hollow

    def path(self, label: Any) -> str:
        return f"[{label!r}]"


class Items(Holder):
    """Lists and deques; the labels are positions."""

    def open(self, value: Any) -> tuple[Labels, Collection[Any]]:
        return range(len(value)), value

    def fill(self, value: Any, labels: Labels, items: Iterable[Any]) -> None:
        if isinstance(value, list):
            value[:] = items
        else:
            items = tuple(items)
            value.clear()
            value.extend(items)


class Entries(Holder):
    """Dicts, and what is derived from them. As to JAX, the order of keys says nothing: jax.tree.map sorts them."""

    def open(self, value: Any) -> tuple[Labels, Collection[Any]]:
        entries: dict[Any, Any] = value
        try:
            labels = tuple(entries) if issubclass(type(value), OrderedDict) else tuple(sorted(entries))
        except TypeError:  # keys of several types
            labels = tuple(entries)
        return labels, [entries[label] for label in labels]

    def fill(self, value: Any, labels: Labels, items: Iterable[Any]) -> None:
        entries: dict[Any, Any] = value
        if issubclass(type(value), OrderedDict):
            entries.clear()
        for label in entries.keys() - set(labels):
            del entries[label]
        self.put(value, labels, items)

    def put(self, value: Any, labels: Labels, items: Iterable[Any]) -> None:
        value.update(zip(labels, items))  # noqa: B905 - each call comes by here, and strict costs


class Attributes(Holder):
    """Objects of the user's own classes and of libraries for models, also frozen ones.

    The attributes are written below `__setattr__`: a frozen object gets its traced values for the time of a trace, so
    that everybody who refers to it sees them, and what guards attributes has checked them when the function ran.
    """

    def __init__(self, cls: type[Any]) -> None:
        self.slots = _slots(cls)
        self.has_dict = any("__dict__" in vars(base) for base in cls.__mro__[:-1])

    def open(self, value: object) -> tuple[Labels, Collection[Any]]:
        slots = self.slots.items()
        attributes: dict[str, Any] = {name: slot.__get__(value) for name, slot in slots if is_set(slot, value)}
        if self.has_dict:
            attributes.update(vars(value))
        # In which order they were set says nothing, and libraries change it.
        labels = tuple(sorted(attributes))
        return labels, [attributes[name] for name in labels]

    def fill(self, value: object, labels: Labels, items: Iterable[Any]) -> None:
        values = dict(zip(labels, items, strict=True))
        for name, slot in self.slots.items():
            if name in values:
                slot.__set__(value, values.pop(name))
            elif is_set(slot, value):
                slot.__delete__(value)
        if self.has_dict:
            attributes: dict[str, Any] = vars(value)
            for name in attributes.keys() - values:
                del attributes[name]
            attributes.update(values)

    def empty(self, value: object) -> Any:
        return object.__new__(type(value))

    def path(self, label: Any) -> str:
        return "" if label == "_raw_value" else f".{label}"  # an nnx variable's value goes by the variable's name


class Branch:
    """A kind of value that is put together anew when something in it changes."""

    def open(self, value: Any) -> tuple[Any, Collection[Any]]:
        """Its form, and what is in it."""
        raise NotImplementedError

    def build(self, cls: type[Any], form: Any, items: Iterable[Any]) -> Any:
        raise NotImplementedError


class Tuples(Branch):
    """Tuples, named or not."""

    def open(self, value: Any) -> tuple[Any, Collection[Any]]:
        return len(value), value

    def build(self, cls: type[Any], form: Any, items: Iterable[Any]) -> Any:
        return tuple.__new__(cls, items)


class Pytrees(Branch):
    """What JAX knows how to take apart, and nobody else."""

    def open(self, value: Any) -> tuple[Any, Collection[Any]]:
        flat = cast("tuple[Any, Any]", jax.tree.flatten(value, is_leaf=lambda inner: inner is not value))
        return flat[1], flat[0]

    def build(self, cls: type[Any], form: Any, items: Iterable[Any]) -> Any:
        return jax.tree.unflatten(form, items)


_ITEMS, _ENTRIES, _TUPLES, _PYTREES = Items(), Entries(), Tuples(), Pytrees()
_MANY = 1024  # classes to remember: in a notebook a class may be defined again and again
_UNKNOWN: Any = object()
_kinds: dict[type[Any], Holder | Branch | None] = {}


def kind_of(value: object) -> Holder | Branch | None:
    """How a value is opened; None for leaves."""
    cls = type(value)
    kind = _kinds.get(cls, _UNKNOWN)
    if kind is _UNKNOWN:
        if len(_kinds) >= _MANY:
            _kinds.clear()
        kind = _kinds[cls] = _classify(cls, value)
    return kind


def _classify(cls: type[Any], value: object) -> Holder | Branch | None:
    if issubclass(cls, (jax.Array, np.ndarray, np.generic, *_ATOMS)) or is_trace_state(cls):
        return None
    if issubclass(cls, tuple):
        return _TUPLES
    if issubclass(cls, (list, deque)):
        return _ITEMS
    if issubclass(cls, dict):
        return _ENTRIES
    if cls.__module__.partition(".")[0] in _LIBRARIES and not issubclass(cls, SimpleNamespace):
        return None if value is None or jax.tree_util.all_leaves([value]) else _PYTREES
    attributes = Attributes(cls)
    return attributes if attributes.slots or attributes.has_dict else None


def is_array(value: Any) -> bool:
    """Whether JAX takes it as an array; Python's own numbers count as constants here."""
    if isinstance(value, np.ndarray):
        return cast("np.ndarray[Any, Any]", value).dtype.kind not in _NO_NUMBERS
    return isinstance(value, (jax.Array, np.generic))


def is_trace_state(cls: type[Any]) -> bool:
    """Whether it is flax nnx's mark of the trace that made a module or variable.

    Only code in that same trace may change them. So while a function is traced they carry a new mark, made by the
    mark's own class, as flax itself does when it splits a module and merges it again inside.
    """
    return cls.__name__ == "TraceState" and cls.__module__.startswith("flax.nnx")


def _slots(cls: type[Any]) -> dict[str, Any]:
    """The descriptors behind `__slots__`, the base's first."""
    slots: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        names = vars(base).get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            private = name.startswith("__") and not name.endswith("__")
            name = f"_{base.__name__.lstrip('_')}{name}" if private else name
            slot = vars(base).get(name)
            if name not in ("__dict__", "__weakref__") and hasattr(slot, "__set__"):
                slots[name] = slot
    return slots


def is_set(slot: Any, value: Any) -> bool:
    """Whether an object has a value in a slot."""
    try:
        slot.__get__(value)
    except AttributeError:
        return False
    return True
