"""Keys: what JAX's caches compare when a function is called, as plain values, with the structure of the arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

TREE_KINDS = ("leaf", "None", "tuple", "list", "dict", "namedtuple", "class", "text")
# Weak, so that a tree is freed with the last key that holds it.
_nodes: WeakValueDictionary[tuple[Any, ...], TreeNode] = WeakValueDictionary()
_lock = RLock()  # a collection of garbage can come at any point, and run code that makes a node


class TreeNode:
    """Container or leaf of an argument tree. Equal nodes are one object, so `is` and `==` agree.

    Args:
        kind: `leaf`, `None`, `tuple`, `list`, `dict`, `namedtuple`, `class`, or `text` (only the printed tree is known,
            as in files of version 0.1.0).
        name: Class name of a `namedtuple` or a `class`.
        steps: Python access to each child: `['w']`, `[0]`, `.mu`; empty if unknown.
        static: Printed static fields of a class; the printed tree of a `text`.
        children: One child per step.
        fields: Parts of `static` for a class with named fields: access, printed value, and a number that is equal for
            equal values, 0 if unknown, negative for the class of the value; without access the node's own class.
    """

    __slots__ = ("__weakref__", "children", "fields", "kind", "leaves", "name", "size", "static", "steps")
    kind: str
    name: str
    steps: tuple[str, ...]
    static: str
    children: tuple[TreeNode, ...]
    fields: tuple[tuple[str, str, int], ...]
    leaves: int
    """Number of leaves at or below it."""
    size: int
    """Number of nodes at or below it, repeated nodes counted each time."""

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
        # Unpickled through `__new__`, so that equal nodes stay one object.
        return TreeNode, (self.kind, self.name, self.steps, self.static, self.children, self.fields)

    # Equal nodes are one object, so a copy is the node itself.
    def __copy__(self) -> TreeNode:
        return self

    def __deepcopy__(self, memo: object) -> TreeNode:
        return self

    def distinct(self) -> Iterator[TreeNode]:
        """Yield every distinct node of the tree once, children before their parents."""
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
        """Return the steps from this node down to its first leaf.

        The list is empty if the node is a leaf or contains no leaf.
        """
        steps: list[str] = []
        node = self
        while node.leaves and node.kind != "leaf":  # one of the children has the leaves, so this ends at one
            step, node = next(pair for pair in zip(node.steps, node.children, strict=True) if pair[1].leaves)
            steps.append(step)
        return steps

    def __str__(self) -> str:
        """Return the tree in one line, such as `((*, {'w': *, 'b': None}), {})`; a star is an array."""
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
    """Return the steps of a leaf's path: `state.params['w'][0]` gives `state`, `.params`, `['w']`, `[0]`.

    If brackets don't match, the rest of the path is one step.
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
    """Identity of a compiled function.

    Args:
        name: Name as JAX prints it: `step`, `<lambda>`.
        file, line: Position of the definition; empty and 0 if unknown. Functions defined at one position are one
            *family*: a lambda in a loop is many function objects and one family.
        made: Transformations that made the object, outermost first: `("grad",)`, `("partial",)`, `("method",)`,
            `("lambda",)`; empty for a plain `def`.
        identity: Number of the function object; equal numbers are the same object.
        wrapper: Number of the `jax.jit(…)` object, or of the derived jaxpr; equal numbers are the same object.
        eager: True for a function of JAX itself, compiled for an operation outside of any `jit`.
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
        """Return True if `explorer.compile` made the function, which then compiles each shape once on request."""
        return self.made[:1] == (AHEAD,)

    @property
    def is_derived(self) -> bool:
        """Return True for a jaxpr that JAX derived from a function, such as the backward pass of its gradient."""
        return self.made == ("derived",)

    @property
    def is_hot(self) -> bool:
        """Return True for the compiled copy of a hot function."""
        return self.made[:1] == (HOT,)

    @property
    def family(self) -> tuple[str, str, int]:
        """Return name, file and line, which all functions of one family share."""
        return self.name, self.file, self.line

    def is_of_family(self, other: Function) -> bool:
        """Return True if both functions have the same name, file and line; faster than comparing `family`."""
        return self.line == other.line and self.name == other.name and self.file == other.file


class Leaf(NamedTuple):
    """One array argument, or one array inside an argument.

    It is a tuple because a call has hundreds: creating a frozen dataclass takes twenty times as long.

    Args:
        path: Python expression: `x`, `batch['y']`, `state.params[0]`.
        shape: Sizes; the name of a symbolic dimension.
        dtype: NumPy's name: `float32`.
        weak: True for a weak type, as of a Python number.
        given: Kind of value: `jax`, `numpy`, `float`, `int`, `bool`, `complex`, `struct`, or a type's name.
        committed: True if bound to its device; None for values that are no JAX arrays.
        sharding: Sharding as JAX prints it; empty for one device.
        devices: Devices: `("cpu:0",)`.
        layout: Memory layout, unless it is the default.
        spread: Parts of the sharding: partition (`P('data')`), mesh (`data=4`) and memory; empty if unknown or
            trivial.
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
        identity: Number of the object if its class has no `__eq__`, so that only identical objects are equal; else 0.
        token: Hash that is equal for values that the cache treats as equal. Unequal values may have one repr.
        keyword: True if passed by name: `f(x, n=2)` and `f(x, 2)` are two signatures.
        number: Number that is equal for equal values; 0 if unknown. Unequal values may have one hash, as -1 and -2.
        parts: Parts of a value that isn't a plain number or text: path, printed value, and a number as `number`;
            negative for a part's class.
    """

    path: str
    value: str
    type: str
    identity: int = 0
    token: int = 0
    keyword: bool = False
    number: int = 0
    parts: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Key:
    """Cache key of one call.

    Args:
        function: The called function.
        leaves: Array arguments in the order of the tree, as a tuple or a compact equivalent.
        tree: Structure of all arguments; None if unknown.
        statics: Static arguments.
        donated: Paths of donated leaves.
        context: Settings in the cache key (`jax_enable_x64`, matmul precision, the active mesh, …), by name.
        options: XLA's compiler options, by name.
        wrapping: Other arguments of the `jax.jit`, by name: `in_shardings`, `out_shardings`, `device`, `backend`,
            `keep_unused`, `inline`, `static_argnums`, `static_argnames`.
        grown: Paths of leaves that the function returns with one slightly larger size, such as a cache.
        structure: Number of `tree`, equal for trees that the cache treats as equal (static fields may differ and print
            alike); 0 if unknown.
        guard: For a hot function, the value that a guard found changed: name, value before and now; empty for none.
        transformations: Transformations around the call, outermost first: `("vmap", "linearize")`; empty for none.
        losses: Number that changes whenever JAX's caches are seen to lose programs of the function.
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
    transformations: tuple[str, ...] = ()
    losses: int = 0
