"""Snapshots of what a function can reach by name in addition to its arguments: globals, closures, `self`.

No user code runs: attributes come from `__dict__` and slots, values are compared by identity, and only plain numbers
and strings by value. A walk ends after some thousands of objects.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import (
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any, cast

import jax
import numpy as np

from explorer.capture.safe_reading import (
    attributes,
    class_name,
    class_variables,
    closure_variables,
    is_a,
    is_exactly,
    is_plain,
    is_tracer,
    is_users_class,
    is_users_object,
    kind_of,
    member,
    mro,
)
from explorer.model.stage import is_library_file

# A model of some hundred layers has fewer; a registry of everything must not make lint() slow.
_MAX_OBJECTS = 5_000  # objects
_MAX_DEPTH = 6
_MAX_HASHED_BYTES = 65_536  # bytes of an array that are all compared; of a larger one a sample is
_SAMPLE_ELEMENTS = 1_024  # elements
QUEUES = ("queue.Queue", "queue.LifoQueue", "queue.PriorityQueue")  # their items are in an attribute `queue`
_OTHERS = ("argparse.Namespace", "types.SimpleNamespace")  # of the standard library, which hold what a user likes


@dataclass(frozen=True, repr=False)
class Container:
    """List, dict, object or the like, with its content. Both are kept alive, so that addresses stay unique."""

    value: Any  # the list, dict, set, object, …; None for the names themselves
    path: str  # as Python writes it: `log`, `self.calls`, `state['loss']`
    inner: dict[str, Any]  # by access path: `[0]`, `['loss']`, `.calls`; names by name
    content: Any = None  # fingerprint of changes in place that `inner` doesn't show


@dataclass(frozen=True, repr=False)
class Change:
    path: str  # as Python writes it: `log`, `self.calls`, `state['loss']`
    before: Any  # before, after: the values; `Ellipsis` for none
    after: Any
    how: str  # `set` (another value), `content` (an array's elements, a set's)
    holder: Any = None  # the container whose item or attribute it is; None for a name
    holder_path: str = ""  # its path; empty for a name


@dataclass(repr=False)
class Snapshot:
    """Values by path."""

    # the containers, by address; what has the address 0 are the names
    holders: dict[int, Container] = field(default_factory=dict[int, Container])

    def __post_init__(self) -> None:
        self.values = {
            holder.path + name: value for holder in self.holders.values() for name, value in holder.inner.items()
        }

    def path_of(self, value: Any) -> str:
        """Return the path at which the snapshot has a container, or ""."""
        holder = self.holders.get(id(value))
        return holder.path if holder is not None else ""

    def changes(self, later: Snapshot) -> Iterator[Change]:
        """Yield the differences in containers that both snapshots have."""
        for address, now in later.holders.items():
            was = self.holders.get(address)
            if was is None:
                continue  # its holder's change covers it
            for name in was.inner | now.inner:
                before, after = was.inner.get(name, ...), now.inner.get(name, ...)
                if before is not after and not same(before, after):
                    yield Change(now.path + name, before, after, "set", now.value, now.path)
            if was.content != now.content:
                yield Change(now.path, was.value, now.value, "content", now.value, now.path)

    def tracers(self) -> Iterator[tuple[str, Any, Container]]:
        for holder in self.holders.values():
            for name, value in holder.inner.items():
                if is_tracer(value):
                    yield holder.path + name, value, holder


def snapshot(roots: Mapping[str, Any]) -> Snapshot:
    holders = {0: Container(None, "", dict(roots))}
    waiting = deque((name, value, 0) for name, value in roots.items())
    left = _MAX_OBJECTS
    while waiting and left > 0:
        # Breadth first: where the limit ends the walk, all that is near the names was looked at.
        path, value, depth = waiting.popleft()
        if is_plain(value) or id(value) in holders or depth > _MAX_DEPTH:
            continue
        items, content = _items(value), _content(value)
        if items is not None or content is not None:
            inner = dict(islice(items or (), left))
            left -= len(inner)
            holders[id(value)] = Container(value, path, inner, content)
            waiting.extend((path + name, item, depth + 1) for name, item in inner.items())
        left -= 1
    return Snapshot(holders)


def _items(value: Any) -> Iterator[tuple[str, Any]] | None:
    """Return (access path, item) pairs, as (`[0]`, item), or None if the value is no container."""
    kind = kind_of(value)
    if is_tracer(value) or is_a(value, np.ndarray, jax.Array):
        return None
    if is_a(value, list, tuple, dict) or kind is deque:
        return _elements(value)
    if is_exactly(value, set, frozenset):  # which hold nothing traced: that has no hash
        return iter(())
    if kind is FunctionType:
        names = object.__getattribute__(value, "__dict__")
        return None if is_library_file(value.__code__.co_filename) else _data(names)
    if is_a(value, type):
        return _data(class_variables(value)) if is_users_class(value) else None
    if kind is SimpleNamespace or class_name(kind) in (*_OTHERS, *QUEUES) or is_users_object(value):
        return _data(attributes(value))
    return None


def _elements(value: Any) -> Iterator[tuple[str, Any]]:
    """Return (`[key]`, item) pairs of a list, tuple, deque or dict, without running overridden iteration."""
    if is_a(value, dict):
        items: Iterator[tuple[Any, Any]] = iter(dict[Any, Any].items(value))
        keyed = (
            (repr(key) if is_plain(key) else f"<{class_name(kind_of(key)).rpartition('.')[2]} {i}>", item)
            for i, (key, item) in enumerate(items)
        )
        return ((f"[{key}]", item) for key, item in keyed)
    base: Any = next(base for base in (list, tuple, deque) if is_a(value, base))
    return ((f"[{i}]", item) for i, item in enumerate(base.__iter__(value)))


_CODE = (
    FunctionType,
    ModuleType,
    staticmethod,
    classmethod,
    property,
    MemberDescriptorType,
    GetSetDescriptorType,
    type,
)


def _data(names: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield (`.name`, value) of attributes that aren't code. Double underscores belong to Python and to libraries."""
    for name, item in names.items():
        if type(name) is str and not name.startswith("__") and not is_a(item, *_CODE):
            yield f".{name}", item


def exact_items(value: Any) -> Iterable[Any] | None:
    """Return the items of a list or tuple, or the values of a dict; None for others, whose iteration may run code."""
    if type(value) is dict:
        return cast(dict[Any, Any], value).values()
    return cast(Iterable[Any], value) if is_exactly(value, list, tuple) else None


def _content(value: Any) -> Any:
    """Return a fingerprint that changes with an array's or set's content, or None."""
    if type(value) is set:
        return frozenset(map(id, islice(cast(set[Any], value), _MAX_OBJECTS)))
    if type(value) is not np.ndarray or value.dtype.hasobject:
        return None
    if value.nbytes <= _MAX_HASHED_BYTES:
        return hash(value.tobytes())
    return hash(value.flat[:: max(1, value.size // _SAMPLE_ELEMENTS)].tobytes())


def same(one: Any, other: Any) -> bool:
    """Return True for identical values, and for equal numbers or strings of one type."""
    if one is other:
        return True
    if type(one) is not type(other) or not (is_plain(one) or is_a(one, np.generic)):
        return False
    return bool(one == other) or bool(one != one and other != other)


JITTED = kind_of(jax.jit(lambda: None))


def reachable(function: Any) -> dict[str, Any]:
    """Return the values, by name, that a function and the user's functions that it names reach from outside."""
    named: dict[str, Any] = {}
    waiting, seen = [function], set[int]()
    if type(function) is not FunctionType and type(function) is not MethodType and is_users_object(function):
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
    """Return `name of module`, which tells a module's variable from another module's of the same name."""
    return f"{name} of {module}"


def _called(value: Any) -> list[Any]:
    kind = kind_of(value)
    if kind is FunctionType:
        wrapped = attributes(value).get("__wrapped__")
        return [value] if wrapped is None else [value, wrapped]
    if kind is JITTED:
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
            if is_users_module(value):  # config.rate
                inside = ((other, member(value, other)) for other in code.co_names)
                yield from ((f"{name}.{other}", item) for other, item in inside if item is not ...)


def default_values(function: FunctionType) -> dict[str, Any]:
    """Return the mutable defaults by parameter name."""
    code, defaults = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
    values = dict(zip(names, defaults, strict=True)) | (function.__kwdefaults__ or {})
    return {name: value for name, value in values.items() if is_exactly(value, list, dict, set)}


def is_users_module(value: Any) -> bool:
    file = member(value, "__file__") if type(value) is ModuleType else ...
    return type(file) is str and not is_library_file(file)


_MAX_CHARACTERS = 40


def safe_text(value: Any) -> str:
    """Return a value as a message names it: `3.0`, `a list of 2`, `float32[3]`, `a Model`."""
    kind = kind_of(value)
    if value is ...:
        return "nothing"
    if is_tracer(value):
        return f"a traced {value.aval.str_short()}"
    if is_plain(value):
        text = repr(value[:_MAX_CHARACTERS] if is_exactly(value, str, bytes) else value)
        return text if len(text) <= _MAX_CHARACTERS + 2 else f"{text[:_MAX_CHARACTERS]}…"
    if is_a(value, np.generic) or kind is np.ndarray or is_a(value, jax.Array):
        return _array(value)
    if is_exactly(value, list, tuple, set, frozenset, dict):
        return f"{'an empty' if not value else 'a'} {kind.__name__}{f' of {len(value)}' if value else ''}"
    return f"a {class_name(kind).rpartition('.')[2]}"


def _array(value: Any) -> str:
    kind = f"{value.dtype.name}[{','.join(map(str, value.shape))}]"
    # A number is worth saying; that of JAX's may be on a device, or deleted.
    if value.shape == () and kind_of(value).__module__ == "numpy" and not value.dtype.hasobject:
        return f"{kind}({value})"
    return f"a NumPy {kind}" if kind_of(value) is np.ndarray else kind
