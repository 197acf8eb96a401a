"""What a class keeps beside its arrays, field by field: an optimizer in a train state, a flag of a module.

JAX has it as one value, `aux_data`, that only the class can read. Here it gets back the names that the user wrote,
for the ways in which Flax, Equinox and JAX itself write it; none of these libraries is needed.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple, cast

_INTERNAL = "_pytree__"  # how nnx names what it keeps for itself


class GraphStates(NamedTuple):
    """An nnx object as `nnx.jit` hands it to `jax.jit`.

    Args:
        name: Its class's.
        paths: The way from the object to each of its arrays, in order: `.layers[0].kernel`.
        fields: All else: (way, value).
    """

    name: str
    paths: tuple[str, ...]
    fields: list[tuple[str, Any]]


def static_fields(kind: type, data: Any, children: tuple[str, ...]) -> list[tuple[str, Any]]:
    """(step, value) of each field in `data`, which a class of `kind` keeps; empty where their names can't be known.

    Args:
        kind, data: As `PyTreeDef.node_data()` gives them.
        children: The steps to its children.
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


def _pairs(kind: type, data: tuple[Any, ...], children: tuple[str, ...]) -> list[tuple[str, Any]]:
    if _is_of(kind, "flax.") and data and all(_is_pair(item) for item in data):
        return list(data)  # nnx.Variable: its metadata as (name, value)
    # nnx.Pytree: names of its arrays; names of all else, and their values
    if len(data) == 3 and isinstance(data[1], tuple) and isinstance(data[2], tuple):
        names, values = cast("tuple[tuple[Any, ...], tuple[Any, ...]]", data[1:])
        return list(zip(names, values, strict=True)) if len(names) == len(values) else []
    if not is_dataclass(kind):
        return []
    names = [field.name for field in fields(kind) if _is_static(field.metadata)]
    names = names or [field.name for field in fields(kind) if f".{field.name}" not in children]
    # Equinox puts what it keeps of wrapped functions before the fields.
    first = 1 if _is_of(kind, "equinox.") else 0
    return list(zip(names, data[first:], strict=True)) if len(names) == len(data) - first else []


def _is_of(kind: type, library: str) -> bool:
    """Whether it is a library's class or derived from one: in another's, pairs may be anything."""
    return any(base.__module__.startswith(library) for base in kind.__mro__)


def _is_pair(item: Any) -> bool:
    return isinstance(item, tuple) and len(cast("tuple[Any, ...]", item)) == 2


def _is_static(metadata: Any) -> bool:
    return bool(metadata.get("static", False)) or metadata.get("pytree_node", True) is False


def graph_states(kind: type, graphdef: Any) -> GraphStates | None:
    """What `nnx.jit` made of an object: `kind` is the container's class, `graphdef` its first part.

    None if it is no such thing, or of a Flax that does it differently.
    """
    if kind.__name__ != "NodeStates" or not kind.__module__.startswith("flax."):
        return None
    try:
        return _Graph(graphdef).read()
    except Exception:  # another Flax's: then it is described as JAX sees it
        return None


class _Graph:
    """Reads the nodes and the attributes of a `GraphDef`, which lists both in the order of a walk through the object.

    A node's attributes follow it: a static value, or the next node in its place.
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
            self._fields.append((path, (node.type.__name__, node.metadata)))
            return
        if kind == "NodeRef":  # an object that stands there a second time
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
            self._fields.insert(at, (path, (node.type.__name__, *steps)))
