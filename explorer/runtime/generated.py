"""Python functions that are generated and compiled for one structure of values.

Only keys that are plain texts and numbers become source text; every other value is bound to a name.

JAX can flatten any tree, after which its structure is compared. For lists, tuples, dicts and named tuples, `unpacker`
writes a short function that makes the same checks and takes the arrays along, in a third of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import jax

_tree: Any = jax.tree  # JAX's trees are untyped
_MAX_LEAVES = 1000  # Python compiles about 50,000 lines per second, and JAX flattens large trees as fast
_BY_VALUE = (int, str, bytes)
_BY_TEXT = (float, complex)  # 0.0 equals -0.0, and nan equals nothing
GENERATED = "<explorer: "  # prefix of the file name of generated functions
Unpack = Callable[[tuple[Any, ...]], list[Any] | None]


class Generated:
    """Source of a function that is being written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._bound: dict[str, Any] = {}
        self._names: dict[int, str] = {}  # by address, while `_bound` keeps each value alive
        self._locals = 0

    def add(self, line: str) -> None:
        self.lines.append(line)

    def require(self, condition: str) -> None:
        """Add a line by which the generated function returns None unless a condition holds."""
        self.add(f"if not ({condition}): return None")

    def local(self) -> str:
        self._locals += 1
        return f"v{self._locals}"

    def named(self, expression: str) -> str:
        """Add a line that assigns an expression to a new local variable, and return its name."""
        name = self.local()
        self.add(f"{name} = {expression}")
        return name

    def elements(self, local: str, count: int) -> list[str]:
        """Add a line that assigns the elements of an iterable, whose length is checked, to new local variables; return
        their names.
        """
        names = [self.local() for _ in range(count)]
        if names:
            self.add(f"{bulk(names)} = {local}")
        return names

    def bind(self, value: Any) -> str:
        """Return the name of a global of the generated function that holds `value`; each object gets one name."""
        name = self._names.get(id(value))
        if name is None:
            name = self._names[id(value)] = f"c{len(self._bound)}"
            self._bound[name] = value
        return name

    def key(self, value: Any) -> str:
        return repr(value) if type(value) in (str, int) else self.bind(value)

    def same(self, local: str, value: object) -> str:
        """Return the source of a condition: the local is this object, or has its class and, for numbers and texts,
        equals it.
        """
        kind, same = type(value), self.bind(value)
        if kind in _BY_VALUE:
            return f"{local} is {same} or type({local}) is {self.bind(kind)} and {local} == {same}"
        if kind in _BY_TEXT:
            return f"{local} is {same} or type({local}) is {self.bind(kind)} and repr({local}) == {repr(value)!r}"
        return f"{local} is {same}"

    def function(self, name: str, parameters: Sequence[str], or_none: bool = False) -> Callable[..., Any]:
        """Return the function, compiled; with `or_none` it returns None on any exception."""
        lines = [f"def {name}({', '.join(parameters)}):"]
        if or_none:
            lines += [" try:", *(f"  {line}" for line in self.lines), " except Exception: return None"]
        else:
            lines += [f" {line}" for line in self.lines or ["pass"]]
        return compiled(name, "\n".join(lines), self._bound)


def compiled(name: str, text: str, namespace: dict[str, Any]) -> Callable[..., Any]:
    exec(compile(text, f"{GENERATED}{name}>", "exec"), namespace)
    return namespace.pop(name)


def bulk(names: Sequence[str]) -> str:
    """Return the source text of a tuple that has these names: `(a, b,)`."""
    return f"({', '.join(names)},)" if names else "()"


def never(*values: object) -> None:
    """Return None: the reader or unpacker of structures that no function is generated for."""


class _Unknown(Exception): ...


def unpacker(structure: Any, leaves: Sequence[Any], places: frozenset[int]) -> Unpack:
    """Return a function of a tuple of values that returns their arrays, or None if they have another structure or
    constants.

    Args:
        structure: Structure of a tuple.
        leaves: Values that the leaves are compared with, except arrays.
        places: Indices of the leaves that are arrays.

    Returns:
        `never`, which returns None for all values, if no function can be generated.
    """
    if len(leaves) > _MAX_LEAVES:
        return never
    source, arrays, numbered = Generated(), list[str](), iter(enumerate(leaves))

    def write(structure: Any, local: str) -> None:
        node = structure.node_data()
        if node is not None:
            children = structure.children()
            for name, child in zip(_open(source, node, local, len(children)), children, strict=True):
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


def _open(source: Generated, node: tuple[type[Any], Any], local: str, count: int) -> list[str]:
    """Add the comparison of a container with one node of a structure; return the names of its elements' local
    variables.

    Raise `_Unknown` for a container of another class than list, tuple, dict, named tuple and None. Also for a dict with
    a key that is neither int nor str.
    """
    kind, keys = node
    if kind is type(None):
        source.require(f"{local} is None")
        return []
    if kind is dict and all(type(key) in (int, str) for key in keys):
        # Not by isinstance: a subclass may compute its items, or be another tree to JAX.
        source.require(f"type({local}) is dict and len({local}) == {count}")
        return [source.named(f"{local}[{key!r}]") for key in keys]
    if kind in (list, tuple) or _is_named_tuple(kind, count):
        source.require(f"type({local}) is {source.bind(kind)} and len({local}) == {count}")
        return source.elements(local, count)
    raise _Unknown


def _is_named_tuple(cls: type[Any], count: int) -> bool:
    """Return True if JAX flattens this class as the tuple that it is, without a registration of its own."""
    if not issubclass(cls, tuple) or cls.__iter__ is not tuple.__iter__:
        return False
    inside = [object() for _ in range(count)]
    # Not by the class's own `__new__`, which may run the user's code.
    probe = tuple.__new__(cast(Any, cls), inside)

    def is_inside(part: Any) -> bool:
        return part is not probe

    try:
        children: list[Any] = _tree.leaves(probe, is_leaf=is_inside)
    except Exception:
        return False
    return len(children) == count and all(one is two for one, two in zip(children, inside, strict=True))
