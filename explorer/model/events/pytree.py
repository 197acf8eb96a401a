"""The structure of a call's arguments: a tree of containers, each equal subtree one object.

A training step has thousands of containers, and from call to call nearly all of them are as before. Since equal
subtrees are the same object, two trees are compared by walking only where they differ, and a hundred thousand events
share what they have in common.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from threading import RLock
from typing import Any
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
