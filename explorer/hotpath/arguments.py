"""Arguments and results of a call: flattening, keys by kind of call, and the order of dicts.

JAX's trees sort dict keys, and a program's results are new arrays, while a function may return one of its arguments, or
one array twice.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import is_not
from types import CodeType, FunctionType
from typing import Any, Literal, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import tree_util

from explorer._jax.arguments import Array, KeyArray, struct_of
from explorer.capture.safe_reading import kind_of
from explorer.hotpath.proof import Refusal
from explorer.runtime.generated import Unpack, unpacker

_tree: Any = jax.tree  # whose structures have no type
_paths: Callable[[Any], list[tuple[Any, Any]]] = vars(tree_util)["tree_leaves_with_path"]
_flatten: Callable[[Any], tuple[list[Any], Any]] = _tree.flatten
# Concrete arrays and typed keys; tracers have other classes.
ARRAYS: frozenset[type[Any]] = frozenset((Array, KeyArray))
_SMALL = 64  # elements; shapes, axes and loop counts are smaller


def may_be_replaced(array: jax.Array) -> bool:
    """Return True if an array that was read may be another one at the next call of the same program.

    Few integers or booleans may have been used as sizes, axes or loop counts, which are constants of the program.
    """
    return (not jnp.issubdtype(array.dtype, jnp.integer) and array.dtype != jnp.bool_) or array.size > _SMALL


# Compared by class and text, as 0.0 == -0.0.
_PLAIN = frozenset((bool, int, float, complex, str, bytes, type(None)))


@dataclass(frozen=True, slots=True)
class SameObject:
    """Argument that isn't data, compared by identity; guards check its contents."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameObject) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


@dataclass(frozen=True, slots=True)
class Parameters:
    positional: int  # number of positional parameters
    named: tuple[str, ...]  # keyword-only parameters
    has_rest: bool  # has `*args`
    has_others: bool  # has `**kwargs`

    def handed(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args = tuple(values[: self.positional])
        end = self.positional + len(self.named)
        kwargs = dict(zip(self.named, values[self.positional : end], strict=True))
        if self.has_rest:
            args += tuple(values[end])
        if self.has_others:
            kwargs.update(values[-1])
        return args, kwargs


def parameters_of(code: CodeType) -> Parameters:
    by_name = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    return Parameters(
        code.co_argcount,
        by_name,
        bool(code.co_flags & inspect.CO_VARARGS),
        bool(code.co_flags & inspect.CO_VARKEYWORDS),
    )


def separated(leaves: list[Any]) -> tuple[list[Any], tuple[Any, ...]]:
    """Return the arrays among the leaves, and a hashable key of the others: a tuple of `(index, class, value)`."""
    arrays: list[Any] = []
    others: list[Any] = []
    for at, leaf in enumerate(leaves):
        kind = kind_of(leaf)
        if kind in ARRAYS:
            arrays.append(leaf)
        elif kind in _PLAIN or issubclass(kind, np.generic):
            others.append((at, kind, leaf if kind is int or kind is str else repr(leaf)))
        else:
            others.append((at, kind, SameObject(leaf)))
    return arrays, tuple(others)


class Call:
    def __init__(self, function: Callable[..., Any], parameters: Parameters, values: tuple[Any, ...]) -> None:
        self.function, self._parameters = function, parameters
        leaves, self.structure = _flatten(values)
        self._order = order_of(values)
        self.results_order: Order = None
        self.places = frozenset(at for at, leaf in enumerate(leaves) if type(leaf) in ARRAYS)
        self.arrays: list[Any] = [leaves[at] for at in sorted(self.places)]
        self._others = [None if at in self.places else leaf for at, leaf in enumerate(leaves)]

    def forget(self) -> None:
        # Later traces need only types; the arrays of one call would stay in memory.
        self.arrays = [struct_of(array) for array in self.arrays]

    def arguments(self, arrays: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        rest = iter(arrays)
        leaves = [next(rest) if at in self.places else leaf for at, leaf in enumerate(self._others)]
        return self._parameters.handed(in_order(_tree.unflatten(self.structure, leaves), self._order))

    def unpacker(self) -> Unpack:
        return unpacker(self.structure, self._others, self.places)

    @property
    def paths(self) -> list[str]:
        """Python expression of each leaf: `params['w']`."""
        names = cast(FunctionType, self.function).__code__.co_varnames
        leaves = _paths(_tree.unflatten(self.structure, range(len(self._others))))
        return [names[path[0].idx] + tree_util.keystr(path[1:]) for path, _ in leaves]

    def others(self) -> list[tuple[str, Any]]:
        pairs = zip(self.paths, self._others, strict=True)
        return [pair for at, pair in enumerate(pairs) if at not in self.places]

    def __call__(self, *arrays: Any) -> Any:
        args, kwargs = self.arguments(arrays)
        result = self.function(*args, **kwargs)
        # The order of a dict is lost in JAX's trees: only this call of the function shows it.
        self.results_order = order_of(result)
        return result


def unfollowed(values: Sequence[Any], names: Sequence[str]) -> Refusal | None:
    """Return a refusal if a call's values contain NumPy arrays, which compute by NumPy's rules, mostly in 64 bits; else
    None.
    """
    for value, name in zip(values, names, strict=False):
        if any(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(value)):
            cure = f"pass JAX arrays: jnp.asarray({name})" if isinstance(value, np.ndarray) else "jnp.asarray"
            return Refusal(
                f"`{name}` is a NumPy array, and NumPy computes by its own rules, mostly in 64 bits", cure=cure
            )
    return None


Order = tuple[tuple[Any, ...] | None, tuple[Any, ...]] | None
Source = Literal["computed", "argument", "read"]


def order_of(node: Any) -> Order:
    """Return the order of dict keys in a tree: `(keys, orders of children)`; None if all dicts are sorted.

    A node whose own keys are sorted has None in place of `keys`.

    Example:
        >>> order_of([{"a": 1}, {"z": 1, "a": 2}])
        (None, (None, (('z', 'a'), (None, None))))
    """
    children, structure = _one_level(node)
    if len(children) == 1 and children[0] is node:
        return None
    parts = tuple(map(order_of, children))
    keys: tuple[Any, ...] | None = None
    if type(node) is dict and tuple(cast(dict[Any, Any], node)) != tuple(_tree.unflatten(structure, children)):
        keys = tuple(cast(dict[Any, Any], node))
    return None if keys is None and not any(parts) else (keys, parts)


def in_order(node: Any, order: Order) -> Any:
    """Return the tree with the keys of its dicts in the order that `order_of` returned.

    Example:
        >>> in_order({"a": 2, "z": 1}, order_of({"z": 1, "a": 2}))
        {'z': 1, 'a': 2}
    """
    if order is None:
        return node
    keys, parts = order
    children, structure = _one_level(node)
    node = _tree.unflatten(structure, [in_order(child, part) for child, part in zip(children, parts, strict=True)])
    return node if keys is None else {key: node[key] for key in keys}


def _one_level(node: Any) -> tuple[list[Any], Any]:
    return _tree.flatten(node, is_leaf=partial(is_not, node))


@dataclass(frozen=True, slots=True)
class Assembly:
    """Recipe for a result: computed outputs, arguments and arrays that were read."""

    structure: Any
    order: Order
    leaves: tuple[tuple[Source, int], ...]  # source of each leaf, and its index there
    computed: tuple[int, ...]  # indices of the computed outputs, each once

    @property
    def is_plain(self) -> bool:
        return self.order is None and len(self.computed) == len(self.leaves)

    def assembled(self, computed: Sequence[Any], read: Sequence[Any], arrays: Sequence[Any]) -> Any:
        sources: dict[Source, Sequence[Any]] = {"computed": computed, "argument": arrays, "read": read}
        leaves = [sources[source][at] for source, at in self.leaves]
        return in_order(_tree.unflatten(self.structure, leaves), self.order)


def assembly_of(closed: Any, structure: Any, order: Order, place: Mapping[int, int]) -> Assembly:
    sources: dict[Any, tuple[Source, int]] = {}
    for at, variable in enumerate(closed.jaxpr.invars):
        sources[variable] = "argument", at
    for variable, value in zip(closed.jaxpr.constvars, closed.consts, strict=True):
        if id(value) in place:
            sources[variable] = "read", place[id(value)]
    leaves: list[tuple[Source, int]] = []
    computed: list[int] = []
    for at, variable in enumerate(closed.jaxpr.outvars):
        # A literal has no hash.
        is_literal = hasattr(variable, "val")
        if is_literal or variable not in sources:
            source: tuple[Source, int] = "computed", len(computed)
            computed.append(at)
            if not is_literal:
                sources[variable] = source
        else:
            source = sources[variable]
        leaves.append(source)
    return Assembly(structure, order, tuple(leaves), tuple(computed))
