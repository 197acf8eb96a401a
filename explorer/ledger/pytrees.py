"""From JAX's `PyTreeDef` to a `TreeNode`."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, cast

from explorer.ledger.functions import clean
from explorer.model.events.pytree import LEAF, NONE, TreeNode, split_path

_LONGEST = 2_000  # characters of what one class keeps beside its arrays


def read_tree(treedef: Any, paths: Sequence[str]) -> TreeNode:
    """The structure of some arguments.

    Nothing of the user's runs but the `repr` of dictionary keys and of what classes keep beside their arrays, and no
    error of those comes out.

    Args:
        treedef: Its `PyTreeDef`.
        paths: Of its leaves, in order: they alone say how a class names its children.
    """
    rest: list[Any] = [treedef]
    preorder: list[tuple[Any, int]] = []
    while rest:  # containers of containers may be nested deeper than Python's stack
        node = rest.pop()
        children: Sequence[Any] = node.children() if node.num_nodes > 1 else ()
        preorder.append((node, len(children)))
        rest += reversed(children)
    # Backwards each node comes after its children, which lie on top of the stack, the first one uppermost.
    built: list[TreeNode] = []
    at = treedef.num_leaves  # index of the first leaf at or behind the node
    for node, count in reversed(preorder):
        if count == 0 and node.num_leaves:
            at -= 1
            built.append(LEAF)
            continue
        children = tuple(reversed(built[len(built) - count :]))
        del built[len(built) - count :]
        own_paths = paths[at:] if len(paths) == treedef.num_leaves else ()
        built.append(_read_node(node.node_data(), children, own_paths))
    return built[0]


def _read_node(node: tuple[Any, Any], children: tuple[TreeNode, ...], paths: Sequence[str]) -> TreeNode:
    """The node of one container; `paths` begins with its own leaves'."""
    kind, data = node
    if kind is type(None):
        return NONE
    if kind is tuple or kind is list:
        return TreeNode(kind.__name__, steps=_indices(len(children)), children=children)
    if kind is dict:
        return TreeNode("dict", steps=_keys(data), children=children)
    fields: tuple[str, ...] = getattr(kind, "_fields", ())
    if data is None and issubclass(kind, tuple) and len(fields) == len(children):
        return TreeNode("namedtuple", kind.__name__, tuple(f".{name}" for name in fields), children=children)
    if kind is OrderedDict:
        steps = _keys(cast("Any", data))
    elif kind is defaultdict:
        _, keys = cast("tuple[Any, Any]", data)
        steps = _keys(keys)
    else:
        steps = _named_by_leaves(children, paths)
    return TreeNode("class", kind.__name__, steps, "" if data is None else _print(data), children)


def _indices(count: int) -> tuple[str, ...]:
    return tuple(f"[{i}]" for i in range(count))


def _keys(keys: Sequence[Any]) -> tuple[str, ...]:
    return tuple(f"[{key!r}]" if type(key) is str else f"[{_print(key)}]" for key in keys)


def _named_by_leaves(children: tuple[TreeNode, ...], paths: Sequence[str]) -> tuple[str, ...]:
    """The step to each child, from the path of the first leaf below it; empty where there is none."""
    steps: list[str] = []
    at = 0
    for child in children:
        parts = split_path(paths[at]) if child.leaves and paths else []
        depth = len(child.steps_to_leaf()) + 1
        steps.append(parts[-depth] if len(parts) > depth else "")
        at += child.leaves
    return tuple(steps)


def _print(value: Any) -> str:
    """Its repr without addresses. Of a long one the start, and a digest: what differs in it still differs."""
    try:
        text = clean(repr(value), len(repr(value)))
    except Exception:  # the user's own
        return f"<{type(value).__qualname__}>"
    if len(text) <= _LONGEST:
        return text
    digest = blake2b(text.encode(errors="surrogatepass"), digest_size=4).hexdigest()
    return f"{text[:_LONGEST]}… ({len(text):,} characters, {digest})"
