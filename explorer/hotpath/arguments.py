"""The arguments of a call: what a compiled copy takes, and by what calls are told apart."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, cast

import jax
import numpy as np
from jax import tree_util

from explorer.capture.safe_reading import kind_of
from explorer.hotpath.arrays import ARRAYS
from explorer.hotpath.proof import Refusal
from explorer.hotpath.results import Order, in_order, order_of
from explorer.hotpath.same_result import shared_container
from explorer.hotpath.unpacking import Unpack, unpacker

_tree: Any = jax.tree  # whose structures have no type
_paths: Callable[[Any], list[tuple[Any, Any]]] = vars(tree_util)["tree_leaves_with_path"]
_flatten: Callable[[Any], tuple[list[Any], Any]] = _tree.flatten
# Equal values of these are one value to a program, if their texts are equal too: 0.0 and -0.0 are equal.
_PLAIN = frozenset((bool, int, float, complex, str, bytes, type(None)))


@dataclass(frozen=True, slots=True)
class SameObject:
    """An argument that isn't data: the very object, which guards look into.

    Args:
        value: The object.
    """

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameObject) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


@dataclass(frozen=True, slots=True)
class Parameters:
    """How the values of a code's names, as a call has them, are handed on.

    Args:
        positional: How many stand by position.
        named: Those that must be named.
        has_rest, has_others: Whether there is a `*args`, a `**kwargs`; they come last.
    """

    positional: int
    named: tuple[str, ...]
    has_rest: bool
    has_others: bool

    def handed(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same values as arguments, by position and by name."""
        args = tuple(values[: self.positional])
        end = self.positional + len(self.named)
        kwargs = dict(zip(self.named, values[self.positional : end], strict=True))
        if self.has_rest:
            args += tuple(values[end])
        if self.has_others:
            kwargs.update(values[-1])
        return args, kwargs


def parameters_of(code: CodeType) -> Parameters:
    """How a code's parameters are handed on."""
    by_name = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    return Parameters(
        code.co_argcount,
        by_name,
        bool(code.co_flags & inspect.CO_VARARGS),
        bool(code.co_flags & inspect.CO_VARKEYWORDS),
    )


def separated(leaves: list[Any]) -> tuple[list[Any], tuple[Any, ...]]:
    """The arrays among some leaves, and by what the others are told apart: place, class and value of each."""
    arrays: list[Any] = []
    others: list[Any] = []
    for at, leaf in enumerate(leaves):
        kind = kind_of(leaf)
        if kind in ARRAYS:
            arrays.append(leaf)
        elif kind in _PLAIN or _is_numpy_number(leaf):
            others.append((at, kind, leaf if kind is int or kind is str else repr(leaf)))
        else:
            others.append((at, kind, SameObject(leaf)))
    return arrays, tuple(others)


def _is_numpy_number(leaf: Any) -> bool:
    return isinstance(leaf, np.generic)


class Call:
    """A call without its arrays.

    Args:
        function: What is called.
        parameters: Its.
        values: Of the parameters, in a call like those that it stands for.

    Attributes:
        structure: Of the values.
        places: Which of its leaves are arrays.
        arrays: Those of the example, as long as they are needed; then their types.
        results_order: Of the dicts in what was returned last.
    """

    def __init__(self, function: Callable[..., Any], parameters: Parameters, values: tuple[Any, ...]) -> None:
        self.function, self._parameters = function, parameters
        leaves, self.structure = _flatten(values)
        self._order = order_of(values)
        self.results_order: Order = None
        self.places = frozenset(at for at, leaf in enumerate(leaves) if type(leaf) in ARRAYS)
        self.arrays: list[Any] = [leaves[at] for at in sorted(self.places)]
        self._others = [None if at in self.places else leaf for at, leaf in enumerate(leaves)]

    def forget(self) -> None:
        """Keep no array, only their types."""
        self.arrays = [struct_of(array) for array in self.arrays]

    def arguments(self, arrays: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What the function is given, with these arrays, or what stands for them, in their places."""
        rest = iter(arrays)
        leaves = [next(rest) if at in self.places else leaf for at, leaf in enumerate(self._others)]
        return self._parameters.handed(in_order(_tree.unflatten(self.structure, leaves), self._order))

    def unpacker(self) -> Unpack:
        """What finds the arrays in the values of calls like this one."""
        return unpacker(self.structure, self._others, self.places)

    @property
    def paths(self) -> list[str]:
        """Each leaf of the values as Python would write it: `params['w']`."""
        names = cast(FunctionType, self.function).__code__.co_varnames
        leaves = _paths(_tree.unflatten(self.structure, range(len(self._others))))
        return [names[path[0].idx] + tree_util.keystr(path[1:]) for path, _ in leaves]

    def others(self) -> list[tuple[str, Any]]:
        """The leaves that are no arrays, with their paths."""
        pairs = zip(self.paths, self._others, strict=True)
        return [pair for at, pair in enumerate(pairs) if at not in self.places]

    def __call__(self, *arrays: Any) -> Any:
        args, kwargs = self.arguments(arrays)
        result = self.function(*args, **kwargs)
        self.results_order = order_of(result)
        return result


def struct_of(array: Any) -> jax.ShapeDtypeStruct:
    """An array without its numbers."""
    return jax.ShapeDtypeStruct(array.shape, array.dtype, weak_type=getattr(array, "weak_type", False))


def unfit(values: Any, result: Any) -> Refusal | None:
    """Why a call like this can't be compiled, by what came in and out."""
    given = jax.tree.leaves(result)
    if not given or any(type(leaf) not in ARRAYS for leaf in given):
        return Refusal("it returns something other than arrays")
    if shared_container(values, (), result):
        return Refusal("it returns a container that it was given, or one twice", cure="return a new one")
    return None


def unfollowed(values: Sequence[Any], names: Sequence[str]) -> Refusal | None:
    """Why a call like this can't be compiled, by what came in: arrays that NumPy computes with, in 64 bits.

    Args:
        values, names: Of its parameters.
    """
    for value, name in zip(values, names, strict=False):
        if any(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(value)):
            cure = f"give it arrays of JAX's: jnp.asarray({name})" if isinstance(value, np.ndarray) else "jnp.asarray"
            return Refusal(
                f"`{name}` is of NumPy, which computes with it by its own rules, mostly in 64 bits", cure=cure
            )
    return None
