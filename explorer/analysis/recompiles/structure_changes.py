"""What differs between two argument trees, said at the place where it differs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from explorer.model.cut_text import shortened, two_shortened
from explorer.model.events.key import Key

__all__ = ["Change", "changes"]

_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


@dataclass(frozen=True, slots=True)
class Change:
    """One place where two trees differ.

    Args:
        path: `batch['mask']`; the argument's name if it is the argument itself.
        before, after: What stood there: `absent`, `None`, `array`, `list of 2`, …
        how: `added`, `removed`, `moved` (positional ↔ keyword), `kept` (what a class keeps beside its arrays), `other`.
        parent: What it was added to or removed from; empty for an argument.
    """

    path: str
    before: str
    after: str
    how: str = "other"
    parent: str = ""


@dataclass(slots=True)
class _Node:
    kind: str  # "*", "None", "tuple", "list", "dict", or a class's name
    keys: tuple[str, ...] = ()
    kept: str = ""
    children: list[_Node] = field(default_factory=list["_Node"])
    leaf: int = -1


def changes(new: Key, old: Key) -> tuple[Change, ...]:
    """Where the trees of two keys differ, in the order of the arguments; empty if that can't be read from them."""
    try:
        after, before = _parsed(new.tree), _parsed(old.tree)
    except (ValueError, IndexError, RecursionError):
        return _by_paths(new, old)
    found: list[Change] = []
    pair = _Pair(new, old, found)
    if _is_call(after) and _is_call(before):
        pair.calls(after, before)
    else:
        pair.nodes(after, before, "")
    return tuple(found) or _by_paths(new, old) or pair.alike(after)


def _by_paths(new: Key, old: Key) -> tuple[Change, ...]:
    after, before = {leaf.path: leaf for leaf in new.leaves}, {leaf.path: leaf for leaf in old.leaves}
    added = [Change(path, "absent", "array", "added", _parent(path)) for path in after if path not in before]
    removed = [Change(path, "array", "absent", "removed", _parent(path)) for path in before if path not in after]
    return (*added, *removed)


class _Pair:
    """Walks two trees side by side."""

    def __init__(self, new: Key, old: Key, found: list[Change]) -> None:
        self.new, self.old, self.found = new, old, found

    def alike(self, root: _Node) -> tuple[Change, ...]:
        """The trees print alike: if one class alone keeps something that needn't be equal to its like, it is that."""
        nodes = [root]
        for node in nodes:
            nodes += node.children
        kept = [node for node in nodes if "<" in node.kept]
        if len(kept) != 1:
            return ()
        return (Change(self.path(kept[0], None, ""), _kept(kept[0]), _kept(kept[0]), "kept"),)

    def calls(self, new: _Node, old: _Node) -> None:
        """The top: positional arguments and keyword ones. One that moved between the two is the same argument."""
        (args, kwargs), (old_args, old_kwargs) = new.children, old.children
        named, old_named = dict(zip(kwargs.keys, kwargs.children, strict=True)), dict(
            zip(old_kwargs.keys, old_kwargs.children, strict=True)
        )  # fmt: skip
        for index in range(max(len(args.children), len(old_args.children))):
            here = args.children[index] if index < len(args.children) else None
            there = old_args.children[index] if index < len(old_args.children) else None
            name = self.argument(here, there, index)
            if here is not None and there is not None:
                self.nodes(here, there, name)
            elif here is not None:
                self.one_sided(name, here, old_named.pop(repr(name), None), moved="keyword")
            elif there is not None:
                self.one_sided(name, named.pop(repr(name), None), there, moved="positional")
        for key in [*named, *(key for key in old_named if key not in named)]:
            self.named(key, named.get(key), old_named.get(key))

    def named(self, key: str, new: _Node | None, old: _Node | None) -> None:
        name = key.strip("'\"")
        if new is not None and old is not None:
            self.nodes(new, old, name)
        else:
            self.one_sided(name, new, old, moved="")

    def one_sided(self, name: str, new: _Node | None, old: _Node | None, moved: str) -> None:
        if new is not None and old is not None:
            now = "positional" if moved == "keyword" else "keyword"
            self.found.append(Change(name, moved, now, "moved"))
        elif new is not None:
            self.found.append(Change(name, "absent", _described(new), "added"))
        elif old is not None:
            self.found.append(Change(name, _described(old), "absent", "removed"))

    def argument(self, new: _Node | None, old: _Node | None, index: int) -> str:
        return self.path(new, old, "") or f"argument {index}"

    def path(self, new: _Node | None, old: _Node | None, otherwise: str) -> str:
        """A node's path is that of a leaf below it, less the steps down to that leaf."""
        for node, key in ((new, self.new), (old, self.old)):
            leaf, steps = _first_leaf(node) if node is not None else (-1, 0)
            if 0 <= leaf < len(key.leaves):
                parts = _parts(key.leaves[leaf].path)
                if len(parts) > steps:
                    return "".join(parts[: len(parts) - steps])
        return otherwise

    def nodes(self, new: _Node, old: _Node, path: str, is_above: bool = False) -> None:
        """Compare two nodes; `is_above`: the path is that of something they are in, for theirs can't be known."""
        if new.kind != old.kind:
            self.found.append(Change(path, _described(old), _described(new)))
        elif new.kind == "dict" and new.keys != old.keys:
            self.dicts(new, old, path, is_above)
        elif new.kept != old.kept:
            before, after = two_shortened(old.kept, new.kept)
            self.found.append(Change(path, f"{old.kind}[{before}]", f"{new.kind}[{after}]", "kept"))
        elif len(new.children) != len(old.children):
            self.found.append(Change(path, _described(old), _described(new)))
        else:
            for index, (here, there) in enumerate(zip(new.children, old.children, strict=True)):
                if here.kind != "*" or there.kind != "*":
                    known, step = self.path(here, there, ""), _step(new, index)
                    is_lost = not known and (is_above or not step)
                    self.nodes(here, there, known or (path if is_lost else f"{path}{step}"), is_lost)

    def dicts(self, new: _Node, old: _Node, path: str, is_above: bool) -> None:
        here, there = dict(zip(new.keys, new.children, strict=True)), dict(zip(old.keys, old.children, strict=True))

        def inside(key: str) -> str:
            return path if is_above else f"{path}[{key}]"

        for key, node in here.items():
            if key not in there:
                self.found.append(Change(inside(key), "absent", _described(node), "added", path))
            else:
                self.nodes(node, there[key], inside(key), is_above)
        for key, node in there.items():
            if key not in here:
                self.found.append(Change(inside(key), _described(node), "absent", "removed", path))


def _step(node: _Node, index: int) -> str:
    if node.kind == "dict":
        return f"[{node.keys[index]}]"
    # How a class names what is in it, only a leaf's path can tell: without one the class's own path is still true.
    return f"[{index}]" if node.kind in ("tuple", "list") else ""


def _is_call(node: _Node) -> bool:
    return node.kind == "tuple" and [child.kind for child in node.children] == [
        "tuple",
        "dict",
    ]  # (args, kwargs), as jax.jit flattens a call


def _first_leaf(node: _Node) -> tuple[int, int]:
    """The first leaf at or below a node, and how many steps down it is; -1 if there is none."""
    if node.kind == "*":
        return node.leaf, 0
    for child in node.children:
        leaf, steps = _first_leaf(child)
        if leaf >= 0:
            return leaf, steps + 1
    return -1, 0


def _described(node: _Node) -> str:
    if node.kind == "*":
        return "array"
    if node.kind == "dict":
        return f"dict of {len(node.children)}"
    if node.kind in ("tuple", "list"):
        return f"{node.kind} of {len(node.children)}"
    return node.kind


def _kept(node: _Node) -> str:
    return f"{node.kind}[{shortened(node.kept)}]"


def _parts(path: str) -> list[str]:
    """`state.params['w'][0]` → `state`, `.params`, `['w']`, `[0]`."""
    parts: list[str] = []
    at = 0
    while at < len(path):
        if path[at] == "[":
            end = _past(path, at)
        else:
            end = at + 1
            while end < len(path) and path[end] not in ".[":
                end += 1
        parts.append(path[at:end])
        at = end
    return parts


def _parent(path: str) -> str:
    return "".join(_parts(path)[:-1])


def _past(text: str, at: int) -> int:
    """Where the bracket that opens at `at` has been closed; brackets in quotes don't count."""
    depth = 0
    while at < len(text):
        char = text[at]
        if char in "'\"":
            at = _past_quote(text, at)
            continue
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    raise ValueError("a bracket that isn't closed")


def _past_quote(text: str, at: int) -> int:
    quote, at = text[at], at + 1
    while text[at] != quote:
        at += 2 if text[at] == "\\" else 1
    return at + 1


@lru_cache(maxsize=64)
def _parsed(text: str) -> _Node:
    """A tree, from the way JAX prints one: `PyTreeDef(((*, {'a': None}), {}))`."""
    inner = text.strip()
    if inner.startswith("PyTreeDef(") and inner.endswith(")"):
        inner = inner[len("PyTreeDef(") : -1]
    reader = _Reader(inner)
    node = reader.node()
    if reader.at != len(inner):
        raise ValueError("more than a tree")
    return node


_CUSTOM = re.compile(r"CustomNode\(([\w.<>]+)\[")


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at, self.leaves = text, 0, 0

    def node(self) -> _Node:
        text = self.text
        if text.startswith("*", self.at):
            self.at += 1
            self.leaves += 1
            return _Node("*", leaf=self.leaves - 1)
        if text.startswith("None", self.at):
            self.at += 4
            return _Node("None")
        if text[self.at] == "(":
            return _Node("tuple", children=self.items(")"))
        if text[self.at] == "[":
            return _Node("list", children=self.items("]"))
        if text[self.at] == "{":
            return self.dict()
        return self.custom()

    def items(self, closing: str) -> list[_Node]:
        self.at += 1
        found: list[_Node] = []
        while self.text[self.at] != closing:
            found.append(self.node())
            self.comma()
        self.at += 1
        return found

    def comma(self) -> None:
        while self.text[self.at] in ", ":
            self.at += 1

    def dict(self) -> _Node:
        self.at += 1
        keys: list[str] = []
        children: list[_Node] = []
        while self.text[self.at] != "}":
            keys.append(self.key())
            children.append(self.node())
            self.comma()
        self.at += 1
        return _Node("dict", tuple(keys), children=children)

    def key(self) -> str:
        start = self.at
        while not self.text.startswith(": ", self.at):
            char = self.text[self.at]
            if char in "'\"":
                self.at = _past_quote(self.text, self.at)
            elif char in "([{":
                self.at = _past(self.text, self.at)
            else:
                self.at += 1
        key = self.text[start : self.at]
        self.at += 2
        return key

    def custom(self) -> _Node:
        match = _CUSTOM.match(self.text, self.at)
        if match is None:
            raise ValueError("no tree")
        name, opening = match.group(1), match.end() - 1
        kept_until = _past(self.text, opening)
        kept = self.text[opening + 1 : kept_until - 1]
        self.at = kept_until
        self.comma()
        children = self.items("]")
        if self.text[self.at] != ")":
            raise ValueError("a node that isn't closed")
        self.at += 1
        if name == "namedtuple":
            return _Node(kept, children=children)
        if name in ("OrderedDict", "defaultdict"):
            return _Node(name, kept=kept, children=children)
        return _Node(name, kept=kept, children=children)
