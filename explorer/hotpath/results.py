"""What a compiled call gives back besides numbers: the order of dicts, and arrays that are others' too.

A tree of JAX's sorts the keys of dicts, and a program's results are new arrays, where the function may have given back
one of its arguments, or one array twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import jax

_tree: Any = jax.tree
Order = tuple[tuple[Any, ...] | None, tuple[Any, ...]] | None
Source = Literal["computed", "argument", "read"]


def order_of(node: Any) -> Order:
    """The keys of every dict in a tree that aren't sorted, in their order; None where all are.

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
    """A tree with its dicts in an order.

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
    def is_part(part: Any) -> bool:
        return part is not node

    return _tree.flatten(node, is_leaf=is_part)


@dataclass(frozen=True, slots=True)
class Assembly:
    """How the result is put together.

    Args:
        structure: Of the result.
        order: Of its dicts.
        leaves: Where each leaf comes from, and its place there.
        computed: The outputs of the program that are computed, each once.
    """

    structure: Any
    order: Order
    leaves: tuple[tuple[Source, int], ...]
    computed: tuple[int, ...]

    @property
    def is_plain(self) -> bool:
        """Whether a program can give the result as it is."""
        return self.order is None and len(self.computed) == len(self.leaves)

    def assembled(self, computed: Sequence[Any], read: Sequence[Any], arrays: Sequence[Any]) -> Any:
        """The result, of what was computed, what was read and what was given."""
        sources: dict[Source, Sequence[Any]] = {"computed": computed, "argument": arrays, "read": read}
        leaves = [sources[source][at] for source, at in self.leaves]
        return in_order(_tree.unflatten(self.structure, leaves), self.order)


def assembly_of(closed: Any, structure: Any, order: Order, place: Mapping[int, int]) -> Assembly:
    """How the result of a jaxpr is put together.

    Args:
        closed: With all that the function read as constants.
        structure, order: Of its result.
        place: By the address of an array that was read, its number among these.
    """
    sources: dict[Any, tuple[Source, int]] = {}
    for at, variable in enumerate(closed.jaxpr.invars):
        sources[variable] = "argument", at
    for variable, value in zip(closed.jaxpr.constvars, closed.consts, strict=True):
        if id(value) in place:
            sources[variable] = "read", place[id(value)]
    leaves: list[tuple[Source, int]] = []
    computed: list[int] = []
    for at, variable in enumerate(closed.jaxpr.outvars):
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
