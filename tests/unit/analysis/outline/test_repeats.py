"""What a graph does again and again, found whatever order the compiler wrote it in."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import explorer as ex
from explorer.analysis.outline.hierarchy import nest
from explorer.capture.readers.graph_builder import GraphBuilder
from explorer.model.graph import Frame, Graph, Group
from explorer.model.hierarchy import Hierarchy
from tests.examples.training import training_step

LAYERS = 4


@pytest.fixture(scope="module")
def step():
    function, arguments = training_step(LAYERS)
    return ex.explore(function, *arguments)


def computations(graph: Graph, tree: Hierarchy, group: int) -> list[int]:
    """The nodes directly in a group or in the groups made inside, not what they call."""
    inside = {group}
    for index, known in enumerate(tree.groups):
        if known.parent in inside and known.caller < 0:
            inside.add(index)
    return [node for node in range(len(graph)) if int(tree.group[node]) in inside]


def structure(graph: Graph, nodes: list[int]) -> list[tuple[object, ...]]:
    """Operations and types, with the operations and types of the operands inside, sorted."""
    known = set(nodes)

    def own(node: int) -> tuple[str, str]:
        return graph.ops[int(graph.op[node])], graph.types[int(graph.type[node])]

    def operands(node: int) -> list[int]:
        return graph.operand[graph.operand_start[node] : graph.operand_start[node + 1]].tolist()

    return sorted((own(node), tuple(own(at) for at in operands(node) if at in known)) for node in nodes)


def repeats(tree: Hierarchy) -> list[tuple[int, list[int]]]:
    return [
        (index, [i for i, child in enumerate(tree.groups) if child.parent == index])
        for index, group in enumerate(tree.groups)
        if group.kind == "repeat"
    ]


def unrolled(layers: int, width: int, *, odd: int = -1) -> Graph:
    """A chain of layers of some operations each, all equal but the odd one."""
    builder = GraphBuilder()
    builder.add_group(Group("main", "entry"))
    outer = builder.add_frame(Frame("f.py", "f", 9))
    frames = [builder.add_frame(Frame("f.py", "layer", line, parent=outer)) for line in range(width)]
    carried = builder.add("x", "parameter", "f32[4]", group=0)
    builder.connect([])
    for layer in range(layers):
        for line, frame in enumerate(frames):
            op = "tanh" if layer == odd and line == 0 else f"op{line}"
            node = builder.add(f"n{layer}.{line}", op, "f32[4]", group=0, frame=frame)
            builder.connect([carried])
            carried = node
    return builder.build()


@settings(max_examples=60, deadline=None)
@given(st.integers(4, 12), st.integers(3, 6))
def test_a_chain_of_equal_layers_is_one_repeat_of_all_of_them(layers, width):
    graph = unrolled(layers, width)
    tree = nest(graph)
    ((repeat, iterations),) = repeats(tree)
    assert tree.groups[repeat].name == "layer"
    assert tree.repeat[repeat] == len(iterations) == layers
    assert [len(computations(graph, tree, at)) for at in iterations] == [width] * layers


@settings(max_examples=60, deadline=None)
@given(st.integers(4, 12), st.integers(3, 6), st.data())
def test_a_layer_that_differs_is_not_counted(layers, width, data):
    odd = data.draw(st.integers(0, layers - 1))
    tree = nest(unrolled(layers, width, odd=odd))
    assert sum(tree.repeat[repeat] for repeat, _ in repeats(tree)) == layers - 1


@pytest.mark.parametrize("stage", ["jaxpr", "stablehlo", "hlo"])
def test_what_is_said_to_repeat_is_equal_in_structure(step, stage):
    graph = step.stage(stage).graph
    tree = nest(graph)
    found = repeats(tree)
    assert found
    for repeat, iterations in found:
        assert tree.repeat[repeat] == len(iterations) > 1
        first, *others = (structure(graph, computations(graph, tree, at)) for at in iterations)
        assert first
        for other in others:
            assert other == first


@pytest.mark.parametrize("stage", ["jaxpr", "stablehlo"])
def test_unrolled_layers_are_one_group_forward_and_one_backward(step, stage):
    tree = nest(step.stage(stage).graph)
    blocks = [repeat for repeat, _ in repeats(tree) if tree.groups[repeat].name == "block"]
    assert [tree.repeat[at] for at in blocks] == [LAYERS, LAYERS]
    assert {tree.groups[tree.groups[at].parent].name for at in blocks} == {"forward", "backward"}


def test_a_layer_that_the_compiler_fused_otherwise_stands_for_itself(step):
    tree = nest(step.hlo.graph)
    phases = [at for at, group in enumerate(tree.groups) if group.kind == "phase" and "update" not in group.name]
    for phase in phases:
        inside = [at for at, group in enumerate(tree.groups) if group.parent == phase and "block" in group.name]
        assert sum(tree.repeat[at] or 1 for at in inside) == LAYERS


@pytest.mark.parametrize("stage", ["jaxpr", "hlo"])
def test_the_update_of_every_parameter_is_grouped_by_what_the_parameters_are_called(step, stage):
    tree = nest(step.stage(stage).graph)
    updates = {
        frozenset(group.name.split(", ")): tree.repeat[at]
        for at, group in enumerate(tree.groups)
        if group.kind == "repeat" and tree.groups[group.parent].name.startswith("update")
    }
    assert updates[frozenset({"query", "key", "value", "out"})] == 4 * LAYERS
    assert updates[frozenset({"gain", "bias"})] == 4 * LAYERS + 2
    assert updates[frozenset({"up"})] == LAYERS


@pytest.mark.parametrize("stage", ["jaxpr", "stablehlo", "hlo"])
def test_a_counterpart_is_the_same_operation_in_the_first_iteration(step, stage):
    graph = step.stage(stage).graph
    tree = nest(graph)
    assert len(tree.twin) == len(graph)
    others = np.flatnonzero(tree.twin != np.arange(len(graph)))
    assert len(others)
    np.testing.assert_array_equal(tree.twin[tree.twin], tree.twin)
    direct = [node for repeat, its in repeats(tree) for at in its for node in computations(graph, tree, at)]
    np.testing.assert_array_equal(graph.op[direct], graph.op[tree.twin[direct]])
    np.testing.assert_array_equal(graph.type[direct], graph.type[tree.twin[direct]])


def test_where_nothing_repeats_nothing_is_grouped_so():
    def attention(q, k, v):
        return jax.nn.softmax(q @ k.T / jnp.sqrt(8.0)) @ v

    capture = ex.explore(attention, *[jnp.ones((8, 8))] * 3)
    for stage in capture.stages:
        tree = nest(stage.graph)
        assert not repeats(tree)
        np.testing.assert_array_equal(tree.twin, np.arange(len(stage.graph)))


def test_a_loop_without_a_function_of_its_own_is_named_by_its_line():
    def mlp(weights, x):
        for w in weights:
            x = jnp.tanh(x @ w) * 2 + 1
        return x

    capture = ex.explore(mlp, [jnp.ones((4, 4))] * 6, jnp.ones(4))
    tree = nest(capture.jaxpr.graph)
    ((repeat, iterations),) = repeats(tree)
    assert tree.groups[repeat].name == f"loop, line {mlp.__code__.co_firstlineno + 2}"
    assert len(iterations) == 6


def test_layers_that_only_scopes_name_are_one_repeat():
    def model(weights, x):
        for i, w in enumerate(weights):
            with jax.named_scope(f"layer_{i}"):
                x = jnp.tanh(x @ w) * 2 + 1
        return x

    capture = ex.explore(model, [jnp.ones((4, 4))] * 6, jnp.ones(4))
    for stage in capture.stages:
        tree = nest(stage.graph)
        names = {tree.groups[repeat].name: tree.repeat[repeat] for repeat, _ in repeats(tree)}
        # The compiler may have made the first and the last otherwise.
        assert list(names) == ["layer"]
        assert names["layer"] == 6 if stage.name != "hlo" else names["layer"] >= 4


def test_a_loop_that_the_compiler_kept_says_how_often_it_runs():
    def scanned(weights, x):
        return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, weights)[0]

    capture = ex.explore(scanned, jnp.ones((7, 4, 4)), jnp.ones(4))
    for stage in (capture.jaxpr, capture.hlo):
        tree = nest(stage.graph)
        assert [tree.repeat[at] for at, group in enumerate(tree.groups) if group.kind == "body"] == [7]


def test_equal_calls_side_by_side_are_few_enough_to_be_read_one_by_one():
    def twice(x):
        return jnp.tanh(x) + jnp.tanh(x * 2)

    assert not repeats(nest(ex.explore(twice, jnp.ones(4)).jaxpr.graph))
