"""What Model Explorer is given is what its own data classes hold."""

import json

import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.files.model_explorer import _namespaces
from tests.support.functions import loss

# As `model_explorer.graph_builder` of ai-edge-model-explorer 0.1.34 has them: the required fields, and all.
FIELDS = {
    "graph": ({"id", "nodes"}, {"id", "nodes", "groupNodeAttributes"}),
    "node": (
        {"id", "label"},
        {"id", "label", "namespace", "subgraphIds", "attrs", "incomingEdges", "outputsMetadata", "inputsMetadata"},
    ),
    "edge": ({"sourceNodeId"}, {"sourceNodeId", "sourceNodeOutputId", "targetNodeInputId"}),
    "pair": ({"key", "value"}, {"key", "value"}),
    "metadata": ({"id"}, {"id", "attrs"}),
}


@pytest.fixture(scope="module")
def capture():
    return ex.explore(loss, jnp.ones((3, 16, 16)), jnp.ones((4, 16)))


@pytest.fixture(scope="module")
def written(capture, tmp_path_factory):
    return json.loads(capture.to_model_explorer_json(tmp_path_factory.mktemp("export") / "loss.json").read_text())


def assert_fields(kind, value):
    required, known = FIELDS[kind]
    assert required <= set(value) <= known


def test_every_object_has_the_fields_that_model_explorer_knows(written):
    assert set(written) == {"label", "graphs"}
    for graph in written["graphs"]:
        assert_fields("graph", graph)
        for node in graph["nodes"]:
            assert_fields("node", node)
            assert isinstance(node["id"], str)
            for edge in node["incomingEdges"]:
                assert_fields("edge", edge)
            for pair in node["attrs"]:
                assert_fields("pair", pair)
                assert isinstance(pair["value"], str)
            for metadata in node.get("outputsMetadata", ()):
                assert_fields("metadata", metadata)


def test_the_graph_is_the_one_we_show(capture, written):
    assert [graph["id"] for graph in written["graphs"]] == ["hlo", "stablehlo", "jaxpr"]
    graph, nodes = capture.hlo.graph, written["graphs"][0]["nodes"]
    assert [node["label"] for node in nodes] == [node.op for node in graph.nodes]
    for node, theirs in zip(graph.nodes, nodes, strict=True):
        assert [int(edge["sourceNodeId"]) for edge in theirs["incomingEdges"]] == [o.index for o in node.operands]
        attributes = {pair["key"]: pair["value"] for pair in theirs["attrs"]}
        assert attributes["name"] == node.name
        assert attributes["type"] == node.type
        if node.place:
            assert attributes["source"] == str(node.place)
    kinds = written["graphs"][0]["groupNodeAttributes"]
    assert any(kinds[node["namespace"]]["kind"] == "fusion" for node in nodes if node["namespace"])


def test_a_graph_alone_is_written_too(capture, tmp_path):
    written = json.loads(capture.jaxpr.graph.to_model_explorer_json(tmp_path / "j.json", "mine").read_text())
    assert written["label"] == written["graphs"][0]["id"] == "mine"
    assert len(written["graphs"][0]["nodes"]) == len(capture.jaxpr.graph)


def test_a_graph_without_nodes_is_written_too(tmp_path):
    written = json.loads(ex.open_hlo("no module\nat all").to_model_explorer_json(tmp_path / "empty.json").read_text())
    assert written["graphs"][0]["nodes"] == []


def test_groups_of_one_name_stay_apart():
    assert _namespaces([("a/b", -1), ("c", 0), ("c", 0), ("", -1), ("c (2)", 0)]) == [
        "a∕b",
        "a∕b/c",
        "a∕b/c (2)",
        "group",
        "a∕b/c (2) (2)",
    ]


def test_every_node_says_its_equations_and_how_sure_that_is(written, capture):
    stage = next(graph for graph in written["graphs"] if graph["id"] == "hlo")
    for exported, node in zip(stage["nodes"], capture.hlo.graph.nodes, strict=True):
        attributes = {pair["key"]: pair["value"] for pair in exported["attrs"]}
        assert attributes["link"] == capture.links.grade(node, "jaxpr")
        equations = ", ".join(equation.name for equation in capture.links.linked(node, "jaxpr"))
        assert attributes.get("equations", "") == equations
