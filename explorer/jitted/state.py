"""Captured state: its kinds of values, and its key and arrays at the moment of a call.

There are three sorts of values. A *holder* can be changed (a list, a dict, an object with attributes) and keeps its
identity. A *branch* can't (a tuple, a registered pytree without attributes), so it is rebuilt. Everything else is a
leaf: an array or a constant. A state is its arrays, and a key of everything else that decides when to trace again.
"""

from __future__ import annotations

import sys
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from enum import Enum
from types import FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, cast

import jax
import jax.core
import numpy as np

Labels = Sequence[Any]
_LIBRARIES = sys.stdlib_module_names | {"jax", "jaxlib", "numpy", "ml_dtypes", "explorer"}
_ATOMS = (int, float, complex, str, bytes, set, frozenset, type, Enum, ModuleType, BaseException)
_NO_NUMBERS = "OUSmM"  # dtype kinds of NumPy that JAX has no arrays of: objects, texts, times


class Holder:
    """Kind of value that can be changed in place."""

    def open(self, value: Any) -> tuple[Labels, Collection[Any]]:
        """Return the labels of a value's items (indices, keys, attribute names), and the items, in the same order."""
        raise NotImplementedError

    def fill(self, value: Any, labels: Labels, items: Iterable[Any]) -> None:
        """Replace the items of a value, in place."""
        raise NotImplementedError

    def empty(self, value: Any) -> Any:
        """Return a new value of the same class without items."""
        # A copy keeps more than items: the factory of a defaultdict, the length of a deque.
        hollow = copy(value)
        hollow.clear()
        return hollow

    def path(self, label: Any) -> str:
        return f"[{label!r}]"


class Items(Holder):
    def open(self, value: Any) -> tuple[Labels, Collection[Any]]:
        return range(len(value)), value

    def fill(self, value: Any, labels: Labels, items: Iterable[Any]) -> None:
        if isinstance(value, list):
            value[:] = items
        else:
            # A deque has no slice assignment, and `items` may read from it.
            items = tuple(items)
            value.clear()
            value.extend(items)


class Entries(Holder):
    """Kind of dicts and their subclasses. As in JAX, the order of keys has no meaning: jax.tree.map sorts them."""

    def open(self, value: Any) -> tuple[Labels, Collection[Any]]:
        entries: dict[Any, Any] = value
        try:
            labels = tuple(entries) if issubclass(type(value), OrderedDict) else tuple(sorted(entries))
        except TypeError:  # keys of several types can't be sorted
            labels = tuple(entries)
        return labels, [entries[label] for label in labels]

    def fill(self, value: Any, labels: Labels, items: Iterable[Any]) -> None:
        entries: dict[Any, Any] = value
        if issubclass(type(value), OrderedDict):
            entries.clear()
        for label in entries.keys() - set(labels):
            del entries[label]
        entries.update(zip(labels, items, strict=True))


class Attributes(Holder):
    """Kind of objects of the user's own classes and of libraries for models, also frozen ones.

    Attributes are written below `__setattr__`. A frozen object gets its traced values while a trace lasts, so that all
    code that refers to it sees them; guards of attributes have checked the values when the function ran.
    """

    def __init__(self, cls: type[Any]) -> None:
        self.slots = _slots(cls)
        self.has_dict = any("__dict__" in vars(base) for base in cls.__mro__[:-1])

    def open(self, value: object) -> tuple[Labels, Collection[Any]]:
        slots = self.slots.items()
        attributes: dict[str, Any] = {name: slot.__get__(value) for name, slot in slots if is_set(slot, value)}
        if self.has_dict:
            attributes.update(vars(value))
        # The order in which attributes were set has no meaning, and libraries change it.
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
        return "" if label == "_raw_value" else f".{label}"  # an nnx variable's value is named like the variable


class Branch:
    """Kind of value that is rebuilt when an item in it changes."""

    def open(self, value: Any) -> tuple[Any, Collection[Any]]:
        """Return the form, from which `build` rebuilds the value, and the items."""
        raise NotImplementedError

    def build(self, cls: type[Any], form: Any, items: Iterable[Any]) -> Any:
        raise NotImplementedError


class Tuples(Branch):
    def open(self, value: Any) -> tuple[Any, Collection[Any]]:
        return len(value), value

    def build(self, cls: type[Any], form: Any, items: Iterable[Any]) -> Any:
        return tuple.__new__(cls, items)


class Pytrees(Branch):
    """Kind of values that only JAX can flatten."""

    def open(self, value: Any) -> tuple[Any, Collection[Any]]:
        flat = cast("tuple[Any, Any]", jax.tree.flatten(value, is_leaf=lambda inner: inner is not value))
        return flat[1], flat[0]

    def build(self, cls: type[Any], form: Any, items: Iterable[Any]) -> Any:
        return jax.tree.unflatten(form, items)


_ITEMS, _ENTRIES, _TUPLES, _PYTREES = Items(), Entries(), Tuples(), Pytrees()
_MAX_KINDS = 1024  # cached classes: a notebook may define a class again and again
_UNKNOWN: Any = object()
_kinds: dict[type[Any], Holder | Branch | None] = {}


def kind_of(value: object) -> Holder | Branch | None:
    """Return the kind of a value: a `Holder` for a container that can change, a `Branch` for one that is rebuilt.

    None for leaves: arrays and constants.
    """
    cls = type(value)
    kind = _kinds.get(cls, _UNKNOWN)
    if kind is _UNKNOWN:
        if len(_kinds) >= _MAX_KINDS:
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
    # The attributes of a library's own objects aren't the user's state.
    if cls.__module__.partition(".")[0] in _LIBRARIES and not issubclass(cls, SimpleNamespace):
        return None if value is None or jax.tree_util.all_leaves([value]) else _PYTREES
    attributes = Attributes(cls)
    return attributes if attributes.slots or attributes.has_dict else None


def is_array(value: Any) -> bool:
    """Return True for JAX and NumPy arrays and NumPy scalars that JAX has a dtype for. Python's own numbers are
    constants here.
    """
    if isinstance(value, np.ndarray):
        return cast("np.ndarray[Any, Any]", value).dtype.kind not in _NO_NUMBERS
    return isinstance(value, (jax.Array, np.generic))


def is_trace_state(cls: type[Any]) -> bool:
    """Return True for the class with which flax nnx marks the trace that made a module or variable.

    Only code in the same trace may change them. While a function is traced they get a new mark, made by the mark's own
    class, as flax itself does when it splits a module and merges it again inside a trace.
    """
    return cls.__name__ == "TraceState" and cls.__module__.startswith("flax.nnx")


def _slots(cls: type[Any]) -> dict[str, Any]:
    """Return the descriptors of `__slots__` by name, those of base classes first."""
    slots: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        names = vars(base).get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            # Python mangles such names with the name of the class.
            private = name.startswith("__") and not name.endswith("__")
            name = f"_{base.__name__.lstrip('_')}{name}" if private else name
            slot = vars(base).get(name)
            if name not in ("__dict__", "__weakref__") and hasattr(slot, "__set__"):
                slots[name] = slot
    return slots


def is_set(slot: Any, value: Any) -> bool:
    try:
        slot.__get__(value)
    except AttributeError:
        return False
    return True


_ARRAY, _ARRAYS, _AGAIN, _MARK = "array", "arrays", "again", "mark"
_PLAIN = frozenset((type(None), bool, int, str, bytes, FunctionType))
# Classes of concrete arrays that were seen: jax.Array is abstract, and isinstance() with it is slow.
JAX_ARRAY: set[type[Any]] = set()


class Same:
    """Wrapper that equals only itself, for unhashable values. It keeps the value alive: its address isn't reused."""

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
    """Return the cache key, the arrays and the holders (containers that can change) of the state in `roots`.

    Arrays and holders come in the order in which the containers are walked. Each call with captured state runs this. A
    list or dict of arrays costs one check of types, not a step per array.
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
        self.seen: dict[int, int] = {}  # by address; `holders` keeps each value alive

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
                # One holder in two places is another structure than two equal holders.
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
    """Return a hashable key that is equal for equal constants of one class; the caller compares the class.

    The key of a value without a hash equals only itself.
    """
    if isinstance(value, (float, complex)):
        return repr(value)  # nan must equal itself, and -0.0 must differ from 0.0
    if isinstance(value, (set, frozenset)):
        return frozenset((type(item), constant(item)) for item in cast("set[object]", value))
    try:
        hash(value)
    except TypeError:
        return Same(value)
    return value


Reference = Callable[[], Any]


class Ref(weakref.ref[Any]):
    """Weak reference that equals another only if both refer to the same living object."""

    __slots__ = ("_hash",)

    def __new__(cls, value: Any, callback: Callable[[Any], None] | None = None) -> Ref:
        self = super().__new__(cls, value, callback)
        # The hash must outlive the value, and some values can't be hashed.
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
    """Reference to a bound method, which is a new object at each access: equal if object and function are."""

    owner: Reference
    function: Reference

    def __call__(self) -> Any:
        owner, function = self.owner(), self.function()
        return None if owner is None or function is None else MethodType(function, owner)


def reference(value: Any, on_death: Callable[[Any], None] | None = None) -> Reference:
    """Return a function that returns the value while it lives. A value without weak references is kept alive."""
    if isinstance(value, MethodType):
        return Method(reference(value.__self__, on_death), reference(value.__func__, on_death))
    try:
        return Ref(value, on_death)
    except TypeError:
        return Same(value)


def is_dead(reference: Reference) -> bool:
    return not isinstance(reference, Same) and reference() is None
