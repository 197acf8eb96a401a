"""What lies outside of a call and is handed to something that may look at all of it: every part is noted."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import jax
import numpy as np

from explorer.capture.safe_reading import attributes, kind_of
from explorer.hotpath.proof.reads import Reads, buffer, contents
from explorer.hotpath.proof.refusal import NotProven
from explorer.hotpath.proof.values import PLAIN_TYPES, Either, Fresh, Given, Items, Known, Made, Value
from explorer.model.stage import is_library_file

_COMPARED = 4096  # bytes of a NumPy array that are compared at each call, in 0.4 µs
_CONSTANT = (*PLAIN_TYPES, type(None), type(...), slice, range, np.dtype)
_CALLABLE = (FunctionType, MethodType, BuiltinFunctionType, type, ModuleType)
_LIBRARIES = ("jax", "jaxlib", "numpy", "optax", "equinox", "chex", "flax", "haiku", "functools", "einops")
# What Python and JAX ask an object for unseen, when it is handed to a function.
_PROTOCOLS = (
    *("__len__", "__iter__", "__bool__", "__contains__", "__getitem__", "__index__", "__int__", "__float__"),
    *("__jax_array__", "__array__", "__array_ufunc__", "__array_function__"),
)


def note_all(held: Any, reads: Reads, text: str) -> None:
    """Note everything in an object from outside, so that guards hold what any pure function may see of it.

    Raises:
        NotProven: It has something in it that can change unseen.
    """
    waiting, seen = [held], set[int]()
    while waiting:
        value = waiting.pop()
        if id(value) in seen or _never_changes(value):
            continue
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            note_buffer(value, reads, text)
            continue
        if type(value) in (list, dict, set):
            reads.add("contents", value, None, contents(value), text)
            waiting += value.values() if isinstance(value, Mapping) else value
        elif isinstance(value, (tuple, frozenset)):
            waiting += cast(Any, value)
        elif isinstance(value, jax.tree_util.Partial):
            waiting += [*value.args, *value.keywords.values()]
        elif not is_of_library(value):
            waiting += _fields(value, reads, text)


def note_buffer(array: Any, reads: Reads, text: str) -> None:
    """Note what is in a NumPy array from outside.

    Raises:
        NotProven: It is too large to be compared at each call.
    """
    if type(array) is not np.ndarray or array.nbytes > _COMPARED or array.dtype.hasobject:
        raise NotProven(
            f"it reads the NumPy array `{text}` from outside, whose contents may change unseen",
            "make it JAX's outside of the function: jnp.asarray",
        )
    reads.add("buffer", array, None, buffer(array), text)


def _never_changes(value: Any) -> bool:
    return isinstance(value, (*_CONSTANT, *_CALLABLE, jax.Array, np.generic, Enum))


def is_of_library(value: Any) -> bool:
    """Whether an object's class is of a library whose objects don't change."""
    return str(kind_of(value).__module__).partition(".")[0] in _LIBRARIES


def _fields(value: Any, reads: Reads, text: str) -> list[Any]:
    """The attributes of an object that JAX knows the parts of, all of them noted."""
    if jax.tree_util.all_leaves([value]):
        raise NotProven(
            f"`{text}` is given an object of `{kind_of(value).__name__}`, and what it asks of it isn't known"
        )
    refuse_protocols(kind_of(value), text)
    own = attributes(value)
    for name, held in own.items():
        reads.add("attribute", value, name, held, f"{text}.{name}")
    return list(own.values())


def refuse_protocols(kind: type[Any], text: str) -> None:
    """A class of the user's may do anything when Python asks for a length, or JAX for an array."""
    for base in kind.__mro__:
        name = next((name for name in _PROTOCOLS if name in vars(base)), None)
        if name is not None and not _is_librarys(base):
            raise NotProven(f"`{text}` may call `{name}` of `{kind.__name__}`, which isn't followed")


def refuse_hooks(kind: type[Any], *names: str) -> None:
    """A class of the user's may do anything when an attribute is read or set."""
    for base in kind.__mro__:
        hook = next((name for name in names if isinstance(vars(base).get(name), FunctionType)), None)
        if hook is not None and not is_generated(vars(base)[hook]) and not _is_librarys(base):
            raise NotProven(f"`{hook}` of `{kind.__name__}` isn't followed")


def is_generated(function: Any) -> bool:
    """Whether `dataclass` or `NamedTuple` wrote a function."""
    return isinstance(function, FunctionType) and function.__code__.co_filename.startswith(("<string>", "<namedtuple"))


def _is_librarys(kind: type[Any]) -> bool:
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    return kind.__module__ == "builtins" or (isinstance(file, str) and is_library_file(file))


def array_inside(value: Value) -> bool:
    """Whether an array from outside, whose value a trace could read, is a value or in a container."""
    match value:
        case Known(held):
            return any(isinstance(leaf, jax.Array) for leaf in _leaves(held))
        case Items(values) | Either(values):
            return any(map(array_inside, values))
        case Fresh(_, holds):
            return holds is not None and array_inside(holds)
        case _:
            return False


def _leaves(held: Any) -> list[Any]:
    if isinstance(held, Mapping):
        held = list(cast(Mapping[Any, Any], held).values())
    if isinstance(held, (list, tuple, set, frozenset)):
        return [leaf for part in cast(Any, held) for leaf in _leaves(part)]
    return [held]


def refuse_own_protocols(value: Value, text: str) -> None:
    """A value that is handed to a pure function must do nothing of its own when it is asked for parts."""
    match value:
        case Made(kind):
            refuse_protocols(kind, text)
        case Given(example):
            refuse_protocols(kind_of(example), text)
        case _:
            pass
