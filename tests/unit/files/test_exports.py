"""What Model Explorer is given is what its own data classes hold."""

import json
from collections import Counter

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.capture.readers.hlo import read_hlo
from explorer.files.exports import Layers, model_explorer_graph, node_data
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
GROUPS = [("", "a/b"), ("a|b", "c"), ("a|b", "c"), ("", ""), ("a|b", "c (2)")]


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


def attributes_of(node):
    return {pair["key"]: pair["value"] for pair in node["attrs"]}


def test_the_graph_is_the_one_we_show(capture, written):
    assert [graph["id"] for graph in written["graphs"]] == ["hlo", "stablehlo", "jaxpr"]
    graph, nodes = capture.hlo.graph, written["graphs"][0]["nodes"]
    for node, theirs in zip(graph.nodes, nodes, strict=True):
        attributes = attributes_of(theirs)
        assert attributes["name"] == node.name
        assert attributes["op"] == node.op
        assert attributes["type"] == node.type
        assert theirs["label"] == (node.name if node.op in ("parameter", "fusion") else node.op)
        if node.place:
            assert attributes["source"] == str(node.place)
    kinds = written["graphs"][0]["groupNodeAttributes"]
    assert any(kinds[node["namespace"]]["kind"] == "fusion" for node in nodes if node["namespace"])


def into(node):
    return [int(edge["sourceNodeId"]) for edge in node["incomingEdges"]]


def test_a_kernel_is_a_layer_with_its_body_inside_and_its_operands_lead_into_it(capture, written):
    graph, nodes = capture.hlo.graph, written["graphs"][0]["nodes"]
    fusions = [node for node in graph.nodes if node.op == "fusion"]
    assert fusions
    for fusion in fusions:
        body = [node for node in graph.nodes if node.group and node.group.caller == fusion.index]
        layer = nodes[fusion.index]["namespace"]
        assert layer.endswith(f"({fusion.name})")
        assert all(nodes[node.index]["namespace"].startswith(layer) for node in body)
        (root,) = (node for node in body if "root" in node.attributes)
        assert into(nodes[fusion.index]) == [root.index]
        parameters = sorted(
            (node for node in body if node.op == "parameter"), key=lambda node: int(node.attributes["parameter_number"])
        )
        assert [into(nodes[node.index]) for node in parameters] == [[operand.index] for operand in fusion.operands]


def test_loops_and_branches_are_layers_of_their_own(tmp_path):
    def looped(x, w):
        x = jax.lax.fori_loop(0, 8, lambda i, x: jnp.tanh(x @ w) + i, x)
        return jax.lax.cond(x.sum() > 0, lambda x: x * 2, lambda x: jnp.sin(x) @ w, x)

    capture = ex.explore(looped, jnp.ones((8, 8)), jnp.ones((8, 8)))
    written = json.loads(capture.to_model_explorer_json(tmp_path / "looped.json").read_text())
    for graph in written["graphs"]:
        ids = {node["id"] for node in graph["nodes"]}
        assert all(str(source) in ids for node in graph["nodes"] for source in into(node))
        # Whatever computes leads somewhere, or is what the program returns: no island but one.
        assert len(islands(graph["nodes"])) == 1, graph["id"]
    hlo = written["graphs"][0]
    layers = {node["namespace"] for node in hlo["nodes"]}
    assert {layer.partition("/")[2].partition("/")[0] for layer in layers if layer.startswith("while")} >= {
        "body x8",
        "condition",
    }


def islands(nodes):
    """The sets of nodes that edges connect, of more than one node."""
    parent = list(range(len(nodes)))

    def root(node):
        while parent[node] != node:
            node = parent[node]
        return node

    for number, node in enumerate(nodes):
        for source in into(node):
            parent[root(number)] = root(source)
    sizes = Counter(root(node) for node in range(len(nodes)))
    return [size for size in sizes.values() if size > 1]


def test_what_kernels_take_is_its_per_node_data(capture, written, tmp_path):
    capture.to_model_explorer_json(tmp_path / "loss.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["loss.bytes.json", "loss.flops.json", "loss.json"]
    data = json.loads((tmp_path / "loss.bytes.json").read_text())["hlo"]
    # As `model_explorer.node_data_builder.GraphNodeData` has them.
    assert set(data) <= {"results", "name", "thresholds", "gradient"}
    nodes = written["graphs"][0]["nodes"]
    said = {number: attributes_of(nodes[int(number)])["bytes"] for number in data["results"]}
    assert {number: f"{result['value']:,.6g}" for number, result in data["results"].items()} == said
    # Each byte is told once, at the kernel that moves it.
    inner = {node.index for node in capture.hlo.graph.nodes if node.group and node.group.kind in ("fusion", "apply")}
    assert not inner & {int(key) for key in data["results"]}


def test_a_graph_alone_is_written_too(capture, tmp_path):
    written = json.loads(capture.jaxpr.graph.to_model_explorer_json(tmp_path / "j.json", "mine").read_text())
    assert written["label"] == written["graphs"][0]["id"] == "mine"
    assert len(written["graphs"][0]["nodes"]) == len(capture.jaxpr.graph)


def test_a_graph_without_nodes_is_written_too(tmp_path):
    written = json.loads(ex.open_hlo("no module\nat all").to_model_explorer_json(tmp_path / "empty.json").read_text())
    assert written["graphs"][0]["nodes"] == []


def test_groups_of_one_name_stay_apart():
    layers = Layers(ex.open_hlo("no module\nat all").hlo.graph)
    assert [layers._add(parent, name, "scope") for parent, name in GROUPS] == [
        "a|b",
        "a|b/c",
        "a|b/c (2)",
        "group",
        "a|b/c (2) (2)",
    ]


def test_every_node_says_its_equations_and_how_sure_that_is(written, capture):
    stage = next(graph for graph in written["graphs"] if graph["id"] == "hlo")
    for exported, node in zip(stage["nodes"], capture.hlo.graph.nodes, strict=True):
        attributes = attributes_of(exported)
        assert attributes["link"] == capture.links.grade(node, "jaxpr")
        equations = ", ".join(equation.name for equation in capture.links.linked(node, "jaxpr"))
        assert attributes.get("equations", "") == equations


# The caller stands first, so that it is node 0; each of two branches has an operand of its own.
SMALL = """ENTRY main {
  fused = f32[2]{0} fusion(a), kind=kLoop, calls=body, metadata={op_name="jit(f)/tanh"}
  a = f32[2]{0} parameter(0)
  is = pred[] parameter(1)
  either = f32[2]{0} conditional(is, fused, a), true_computation=yes, false_computation=no
  ROOT out = (f32[2]{0}, pred[]) tuple(either, is)
}
body {
  x = f32[2]{0} parameter(0)
  ROOT t = f32[2]{0} tanh(x)
}
yes {
  y = f32[2]{0} parameter(0)
  ROOT n = f32[2]{0} negate(y)
}
no {
  ROOT z = f32[2]{0} parameter(0)
}
"""
IN_YES, IN_NO = "conditional (either)/branch", "conditional (either)/branch (2)"


def test_a_small_graph_to_the_letter():
    graph = read_hlo(SMALL)
    exported = model_explorer_graph(graph, "hlo", [{"link": str(i)} for i in range(10)])
    assert exported["id"] == "hlo"
    assert [(node["label"], node["namespace"], into(node)) for node in exported["nodes"]] == [
        ("fused", "tanh (fused)", [6]),  # what its body gives
        ("a", "inputs", []),
        ("is", "inputs", []),
        ("conditional", "conditional (either)", [2, 8, 9]),  # what chooses, and what each branch gives
        ("tuple", "", [3, 2]),
        ("x", "tanh (fused)", [1]),
        ("tanh", "tanh (fused)", [5]),
        ("y", IN_YES, [0]),
        ("negate", IN_YES, [7]),
        ("z", IN_NO, [1]),
    ]
    assert exported["groupNodeAttributes"] == {
        "inputs": {"kind": "inputs"}, "tanh (fused)": {"kind": "fusion"}, "conditional (either)": {"kind": "branch"},
        IN_YES: {"kind": "branch"}, IN_NO: {"kind": "branch"},
    }  # fmt: skip
    fused, last = exported["nodes"][0], exported["nodes"][4]
    # Two floats are read and two written, 4 bytes each; a tanh counts once for each.
    assert attributes_of(fused) == {
        "name": "fused", "op": "fusion", "type": "f32[2]{0}", "scope": "jit(f)/tanh", "flops": "2", "bytes": "16",
        "runs": "1", "link": "0", "kind": "kLoop", "calls": "body",
    }  # fmt: skip
    assert fused["outputsMetadata"] == [{"id": "0", "attrs": [{"key": "tensor_shape", "value": "f32[2]{0}"}]}]
    assert last["incomingEdges"] == [
        {"sourceNodeId": "3", "sourceNodeOutputId": "0", "targetNodeInputId": "0"},
        {"sourceNodeId": "2", "sourceNodeOutputId": "0", "targetNodeInputId": "1"},
    ]
    assert node_data(graph, "bytes") == {
        "name": "bytes",
        "results": {"0": {"value": 16.0}, "8": {"value": 16.0}},
        "gradient": [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#f59e5b"}],
    }
    assert node_data(graph, "time") == {}
