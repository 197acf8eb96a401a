"""Arguments as their author wrote them: the tree of a call, with the names that classes and wrappers hide.

JAX keeps a class's fields that are no arrays as one opaque value, `aux_data`, and `equinox.filter_jit` passes all
arguments to a `jax.jit` of its own. Both get the user's names back here, without importing Flax or Equinox.
"""

from __future__ import annotations

import inspect
import re
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import Field, fields, is_dataclass
from itertools import chain
from typing import Any, NamedTuple, cast

from jax import tree_util

from explorer.ledger.functions import argument_name
from explorer.ledger.values import Part, class_part, number_of, parts_of, print_value
from explorer.model.events.event import WrittenCall
from explorer.model.events.key import LEAF, NONE, TreeNode, split_path

_trees: Any = tree_util  # its annotations are partial


def read_tree(treedef: Any, paths: Sequence[str]) -> TreeNode:
    """Return the structure of some arguments, from their `PyTreeDef` and the paths of its leaves, in order.

    Only the paths tell how a class names its children. The only user code that runs is the `repr` of dictionary keys
    and of static fields; its errors are caught.
    """
    rest: list[Any] = [treedef]
    preorder: list[tuple[Any, int]] = []
    while rest:  # containers of containers may be nested deeper than Python's stack
        node = rest.pop()
        children: Sequence[Any] = node.children() if node.num_nodes > 1 else ()
        preorder.append((node, len(children)))
        rest += reversed(children)
    # Backwards each node comes after its children, which are on top of the stack, the first uppermost.
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
    """Return the paths of the leaves of (positional arguments, keyword arguments), named after `function`'s parameters.

    If not `is_whole`, some arguments are missing, so positional ones are named `args[0]`, `args[1]`, ….
    """
    parameters: list[inspect.Parameter] = []
    with suppress(TypeError, ValueError):  # a builtin has no signature
        parameters = list(inspect.signature(function).parameters.values()) if is_whole else []
    leaves: list[tuple[Any, Any]] = _trees.tree_leaves_with_path(treedef.unflatten(range(treedef.num_leaves)))
    return tuple(_argument_path(parameters, 0, path) for path, _ in leaves)


def _argument_path(parameters: list[inspect.Parameter], first: int, path: Any) -> str:
    which, argument, *inside = path
    name = argument_name(parameters, argument.idx + first) if which.idx == 0 else str(argument.key)
    return name + _trees.keystr(tuple(inside))


def named_paths(treedef: Any, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the paths with the author's names, `model.layers[0].kernel`, for arrays that nnx only numbers."""
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
    """Return the node of an nnx object, whose arrays `nnx.jit` passes as a list; None for other nodes."""
    if len(children) != 2:
        return None
    graph = graph_states(node.node_data()[0], _graphdef(node.children()))
    arrays = children[1].children[0].children if graph is not None and len(children[1].children) == 1 else ()
    if graph is None or len(graph.paths) != len(arrays):
        return None
    return TreeNode("class", graph.name, graph.paths, "", arrays, _fields(graph.fields))


def _fields(values: Sequence[tuple[str, Any]]) -> tuple[Part, ...]:
    parts: list[Part] = []
    for step, value in values:
        if isinstance(value, GraphObject):
            parts.append(class_part(step, value.kind))
            text = print_value((value.kind.__name__, *value.rest))
            parts.append((step, text, number_of(value)))
        else:
            parts += parts_of(value, step)
    return tuple(parts)


def _read_node(node: tuple[Any, Any], children: tuple[TreeNode, ...], paths: Sequence[str]) -> TreeNode:
    """Return the node of one container; `paths` begins with the paths of its own leaves."""
    kind, data = node
    if kind is type(None):
        return NONE
    if kind is tuple or kind is list:
        return TreeNode(kind.__name__, steps=tuple(f"[{i}]" for i in range(len(children))), children=children)
    if kind is dict:
        return TreeNode("dict", steps=_keys(data), children=children)
    fields: tuple[str, ...] = getattr(kind, "_fields", ())
    if data is None and issubclass(kind, tuple) and len(fields) == len(children):
        steps = tuple(f".{name}" for name in fields)
        return TreeNode(
            "namedtuple", kind.__name__, steps, children=children, fields=(class_part("", cast("type[Any]", kind)),)
        )
    if kind is OrderedDict:
        steps = _keys(cast("Any", data))
    elif kind is defaultdict:
        _, keys = cast("tuple[Any, Any]", data)
        steps = _keys(keys)
    else:
        steps = _named_by_leaves(children, paths)
    named = _fields(static_fields(cast("type[Any]", kind), data, steps)) if data is not None else ()
    static = "" if data is None else print_value(data)
    return TreeNode("class", kind.__name__, steps, static, children, (class_part("", cast("type[Any]", kind)), *named))


def _keys(keys: Sequence[Any]) -> tuple[str, ...]:
    return tuple(f"[{key!r}]" if type(key) is str else f"[{print_value(key)}]" for key in keys)


def _named_by_leaves(children: tuple[TreeNode, ...], paths: Sequence[str]) -> tuple[str, ...]:
    """Return the path step to each child (`.weight`), from the path of its first leaf; "" for a child without one."""
    steps: list[str] = []
    at = 0
    for child in children:
        parts = split_path(paths[at]) if child.leaves and paths else []
        depth = len(child.steps_to_leaf()) + 1
        steps.append(parts[-depth] if len(parts) > depth else "")
        at += child.leaves
    return tuple(steps)


_INTERNAL = "_pytree__"  # how nnx names what it keeps for itself


class GraphObject(NamedTuple):
    """An object inside of an nnx object: its class, and the steps to its attributes or a variable's metadata."""

    kind: type
    rest: tuple[Any, ...]


class GraphStates(NamedTuple):
    """An nnx object as `nnx.jit` passes it to `jax.jit`.

    Args:
        name: Name of its class.
        paths: Path from the object to each of its arrays, in order: `.layers[0].kernel`.
        fields: Everything else: (path, value).
    """

    name: str
    paths: tuple[str, ...]
    fields: list[tuple[str, Any]]


def static_fields(kind: type, data: Any, children: tuple[str, ...]) -> list[tuple[str, Any]]:
    """Return (step, value) of each field in a class's `aux_data`, as `PyTreeDef.node_data()` has it; empty without
    names.

    `children` are the steps to its children.
    """
    if isinstance(data, dict):
        named = list(cast("dict[Any, Any]", data).items())
    elif isinstance(data, tuple | list):
        named = _pairs(kind, tuple(cast("tuple[Any, ...]", data)), children)
    else:
        named = _pairs(kind, (data,), children)
    if not all(isinstance(name, str) for name, _ in named):
        return []
    return [(f".{name}", value) for name, value in named if not name.startswith(_INTERNAL)]


def _is_static(field: Field[Any]) -> bool:
    """Return True for a field that Equinox, flax or chex keep out of the tree."""
    return field.metadata.get("static", False) or field.metadata.get("pytree_node", True) is False


def _pairs(kind: type, data: tuple[Any, ...], children: tuple[str, ...]) -> list[tuple[str, Any]]:
    if _is_of(kind, "flax.") and data and all(type(item) is tuple and len(item) == 2 for item in data):
        return list(data)  # nnx.Variable: its metadata as (name, value)
    # nnx.Pytree: names of its arrays; names of all else, and their values
    if len(data) == 3 and isinstance(data[1], tuple) and isinstance(data[2], tuple):
        names, values = cast("tuple[tuple[Any, ...], tuple[Any, ...]]", data[1:])
        return list(zip(names, values, strict=True)) if len(names) == len(values) else []
    if not is_dataclass(kind):
        return []
    names = [field.name for field in fields(kind) if _is_static(field)]
    names = names or [field.name for field in fields(kind) if f".{field.name}" not in children]
    # Equinox puts what it keeps of wrapped functions before the fields.
    first = 1 if _is_of(kind, "equinox.") else 0
    return list(zip(names, data[first:], strict=True)) if len(names) == len(data) - first else []


def _is_of(kind: type, library: str) -> bool:
    # Only in a library's own classes, or those derived from them, is the meaning of pairs known.
    return any(base.__module__.startswith(library) for base in kind.__mro__)


def graph_states(kind: type, graphdef: Any) -> GraphStates | None:
    """Return the parts of an object that `nnx.jit` split; None for other containers and unknown versions of Flax."""
    if kind.__name__ != "NodeStates" or not kind.__module__.startswith("flax."):
        return None
    try:
        return _Graph(graphdef).read()
    except Exception:  # another Flax's: then it is described as JAX sees it
        return None


class _Graph:
    """Reader of a `GraphDef`, which lists nodes and attributes in the order of a walk through the object.

    A node's attributes follow it: a static value, or the next node.
    """

    def __init__(self, graphdef: Any) -> None:
        self._nodes = iter(graphdef.nodes)
        self._attributes = iter(graphdef.attributes)
        self._paths: list[str] = []
        self._fields: list[tuple[str, Any]] = []
        self._name = graphdef.nodes[0].type.__name__ if graphdef.nodes else ""

    def read(self) -> GraphStates:
        self._node("")
        return GraphStates(self._name, tuple(self._paths), self._fields)

    def _node(self, path: str) -> None:
        node = next(self._nodes)
        kind = type(node).__name__
        if kind == "VariableDef":
            self._paths.append(path)
            self._fields.append((path, GraphObject(node.type, (node.metadata,))))
            return
        if kind == "NodeRef":  # an object that occurs a second time
            self._fields.append((path, ("again", node.index)))
            return
        at = len(self._fields)
        steps: list[str] = []
        for _ in range(node.num_attributes):
            name, attribute = next(self._attributes)
            is_internal = isinstance(name, str) and name.startswith(_INTERNAL)
            step = f".{name}" if isinstance(name, str) and name.isidentifier() else f"[{name!r}]"
            steps += [] if is_internal else [step]
            kind = type(attribute).__name__
            if kind == "Static":
                self._fields += [] if is_internal else [(f"{path}{step}", attribute.value)]
            elif kind == "LeafAttr":
                self._paths.append(f"{path}{step}")
            else:
                self._node(f"{path}{step}")
        if steps or not path.endswith("state"):
            # Before its attributes: with one more of them it is the object that changed.
            self._fields.insert(at, (path, GraphObject(node.type, tuple(steps))))


_NUMBERED = re.compile(r"dynamic_(?:no)?donate\['(first|rest|fun)'\]\[(\d+)\]")
_ORDER = ("first", "rest", "fun")
_MANY = 4_096  # leaves


def filtered_call(function: Any, args: tuple[Any, ...], paths: tuple[str, ...]) -> WrittenCall | None:
    """Return the call that the user wrote of an `equinox.filter_jit` function; None for others and unknown versions."""
    if not str(getattr(function, "__module__", "")).startswith("equinox.") or len(args) != 3 or len(paths) > _MANY:
        return None
    try:
        return _read(function, args[2], paths)
    except Exception:  # then it is described as JAX sees it
        return None


def _read(function: Any, static: Any, paths: tuple[str, ...]) -> WrittenCall | None:
    fun, first, rest = static
    own = _own_function(fun[0])
    parameters = list(inspect.signature(own).parameters.values()) if own is not None else []
    named = {
        "first": [argument_name(parameters, 0) + _trees.keystr(path) for path in _paths(first)],
        "rest": [_argument_path(parameters, 1, path) for path in _paths(rest)],
        "fun": [function.__name__ + _trees.keystr(path) for path in _paths(fun)],
    }
    numbered = [_NUMBERED.fullmatch(path) for path in paths]
    places = [(match[1], int(match[2])) for match in numbered if match is not None]
    if len(places) < len(paths):
        return None
    leaves = {"first": first[0], "rest": rest[0], "fun": [None if leaf is own else leaf for leaf in fun[0]]}
    pairs = chain.from_iterable(zip(named[part], leaves[part], strict=False) for part in _ORDER)
    args, keywords = _arrays(rest)
    # Equinox adds a None behind the arguments, so that there is always a first one.
    tree = _trees.tree_structure(((_arrays(first), *args[:-1]) if args else (), keywords))
    return WrittenCall(
        function if own is None else own,
        tuple(named[part][at] for part, at in places),
        tuple(sorted(range(len(places)), key=lambda i: (_ORDER.index(places[i][0]), places[i][1]))),
        tree,
        tuple((path, value) for path, value in pairs if value is not None),
    )


def _own_function(leaves: Any) -> Any:
    """Return the function that is called, or that was passed to `filter_grad` or its like; None if that is ambiguous.

    A method's object has arrays, which are None here.
    """
    functions = [leaf for leaf in leaves if callable(leaf)]
    return functions[0] if len(functions) == 1 and all(leaf is not None for leaf in leaves) else None


def _paths(part: Any) -> list[Any]:
    leaves, tree = part
    return [path for path, _ in _trees.tree_leaves_with_path(tree.unflatten(range(len(leaves))))]


def _arrays(part: Any) -> Any:
    """Return the tree of `part`, (leaves, structure), with 0 for each None, an array's place, and None for the rest."""
    leaves, tree = part
    return tree.unflatten([0 if leaf is None else None for leaf in leaves])
