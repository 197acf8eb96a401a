"""The arrays of a call that is built like one before, found by Python that is written for that structure.

JAX flattens any tree; then its structure is compared with what it was. For lists, tuples, dicts and named tuples a
function of a few lines looks at the same things and takes the arrays on the way, in a third of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import jax

from explorer.capture.safe_reading import kind_of

_tree: Any = jax.tree  # whose structures have no type
_LARGEST = 1000  # leaves: Python compiles some 50,000 lines in a second, and JAX's way is as fast for large trees
_BY_VALUE = (int, str)
_BY_TEXT = (float, complex, bytes)
Unpack = Callable[[tuple[Any, ...]], list[Any] | None]


class _Unknown(Exception):
    """Only JAX flattens this."""


def never(values: tuple[Any, ...]) -> None:
    """Where no function can be written."""


def unpacker(structure: Any, leaves: Sequence[Any], places: frozenset[int]) -> Unpack:
    """Gives the arrays of values that have a structure, and None where they have another, or other leaves between.

    Args:
        structure: Of a tuple.
        leaves: By what those are compared that are no arrays.
        places: Which of the leaves are arrays.
    """
    if len(leaves) > _LARGEST:
        return never
    writer = _Writer((at in places, leaf) for at, leaf in enumerate(leaves))
    try:
        writer.add(structure, "values")
    except _Unknown:
        return never
    return writer.function()


class _Writer:
    """The function's text, as it is written."""

    def __init__(self, leaves: Iterator[tuple[bool, Any]]) -> None:
        self._leaves = leaves
        self._lines: list[str] = []
        self._bound: dict[str, Any] = {}
        self._arrays: list[str] = []
        self._locals = 0

    def add(self, structure: Any, local: str) -> None:
        """What tells whether a local has a structure, and finds the arrays in it."""
        node = structure.node_data()
        if node is None:
            self._leaf(local)
        elif node[0] is type(None):
            self._require(f"{local} is None")
        elif node[0] is dict:
            self._dict(structure, node[1], local)
        elif node[0] in (list, tuple) or _is_named_tuple(node[0], len(structure.children())):
            self._sequence(structure, node[0], local)
        else:
            raise _Unknown

    def _leaf(self, local: str) -> None:
        is_array, value = next(self._leaves)
        if is_array:
            self._arrays.append(local)
            return
        kind, same = kind_of(value), self._bind(value)
        if kind in _BY_VALUE:
            self._require(f"type({local}) is {self._bind(kind)} and {local} == {same}")
        elif kind in _BY_TEXT:  # 0.0 and -0.0 are equal
            self._require(
                f"{local} is {same} or type({local}) is {self._bind(kind)} and repr({local}) == {repr(value)!r}"
            )
        else:
            self._require(f"{local} is {same}")

    def _sequence(self, structure: Any, cls: type[Any], local: str) -> None:
        children = structure.children()
        self._require(f"type({local}) is {self._bind(cls)} and len({local}) == {len(children)}")
        names = self._names(len(children))
        if children:
            self._lines.append(f"{', '.join(names)}, = {local}")
        for name, child in zip(names, children, strict=True):
            self.add(child, name)

    def _dict(self, structure: Any, keys: Sequence[Any], local: str) -> None:
        if any(type(key) not in _BY_VALUE for key in keys):
            raise _Unknown
        self._require(f"type({local}) is dict and len({local}) == {len(keys)}")
        for name, key, child in zip(self._names(len(keys)), keys, structure.children(), strict=True):
            self._lines.append(f"{name} = {local}[{key!r}]")
            self.add(child, name)

    def _require(self, condition: str) -> None:
        self._lines.append(f"if not ({condition}): return None")

    def _names(self, count: int) -> list[str]:
        self._locals += count
        return [f"v{at}" for at in range(self._locals - count, self._locals)]

    def _bind(self, value: Any) -> str:
        name = f"c{len(self._bound)}"
        self._bound[name] = value
        return name

    def function(self) -> Unpack:
        lines = [*self._lines, f"return [{', '.join(self._arrays)}]"]
        body = "".join(f"  {line}\n" for line in lines)
        namespace = dict(self._bound)
        text = f"def unpack(values):\n try:\n{body} except Exception: return None\n"
        exec(compile(text, "<guards>", "exec"), namespace)
        return namespace["unpack"]


def _is_named_tuple(cls: type[Any], count: int) -> bool:
    """Whether JAX takes a class apart as the tuple that it is: nobody told it another way."""
    if not issubclass(cls, tuple) or cls.__iter__ is not tuple.__iter__:
        return False
    inside = [object() for _ in range(count)]
    probe = tuple.__new__(cast(Any, cls), inside)

    def is_inside(part: Any) -> bool:
        return part is not probe

    try:
        children: list[Any] = _tree.leaves(probe, is_leaf=is_inside)
    except Exception:
        return False
    return len(children) == count and all(one is two for one, two in zip(children, inside, strict=True))
