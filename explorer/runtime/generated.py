"""Functions that are written for one structure of values, line by line, and compiled by Python.

Nothing of the user's becomes text but keys that are plain texts and numbers: everything else is bound to a name.

JAX flattens any tree; then its structure is compared with what it was. For lists, tuples, dicts and named tuples
`unpacker` writes a function of a few lines that looks at the same things and takes the arrays on the way, in a third of
the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import jax

_tree: Any = jax.tree  # whose structures have no type
_LARGEST = 1000  # leaves: Python compiles some 50,000 lines in a second, and JAX's way is as fast for large trees
_BY_VALUE = (int, str, bytes)
_BY_TEXT = (float, complex)  # 0.0 and -0.0 are equal, and nan equals nothing
GENERATED = "<explorer: "  # the file of such functions begins so
Unpack = Callable[[tuple[Any, ...]], list[Any] | None]


class Generated:
    """A function while it is written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._bound: dict[str, Any] = {}
        self._names: dict[int, str] = {}  # by address, while `_bound` keeps each value alive
        self._locals = 0

    def add(self, line: str) -> None:
        self.lines.append(line)

    def require(self, condition: str) -> None:
        """Give None unless a condition holds."""
        self.add(f"if not ({condition}): return None")

    def local(self) -> str:
        """A new name for a local variable."""
        self._locals += 1
        return f"v{self._locals}"

    def bind(self, value: Any) -> str:
        """The global name that stands for a value."""
        name = self._names.get(id(value))
        if name is None:
            name = self._names[id(value)] = f"c{len(self._bound)}"
            self._bound[name] = value
        return name

    def key(self, value: Any) -> str:
        """An expression for a key of a dict."""
        return repr(value) if type(value) in (str, int) else self.bind(value)

    def same(self, local: str, value: object) -> str:
        """A condition: a local is this value, or of its class and equal to it if that is a number or a text."""
        kind, same = type(value), self.bind(value)
        if kind in _BY_VALUE:
            return f"{local} is {same} or type({local}) is {self.bind(kind)} and {local} == {same}"
        if kind in _BY_TEXT:
            return f"{local} is {same} or type({local}) is {self.bind(kind)} and repr({local}) == {repr(value)!r}"
        return f"{local} is {same}"

    def function(self, name: str, parameters: Sequence[str], or_none: bool = False) -> Callable[..., Any]:
        """The function; with `or_none` it gives None instead of an error."""
        lines = [f"def {name}({', '.join(parameters)}):"]
        if or_none:
            lines += [" try:", *(f"  {line}" for line in self.lines), " except Exception: return None"]
        else:
            lines += [f" {line}" for line in self.lines or ["pass"]]
        return compiled(name, "\n".join(lines), self._bound)


def compiled(name: str, text: str, namespace: dict[str, Any]) -> Callable[..., Any]:
    """The function of a name that a text defines, with the names that it reads."""
    exec(compile(text, f"{GENERATED}{name}>", "exec"), namespace)
    return namespace.pop(name)


def bulk(names: Sequence[str]) -> str:
    """A tuple of some names."""
    return f"({', '.join(names)},)" if names else "()"


def never(*values: object) -> None:
    """Where no function can be written."""


class _Unknown(Exception):
    """Only JAX flattens this."""


def unpacker(structure: Any, leaves: Sequence[Any], places: frozenset[int]) -> Unpack:
    """Write what gives the arrays of values that have a structure; None where they have another, or other leaves.

    Args:
        structure: Of a tuple.
        leaves: By what those are compared that are no arrays.
        places: Which of the leaves are arrays.
    """
    if len(leaves) > _LARGEST:
        return never
    source, arrays, numbered = Generated(), list[str](), iter(enumerate(leaves))

    def write(structure: Any, local: str) -> None:
        node = structure.node_data()
        if node is not None:
            inner = [source.local() for _ in structure.children()]
            _open(source, node, local, inner)
            for name, child in zip(inner, structure.children(), strict=True):
                write(child, name)
            return
        at, value = next(numbered)
        if at in places:
            arrays.append(local)
        else:
            source.require(source.same(local, value))

    try:
        write(structure, "values")
    except _Unknown:
        return never
    source.add(f"return [{', '.join(arrays)}]")
    return cast(Unpack, source.function("unpack", ["values"], or_none=True))


def _open(source: Generated, node: tuple[type[Any], Any], local: str, inner: Sequence[str]) -> None:
    """Compare a container with one node of a structure, and give names to what is in it."""
    kind, keys = node
    if kind is type(None):
        source.require(f"{local} is None")
    elif kind is dict and all(type(key) in (int, str) for key in keys):
        source.require(f"type({local}) is dict and len({local}) == {len(inner)}")
        for name, key in zip(inner, keys, strict=True):
            source.add(f"{name} = {local}[{key!r}]")
    elif kind in (list, tuple) or _is_named_tuple(kind, len(inner)):
        source.require(f"type({local}) is {source.bind(kind)} and len({local}) == {len(inner)}")
        source.add(f"{bulk(inner)} = {local}")
    else:
        raise _Unknown


def _is_named_tuple(cls: type[Any], count: int) -> bool:
    """Whether JAX takes a class apart as the tuple that it is: no other way was registered for it."""
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
