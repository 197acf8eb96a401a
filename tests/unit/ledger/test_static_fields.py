"""What classes keep beside their arrays, in the ways of JAX, Flax and Equinox, none of which is needed."""

from dataclasses import dataclass, field

import pytest

from explorer.ledger.trees import GraphObject, graph_states, static_fields


@dataclass
class State:
    """As `jax.tree_util.register_dataclass` takes it apart: its children `params`, the rest as data."""

    params: int
    step: int
    name: str


@dataclass
class Marked:
    params: int
    rate: float = field(metadata={"static": True})  # as JAX and Equinox say it
    decay: float = field(metadata={"pytree_node": False})  # as Flax does
    child: int = field(default=0, metadata={"static": False, "pytree_node": True})


def of_library(name):
    """A class that a library has, or that is derived from one."""
    base = type("Base", (), {"__module__": name})
    return type("Derived", (base,), {"__module__": "users"})


Variable, Module = of_library("flax.nnx.variablelib"), of_library("equinox._module")


@dataclass
class Layer(Module):
    weight: int
    size: int


@pytest.mark.parametrize(
    ("kind", "data", "children", "fields"),
    [
        (object, {"a": 1, "b": 2}, (), [(".a", 1), (".b", 2)]),
        (object, {"a": 1, "_pytree__nodes": 2}, (), [(".a", 1)]),
        (object, {3: 1}, (), []),
        (object, (1, 2), (), []),
        (object, 5, (), []),
        (State, (1, "n"), (".params",), [(".step", 1), (".name", "n")]),
        (State, [1, "n"], (".params",), [(".step", 1), (".name", "n")]),
        (State, (1,), (".params",), []),  # which of them isn't known
        (State, 7, (".params", ".step"), [(".name", 7)]),
        (Marked, (0.1, 0.2), (".params", ".child"), [(".rate", 0.1), (".decay", 0.2)]),
        (Variable, (("sharding", None), ("tag", "w")), (), [(".sharding", None), (".tag", "w")]),
        (Variable, (("sharding", None), 3), (), []),
        (Variable, (("a", 1, 2),), (), []),
        (Variable, (), (), []),
        (object, (("sharding", None),), (), []),  # in another's class pairs may be anything
        (object, (("w",), ("size", "_pytree__x"), (4, 5)), (), [(".size", 4)]),
        (object, (("w",), ("size",), (4, 5)), (), []),
        (object, (("w",), ("size",), 4), (), []),
        (object, (("w",), "size", (4,)), (), []),
        (object, (("w",), ("size",), (4,), ()), (), []),
        (Layer, (("wrapped",), 8), (".weight",), [(".size", 8)]),
        (Layer, (8,), (".weight",), []),
    ],
)
def test_fields_have_the_names_that_the_user_wrote(kind, data, children, fields):
    assert static_fields(kind, data, children) == fields


# As `nnx.graph` has them: which class a part is of is told by its name.


@dataclass
class GraphNode:
    type: type
    num_attributes: int


@dataclass
class VariableDef:
    type: type
    metadata: tuple = ()


@dataclass
class NodeRef:
    index: int


@dataclass
class Static:
    value: object


class LeafAttr: ...


class NodeAttr: ...


@dataclass
class GraphDef:
    nodes: list
    attributes: list


class Model: ...


class Linear: ...


class Param: ...


NodeStates = type("NodeStates", (), {"__module__": "flax.nnx.extract"})


def test_an_nnx_object_has_the_ways_to_its_arrays_and_to_all_else():
    nodes = [GraphNode(Model, 5), GraphNode(Linear, 2), VariableDef(Param, ("w",)), NodeRef(2), GraphNode(dict, 0)]
    attributes = [
        ("layer", NodeAttr()),
        ("kernel", NodeAttr()),
        ("size", Static(3)),
        ("tied", NodeAttr()),
        (0, LeafAttr()),
        ("_pytree__state", NodeAttr()),
        ("rate", Static(0.5)),
    ]
    states = graph_states(NodeStates, GraphDef(nodes, attributes))
    assert states.name == "Model"
    assert states.paths == (".layer.kernel", "[0]")
    assert states.fields == [
        ("", GraphObject(Model, (".layer", ".tied", "[0]", ".rate"))),
        (".layer", GraphObject(Linear, (".kernel", ".size"))),
        (".layer.kernel", GraphObject(Param, (("w",),))),
        (".layer.size", 3),
        (".tied", ("again", 2)),
        # What nnx keeps for itself, with nothing in it, is left out.
        (".rate", 0.5),
    ]


def test_what_is_no_nnx_object_or_another_flaxs_is_left_to_jax():
    of_another = type("NodeStates", (), {"__module__": "users"})
    assert graph_states(of_another, GraphDef([GraphNode(Model, 0)], [])) is None
    assert graph_states(Model, GraphDef([GraphNode(Model, 0)], [])) is None
    assert graph_states(NodeStates, object()) is None
    assert graph_states(NodeStates, GraphDef([GraphNode(Model, 2)], [("a", Static(1))])) is None
