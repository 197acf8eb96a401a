"""From JAX's `PyTreeDef` to a `TreeNode`."""

from __future__ import annotations

import inspect
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, cast

from jax import tree_util

from explorer.ledger.functions import argument_name, clean
from explorer.ledger.identity import Equals
from explorer.ledger.static_fields import graph_states, static_fields
from explorer.model.events.key import LEAF, NONE, TreeNode, split_path

_trees: Any = tree_util  # its annotations are partial
_LONGEST = 2_000  # characters of what one class keeps beside its arrays
_values = Equals(4_096)  # what classes keep beside their arrays; JAX's own caches hold it as well


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
        built.append(_read_graph(node, children) or _read_node(node.node_data(), children, own_paths))
    return built[0]


def argument_paths(function: Any, treedef: Any, is_whole: bool) -> tuple[str, ...]:
    """The paths of the leaves of (positional arguments, keyword arguments), with the names of `function`'s parameters.

    Args:
        is_whole: The arguments are all that the function takes; else it isn't known which of them they are.
    """
    parameters = _parameters(function) if is_whole else []
    leaves: list[tuple[Any, Any]] = _trees.tree_leaves_with_path(treedef.unflatten(range(treedef.num_leaves)))
    return tuple(_argument_path(parameters, *path) for path, _ in leaves)


def _argument_path(parameters: list[inspect.Parameter], which: Any, argument: Any, *inside: Any) -> str:
    name = argument_name(parameters, argument.idx) if which.idx == 0 else str(argument.key)
    return name + _trees.keystr(inside)


def _parameters(function: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin's
        return []


def named_paths(treedef: Any, paths: Sequence[str]) -> tuple[str, ...]:
    """The paths of leaves as their author wrote them: `model.layers[0].kernel`, for the n-th array of an nnx object."""
    renamed = list(paths)
    rest: list[tuple[Any, int]] = [(treedef, 0)]  # each with the index of its first leaf
    while rest:
        node, at = rest.pop()
        children: Sequence[Any] = node.children() if node.num_nodes > 1 else ()
        graph = graph_states(node.node_data()[0], _graphdef(children)) if len(children) == 2 else None
        if graph is not None and len(graph.paths) == node.num_leaves:
            root = paths[at].partition(".states[")[0] if graph.paths else ""
            renamed[at : at + node.num_leaves] = [root + path for path in graph.paths]
            continue
        for child in children:
            rest.append((child, at))
            at += child.num_leaves
    return tuple(renamed)


def _graphdef(children: Sequence[Any]) -> Any:
    data = children[0].node_data()
    return data[1] if data is not None else None


def _read_graph(node: Any, children: tuple[TreeNode, ...]) -> TreeNode | None:
    """The node of an nnx object, whose arrays `nnx.jit` hands over as a list; None if it is none."""
    if len(children) != 2:
        return None
    graph = graph_states(node.node_data()[0], _graphdef(node.children()))
    arrays = children[1].children[0].children if graph is not None and len(children[1].children) == 1 else ()
    if graph is None or len(graph.paths) != len(arrays):
        return None
    return TreeNode("class", graph.name, graph.paths, "", arrays, _fields(graph.fields))


def _fields(values: Sequence[tuple[str, Any]]) -> tuple[tuple[str, str, int], ...]:
    return tuple((step, _print(value), _values.of(value)) for step, value in values)


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
    named = _fields(static_fields(cast("type[Any]", kind), data, steps)) if data is not None else ()
    return TreeNode("class", kind.__name__, steps, "" if data is None else _print(data), children, named)


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
