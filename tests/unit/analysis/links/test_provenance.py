"""Links between stages, places by structure, and the groups that a person reads."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer.analysis.outline.hierarchy import nest
from explorer.analysis.placement import placed
from explorer.model.types import elements
from tests.support.functions import loss


def norm(x):
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def block(w, x):
    return x + jnp.tanh(norm(x) @ w)


def objective(weights, x):
    for w in weights:
        x = block(w, x)
    return x.sum()


def update(weights, x):
    return [w - 0.1 * g for w, g in zip(weights, jax.grad(objective)(weights, x), strict=True)]


@pytest.fixture(scope="module")
def step():
    return ex.explore(update, [jnp.eye(8) * (i + 1) for i in range(3)], jnp.ones((4, 8)))


def test_an_equation_of_an_unrolled_loop_leads_to_its_own_iteration(step):
    tanhs = [node for node in step.jaxpr.graph.nodes if node.op == "tanh"]
    linked = [step.links.linked(node, "stablehlo") for node in tanhs]
    assert [len(nodes) for nodes in linked] == [1, 1, 1]
    assert [nodes[0].op for nodes in linked] == ["stablehlo.tanh"] * 3
    assert [nodes[0].line for nodes in linked] == sorted({nodes[0].line for nodes in linked})
    for node, (there,) in zip(tanhs, linked, strict=True):
        assert step.links.linked(there, "jaxpr") == (node,)


def test_an_instruction_leads_back_to_the_equation_it_came_from(step):
    tanh = next(node for node in step.hlo.graph.nodes if node.op == "tanh")
    assert {node.op for node in step.links.linked(tanh, "jaxpr")} == {"tanh"}


def test_forward_and_backward_of_one_line_are_not_the_same_operation(step):
    for name, other in (("jaxpr", "stablehlo"), ("stablehlo", "jaxpr"), ("hlo", "jaxpr")):
        here, there = (list(step.stage(stage).graph.nodes) for stage in (name, other))
        table = {row: rows for row, rows in step.links.table(name, other).items() if here[row].op != "parameter"}
        assert len(table) > 20
        for row, rows in table.items():
            assert len({"transpose(" in node.scope for node in (here[row], *map(there.__getitem__, rows))}) == 1


def test_an_instruction_of_a_layer_leads_to_an_equation_of_that_layer():
    """A scope is of one layer: an instruction in it is of an equation in it."""

    def attend(w, x):
        scores = jax.nn.softmax((x @ w["q"]) @ (x @ w["k"]).T / 8.0)
        return x + norm(scores @ (x @ w["v"])) @ w["o"]

    def loss(layers, x):
        for i, w in enumerate(layers):
            with jax.named_scope(f"layer{i}"):
                x = attend(w, norm(x))
        return (x**2).mean()

    def step(layers, x):
        value, gradients = jax.value_and_grad(loss)(layers, x)
        return jax.tree.map(lambda w, g: w - 0.1 * g, layers, gradients), value

    layers = [{name: jnp.eye(16) * (i + 1) for name in "qkvo"} for i in range(3)]
    capture = ex.explore(step, layers, jnp.ones((8, 16)))
    known = [(node, capture.links.linked(node, "jaxpr")) for node in capture.hlo.graph.nodes if "layer" in node.scope]
    known = [(layer_of(node), layer_of(found[0])) for node, found in known if len(found) == 1]
    assert len(known) > 200
    assert all(here == there for here, there in known)


def layer_of(node):
    return re.findall(r"layer\d", node.scope)[-1:]


def test_what_carries_no_metadata_is_placed_by_what_it_belongs_to(step):
    graph = step.hlo.graph
    by = placed(graph)
    known = np.flatnonzero(graph.frame >= 0)
    np.testing.assert_array_equal(by[known], known)
    assert (graph.frame[by[by >= 0]] >= 0).all()
    assert (by >= 0).mean() > (graph.frame >= 0).mean()


def test_the_tree_is_read_from_calls_and_transforms(step):
    tree = nest(step.jaxpr.graph)
    names = {group.name for group in tree.groups}
    assert {"inputs", "update"} <= names
    assert any(name.startswith("forward") for name in names)
    assert any(name.startswith("backward") for name in names)
    assert any("norm" in name for name in names)


@pytest.mark.parametrize("name", ["jaxpr", "stablehlo", "hlo"])
def test_every_node_is_in_the_tree_and_what_a_node_calls_is_beside_it(step, name):
    graph = step.stage(name).graph
    tree = nest(graph)
    assert len(tree.group) == len(graph)
    for index, group in enumerate(tree.groups):
        assert -1 <= group.parent < index
        if group.caller >= 0:
            assert tree.group[group.caller] == group.parent
    for node in graph.nodes:
        computation = node.group
        if computation and computation.caller >= 0:
            at = int(tree.group[node.index])
            while tree.groups[at].caller != computation.caller:
                at = tree.groups[at].parent
                assert at >= 0


@pytest.mark.parametrize(
    ("type_", "size"),
    [("f32[]", 1), ("f32[8,4]{1,0}", 32), ("tensor<8x4xf32>", 32), ("tensor<i32>", 1), ("(f32[2,3]{1,0}, f32[9])", 6)],
)
def test_the_number_of_elements_is_read_from_any_stages_notation(type_, size):
    assert elements(type_) == size


def test_a_function_called_on_two_shapes_is_not_confused():
    def twice(x):
        return norm(x).sum() + norm(x[:, :4]).sum()

    step = ex.explore(twice, jnp.ones((4, 8)))
    products = [node for node in step.jaxpr.graph.nodes if node.op == "mul"]
    for node in products:
        assert {elements(there.type) for there in step.links.linked(node, "hlo")} <= {elements(node.type)}
    assert any(step.links.linked(node, "hlo") for node in products)


def test_constants_carry_their_python_names():
    weights = {"w": jnp.ones((8, 8))}

    def f(x):
        return x @ weights["w"]

    (constant,) = ex.explore(f, jnp.ones((2, 8))).constants
    assert (constant.name, constant.type, constant.bytes) == ("weights['w']", "f32[8,8]", 256)


def test_the_signature_names_the_arguments_and_counts_a_trees_arrays():
    assert ex.explore(loss, jnp.ones((3, 16, 16)), jnp.ones((4, 16))).signature.endswith("x: f32[4,16])")
    assert ex.explore(lambda tree: tree["a"] + tree["b"], {"a": 1.0, "b": 2.0}).signature == "(tree: 2 arrays)"
