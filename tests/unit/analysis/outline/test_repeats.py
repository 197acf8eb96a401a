"""What a graph does again and again, found whatever order the compiler wrote it in."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import explorer as ex
from explorer.analysis.hierarchy import nest
from explorer.capture.readers.graph_builder import GraphBuilder
from explorer.model.graph import Frame, Graph, Group, Hierarchy
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
@given(st.integers(4, 12), st.just(3), st.data())
def test_a_layer_that_differs_is_not_counted(layers, width, data):
    odd = data.draw(st.integers(0, layers - 1))
    tree = nest(unrolled(layers, width, odd=odd))
    assert sum(tree.repeat[repeat] for repeat, _ in repeats(tree)) == layers - 1


@settings(max_examples=60, deadline=None)
@given(st.integers(4, 12), st.integers(4, 9), st.data())
def test_a_layer_that_hardly_differs_is_counted_and_what_differs_is_said(layers, width, data):
    odd = data.draw(st.integers(0, layers - 1))
    graph = unrolled(layers, width, odd=odd)
    tree = nest(graph)
    ((repeat, iterations),) = repeats(tree)
    assert tree.repeat[repeat] == len(iterations) == layers
    assert tree.differ[repeat] == 2  # the one operation, and the other in its place
    which = {0: "the first", layers - 1: "the last"}.get(odd, str(odd + 1))
    assert tree.difference[repeat] == f"{which} with tanh and without op0"
    strange = graph[f"n{odd}.0"].index
    assert tree.twin[strange] == strange
    usual = graph["n1.1" if odd == 0 else "n0.1"].index
    assert {int(tree.twin[graph[f"n{layer}.1"].index]) for layer in range(layers)} == {usual}


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["jaxpr", "stablehlo", "hlo"])
def test_what_is_said_to_repeat_is_equal_in_structure_or_what_differs_is_said(step, stage):
    graph = step.stage(stage).graph
    tree = nest(graph)
    found = repeats(tree)
    assert found
    for repeat, iterations in found:
        assert tree.repeat[repeat] == len(iterations) > 1
        first, *others = (structure(graph, computations(graph, tree, at)) for at in iterations)
        assert first
        assert all(other == first for other in others) or tree.difference[repeat]


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


def decoder(blocks, *, wide=(), short=()):
    """A function of equal blocks, but that some look at a wide window, and some lack their last norm."""

    def norm(x, gain):
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * gain

    def attend(q, k, v, window):
        scores, at = q @ k.T / 8.0, jnp.arange(len(q))
        mask = at[:, None] >= at[None]
        if window < len(q):
            mask = mask & (at[:, None] - at[None] < window)
        return jax.nn.softmax(jnp.where(mask, scores, -1e9)) @ v

    def block(p, x, number):
        h = norm(x, p["g1"])
        x = x + attend(h @ p["q"], h @ p["k"], h @ p["v"], len(x) if number in wide else 8) @ p["o"]
        y = x + jax.nn.gelu(norm(x, p["g2"]) @ p["w1"]) @ p["w2"]
        return y if number in short else norm(y, p["g3"])

    def model(params, x):
        x = x * 2.0
        for number, p in enumerate(params):
            x = block(p, x, number)
        return norm(x, params[0]["g1"]).sum()

    shapes = {
        **dict.fromkeys("qkvo", (16, 16)),
        "w1": (16, 64),
        "w2": (64, 16),
        **dict.fromkeys(("g1", "g2", "g3"), (16,)),
    }
    params = [{name: jnp.ones(shape) for name, shape in shapes.items()} for _ in range(blocks)]
    return ex.explore(model, params, jnp.ones((32, 16)))


@pytest.mark.parametrize("stage", ["jaxpr", "hlo"])
def test_blocks_of_which_every_sixth_has_another_window_are_one_loop(stage):
    capture = decoder(12, wide=(5, 11))
    tree = nest(capture.stage(stage).graph)
    ((repeat, iterations),) = [(at, its) for at, its in repeats(tree) if tree.groups[at].name == "block"]
    assert tree.repeat[repeat] == len(iterations) == 12
    assert tree.difference[repeat].startswith(
        f"6 and 12 with{'out broadcast_in_dim ×2, sub' if stage == 'jaxpr' else ''}"
    )


def test_a_last_block_without_its_norm_is_counted_with_the_others():
    tree = nest(decoder(12, short=(11,)).jaxpr.graph)
    ((repeat, _),) = [(at, its) for at, its in repeats(tree) if tree.groups[at].name == "block"]
    assert tree.repeat[repeat] == 12
    assert "the last without" in tree.difference[repeat]
