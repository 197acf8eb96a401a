"""Keys: what JAX's caches compare when a function is called, as plain values, with the structure of the arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

TREE_KINDS = ("leaf", "None", "tuple", "list", "dict", "namedtuple", "class", "text")
_nodes: WeakValueDictionary[tuple[Any, ...], TreeNode] = WeakValueDictionary()
_lock = RLock()  # a collection of garbage can come at any point, and run code that makes a node


class TreeNode:
    """One container, or a leaf. Nodes of equal content are one object, so `is` and `==` are the same.

    Args:
        kind: `leaf`, `None`, `tuple`, `list`, `dict`, `namedtuple`, `class`, or `text`: a tree of which only its print
            is known, as files of version 0.1.0 hold it.
        name: The class's name, of a `namedtuple` or a `class`.
        steps: How Python writes the way from this node to each child: `['w']`, `[0]`, `.mu`; empty where that can't be
            known.
        static: What a class keeps beside its children, printed; the print itself of a `text`.
        children: One for each step.
        fields: The same as `static` in parts, of a class whose fields have names: the step to each, its print, and a
            number that is equal for equal values, 0 where that can't be known.
    """

    __slots__ = ("__weakref__", "children", "fields", "kind", "leaves", "name", "size", "static", "steps")
    kind: str
    name: str
    steps: tuple[str, ...]
    static: str
    children: tuple[TreeNode, ...]
    fields: tuple[tuple[str, str, int], ...]
    leaves: int
    """How many leaves are at or below it."""
    size: int
    """How many nodes are at or below it, each as often as it stands there."""

    def __new__(
        cls,
        kind: str,
        name: str = "",
        steps: tuple[str, ...] = (),
        static: str = "",
        children: tuple[TreeNode, ...] = (),
        fields: tuple[tuple[str, str, int], ...] = (),
    ) -> TreeNode:
        content = kind, name, steps, static, children, fields
        with _lock:
            node = _nodes.get(content)
            if node is None:
                if len(steps) != len(children):
                    raise ValueError(f"{len(steps)} steps lead to {len(children)} children")
                node = _nodes[content] = super().__new__(cls)
                node.kind, node.name, node.steps, node.static, node.children, node.fields = content
                node.size = 1 + sum(child.size for child in children)
                node.leaves = 1 if kind == "leaf" else sum(child.leaves for child in children)
        return node

    def __reduce__(self) -> tuple[Any, ...]:
        return TreeNode, (self.kind, self.name, self.steps, self.static, self.children, self.fields)

    def __copy__(self) -> TreeNode:
        return self

    def __deepcopy__(self, memo: object) -> TreeNode:
        return self

    def distinct(self) -> Iterator[TreeNode]:
        """Every distinct node of the tree once, children before what they are in."""
        seen: set[TreeNode] = set()
        rest: list[tuple[TreeNode, bool]] = [(self, False)]
        while rest:  # each node is opened once, so this ends
            node, is_open = rest.pop()
            if is_open:
                yield node
            elif node not in seen:
                seen.add(node)
                rest.append((node, True))
                rest += [(child, False) for child in reversed(node.children)]

    def steps_to_leaf(self) -> list[str]:
        """The steps down to the first leaf below it; none if it is a leaf, or if none is below it."""
        steps: list[str] = []
        node = self
        while node.leaves and node.kind != "leaf":  # one of the children has the leaves, so this ends at one
            step, node = next(pair for pair in zip(node.steps, node.children, strict=True) if pair[1].leaves)
            steps.append(step)
        return steps

    def __str__(self) -> str:
        """The tree in one line: `((*, {'w': *, 'b': None}), {})`; a star is an array."""
        texts: dict[TreeNode, str] = {}
        for node in self.distinct():
            texts[node] = _format(node, [texts[child] for child in node.children])
        return texts[self]

    def __repr__(self) -> str:
        return f"TreeNode({self})"


def _format(node: TreeNode, children: list[str]) -> str:
    if node.kind in ("leaf", "None", "text"):
        return {"leaf": "*", "None": "None"}.get(node.kind, node.static)
    if node.kind == "dict":
        return "{" + ", ".join(f"{step[1:-1]}: {text}" for step, text in zip(node.steps, children, strict=True)) + "}"
    inside = ", ".join(children)
    if node.kind == "list":
        return f"[{inside}]"
    if node.kind == "tuple":
        return f"({inside}{',' if len(children) == 1 else ''})"
    return f"{node.name}{f'[{node.static}]' if node.static else ''}({inside})"


LEAF = TreeNode("leaf")
NONE = TreeNode("None")


# A key is written as its repr, in which brackets and dots are no steps.
_TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|.""", re.DOTALL)


def split_path(path: str) -> list[str]:
    """A leaf's path in its steps: `state.params['w'][0]` → `state`, `.params`, `['w']`, `[0]`.

    What is left of a path whose brackets don't match is one step.
    """
    steps: list[str] = []
    start = depth = 0
    for token in _TOKEN.finditer(path):
        if depth == 0 and token[0] in (".", "[") and token.start() > start:
            steps.append(path[start : token.start()])
            start = token.start()
        depth += (token[0] in "([{") - (token[0] in ")]}")
    return [*steps, path[start:]] if start < len(path) else steps


HOT = "auto_compile"  # how a function was made that hot paths compile
AHEAD = "compile"  # how a function was made that `ex.compile` builds for the shapes that it is given


@dataclass(frozen=True, slots=True)
class Function:
    """The function that is compiled.

    Args:
        name: As JAX prints it: `step`, `<lambda>`.
        file, line: Where it is defined; empty and 0 if that can't be known. Functions defined at one place are one
            *family*: a lambda in a loop is many function objects and one family.
        made: How the object came about, outermost first: `("grad",)`, `("partial",)`, `("method",)`, `("lambda",)`;
            empty for a plain `def`.
        identity: A number for this very function object: equal numbers are the same object.
        wrapper: A number for this very `jax.jit(…)`: equal numbers are the same wrapper.
        eager: It is one of JAX's own, compiled because an operation ran outside of any `jit`.
    """

    name: str
    file: str = ""
    line: int = 0
    made: tuple[str, ...] = ()
    identity: int = 0
    wrapper: int = 0
    eager: bool = False

    @property
    def is_ahead(self) -> bool:
        """It is an `Executable`'s: each shape is compiled once, because somebody asked for that."""
        return self.made[:1] == (AHEAD,)

    @property
    def is_hot(self) -> bool:
        """It is a hot function's compiled copy."""
        return self.made[:1] == (HOT,)

    @property
    def family(self) -> tuple[str, str, int]:
        """What functions have in common that a person would call the same."""
        return self.name, self.file, self.line

    def is_of_family(self, other: Function) -> bool:
        """Whether both have one family, without naming it: a call is held against dozens of others."""
        return self.line == other.line and self.name == other.name and self.file == other.file


class Leaf(NamedTuple):
    """One array argument, or one array inside an argument.

    A tuple, for there are hundreds in a call: a frozen dataclass takes twenty times as long to make.

    Args:
        path: As Python would write it: `x`, `batch['y']`, `state.params[0]`.
        shape: Sizes; a symbolic dimension by its name.
        dtype: NumPy's name for it: `float32`.
        weak: Whether the type is weak, as that of a Python number is.
        given: What was passed: `jax`, `numpy`, `float`, `int`, `bool`, `complex`, `struct`, or a type's name.
        committed: Whether it is bound to its device; None where that means nothing (no JAX array).
        sharding: How it is spread over devices, as JAX prints it: empty for one device.
        devices: Where it is: `("cpu:0",)`.
        layout: How it lies in memory, where that is not the default.
        spread: The sharding in parts: partition (`P('data')`), mesh (`data=4`) and memory; empty where that can't be
            known or goes without saying.
    """

    path: str
    shape: tuple[int | str, ...]
    dtype: str
    weak: bool = False
    given: str = "jax"
    committed: bool | None = None
    sharding: str = ""
    devices: tuple[str, ...] = ()
    layout: str = ""
    spread: tuple[str, str, str] | tuple[()] = ()


@dataclass(frozen=True, slots=True)
class Static:
    """One static argument.

    Args:
        path: The argument's name.
        value: Its repr, cut short.
        type: Its type's name.
        identity: A number for the object, where its equality is that of the object (no `__eq__` of its own); else 0.
        token: Equal for values that are equal, as the cache sees them (a hash): two values may have one repr.
        keyword: It was given by its name: `f(x, n=2)` and `f(x, 2)` are two signatures.
    """

    path: str
    value: str
    type: str
    identity: int = 0
    token: int = 0
    keyword: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """One call, as the caches see it.

    Args:
        function: What was called.
        leaves: Its array arguments, in the order of the tree: a tuple, or what is equal to one and takes less.
        tree: The structure of all arguments; None if it can't be known.
        statics: Its static arguments.
        donated: Paths of the leaves whose buffers are given away.
        context: Settings that are part of the cache key (`jax_enable_x64`, matmul precision, the mesh in force, …) by
            name.
        options: XLA's compiler options, by name.
        wrapping: What the `jax.jit` was given besides, by name: `in_shardings`, `out_shardings`, `device`, `backend`,
            `keep_unused`, `inline`, `static_argnums`, `static_argnames`.
        grown: Paths of leaves that the function returns again, but for one size that is a little larger: of a cache.
        structure: A number for `tree`: equal for trees that are equal, as the cache sees them (what a class keeps
            beside its arrays may be unequal and print alike); 0 if it can't be had.
        guard: Of a hot function, what a guard saw changed since its copy for such calls was compiled: name, value
            before and now; empty for none.
    """

    function: Function
    leaves: Sequence[Leaf] = ()
    tree: TreeNode | None = None
    statics: tuple[Static, ...] = ()
    donated: tuple[str, ...] = ()
    context: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    wrapping: tuple[tuple[str, str], ...] = ()
    structure: int = 0
    grown: tuple[str, ...] = ()
    guard: tuple[str, ...] = ()
