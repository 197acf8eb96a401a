"""Links between stages: exact where the equations are numbered, by names and places elsewhere.

The oracle is what takes no part in linking: the numbers that equations multiply by, and JAX's own parameters.
"""

import re
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

import explorer as ex
from explorer.analysis.graphs import placed
from explorer.analysis.hierarchy import nest
from explorer.model.links import GRADES
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


# By numbers ----------------------------------------------------------------------------------------------------------

X = jnp.linspace(0.1, 0.9, 16)
SEVERAL = {
    "logistic": lambda x: jax.nn.sigmoid(x) + 1,
    "erf_inv": lambda x: lax.erf_inv(x) + 1,
    "integer_pow": lambda x: x**5 + 1,
    "cumsum": lambda x: jnp.cumsum(x) + 1,
    "random_bits": lambda x: jax.random.uniform(jax.random.key(0), x.shape) + x,
    "random_split": lambda x: jax.random.normal(jax.random.split(jax.random.key(3), 3)[1], x.shape) + x,
    "select_and_scatter_add": jax.grad(
        lambda x: (lax.reduce_window(x * x, -jnp.inf, lax.max, (4,), (2,), "VALID") ** 2).sum()
    ),
}


@pytest.mark.parametrize("primitive", SEVERAL)
def test_all_operations_of_a_primitive_that_becomes_several_are_its(primitive):
    capture = ex.explore(SEVERAL[primitive], X)
    (equation,) = (node for node in capture.jaxpr.graph.nodes if node.op == primitive)
    assert capture.links.linked(equation, "stablehlo")
    assert capture.links.grade(equation, "stablehlo") == "exact"
    graph = capture.stablehlo.graph
    unlinked = [
        node for node in graph.nodes if graph.is_equation[node.index] and not capture.links.linked(node, "jaxpr")
    ]
    assert unlinked == []


def test_equal_operations_of_one_line_are_told_apart():
    def f(x):
        return jnp.pad(x, (0, 2)) + jnp.pad(x, (2, 0)) + jnp.pad(x, (1, 1)), x[3:] - x[:-3], x[2:-1]

    capture = ex.explore(f, X)
    for node in capture.hlo.graph.nodes:
        if node.op in ("pad", "slice"):
            (equation,) = capture.links.linked(node, "jaxpr")
            assert capture.links.grade(node, "jaxpr") == "exact"
            if node.op == "pad":
                ends = node.attributes["padding"].split("_")
                assert [f"int64({end})" in equation.attributes["padding_config"] for end in ends] == [True, True]
            else:
                begin = node.attributes["slice"].strip("{[").partition(":")[0]
                assert equation.attributes["start_indices"] == f"({begin},)"


def test_a_scan_counts_and_slices_for_itself_and_its_body_is_of_its_equations():
    def f(xs):
        return lax.scan(lambda carry, x: (carry * 0.5 + x, jnp.sin(carry)), 0.0, xs)

    capture = ex.explore(f, X)
    (scan,) = (node for node in capture.jaxpr.graph.nodes if node.op == "scan")
    ops = {node.op for node in capture.links.linked(scan, "stablehlo")}
    assert {"stablehlo.while", "stablehlo.dynamic_slice", "stablehlo.compare"} <= ops
    assert not {"stablehlo.sine", "stablehlo.multiply"} & ops
    (sine,) = (node for node in capture.jaxpr.graph.nodes if node.op == "sin")
    assert {node.op for node in capture.links.linked(sine, "stablehlo")} == {"stablehlo.sine"}


def test_of_a_linear_solve_what_only_differentiation_needs_is_not_linked():
    capture = ex.explore(lambda a, b: jnp.linalg.solve(a, b).sum(), jnp.eye(3) * 2, jnp.ones(3))
    graph = capture.jaxpr.graph
    around = {index: graph.groups[group].name for index, group in enumerate(graph.group.tolist())}
    linked = {node.index for late in capture.stablehlo.graph.nodes for node in capture.links.linked(late, "jaxpr")}
    # The system times a vector, and the transposed system, are descriptions alone.
    assert {around[row] for row in linked if around[row].startswith("jaxprs")} == {"jaxprs[2]"}
    (lu,) = (node for node in graph.nodes if node.op == "lu")
    assert "stablehlo.while" in {node.op for node in capture.links.linked(lu, "stablehlo")}


# By names and places -------------------------------------------------------------------------------------------------


def multiplied_by(node):
    """The number that an instruction multiplies by."""
    for operand in node.operands:
        at = operand.operands[0] if operand.op == "broadcast" and operand.operands else operand
        if at.op == "constant":
            return float(at.attributes["literal"])
    return None


def _repeated(c, p):
    for i in range(4):
        c = jnp.tanh(c * (1.5 + i)) + p
    return c


INSIDE = {
    "line": lambda x, p: _repeated(x, p),
    "scan": lambda x, p: lax.scan(lambda c, _: (_repeated(c, p), None), x, None, length=3)[0],
    "while": lambda x, p: lax.while_loop(lambda c: c.sum() < 9, lambda c: _repeated(c, p), x),
    "branch": lambda x, p: lax.cond(p.sum() > 0, lambda c: _repeated(c, p), lambda c: c, x * 0.7),
}


@pytest.mark.parametrize("record", [True, False])
@pytest.mark.parametrize("where", INSIDE)
def test_a_product_is_linked_to_the_equation_with_its_number(where, record):
    capture = ex.explore(INSIDE[where], X, X * 2, record=record)
    numbers = set()
    for node in capture.hlo.graph.nodes:
        number = multiplied_by(node) if node.op == "multiply" else None
        linked = [there for there in capture.links.linked(node, "jaxpr") if there.op == "mul"]
        if number is None or not linked:
            continue
        literals = [float(there.attributes["literals"].split("=")[1].split(":")[0]) for there in linked]
        assert number in [pytest.approx(literal) for literal in literals]
        # Equal operations of one line have one name and one place: without numbers it is one of them.
        assert capture.links.grade(node, "jaxpr") == ("exact" if record else "inferred")
        assert len(linked) == 1 or not record
        numbers.add(number)
    assert numbers >= {1.5, 2.5, 3.5, 4.5}


def test_without_stablehlo_the_body_of_a_loop_is_linked_by_its_lines():
    def looped(x):
        last, sums = jax.lax.scan(lambda carry, _: (jnp.sin(carry) @ x, carry.sum()), x, None, length=4)
        return last.sum() + sums.sum()

    whole = ex.explore(looped, jnp.ones((8, 8)), record=False)
    capture = replace(whole, stages=tuple(stage for stage in whole.stages if stage.name != "stablehlo"))
    links = capture.links
    assert {
        node.op: [linked.op for linked in links.linked(node, "jaxpr")]
        for node in capture.hlo.graph.nodes
        if node.op in ("sine", "dot")
    } == {"sine": ["sin"], "dot": ["dot_general"]}


# Each with what it has in common with others: transforms, primitive and loops.
NAMES = {
    "": "",
    "jit(f)/sin": "sin",
    "jit(f)/block/sin": "sin",
    "jit(f)/cos": "cos",
    "jit(f)/jvp()/sin": "jvp sin",
    "jit(f)/transpose(jvp())/sin": "transpose sin",
    "jit(f)/while/body/sin": "sin in a loop",
    "jit(f)/while/body/block/sin": "sin in a loop",
}
PLACES = st.lists(st.tuples(st.sampled_from([*NAMES]), st.integers(0, 3)), min_size=1, max_size=6)


def module(places):
    """A chain of instructions; each has a name, empty for none, and a line, 0 for none."""
    lines = ["HloModule jit_f", "ENTRY main {", "  v0 = f32[8] parameter(0)"]
    for i, (name, line) in enumerate(places):
        said = [f'op_name="{name}"'] * bool(name) + [f'source_file="model.py" source_line={line}'] * bool(line)
        metadata = f", metadata={{{' '.join(said)}}}" if said else ""
        lines.append(f"  {'ROOT ' * (i + 1 == len(places))}v{i + 1} = f32[8] sine(v{i}){metadata}")
    return "\n".join([*lines, "}"])


@given(PLACES, PLACES)
def test_in_a_dump_what_has_one_name_and_place_or_is_alike_there_is_linked_and_never_exactly(before, after):
    with TemporaryDirectory() as folder:
        for when, places in (("before", before), ("after", after)):
            Path(folder, f"module_0001.jit_f.{when}_optimizations.txt").write_text(module(places))
        capture = ex.open_hlo(folder)
        for node, place in zip([*capture.hlo.graph.nodes][1:], after, strict=True):
            name, line = place
            same = [f"v{i + 1}" for i, other in enumerate(before) if other == place and all(place)]
            alike = [f"v{i + 1}" for i, (it, at) in enumerate(before) if NAMES[it] == NAMES[name] and at == line]
            same = same or (alike if all(place) else [])
            assert [there.name for there in capture.links.linked(node, "before")] == same
            assert capture.links.grade(node, "before") == ("inferred" if same else "unknown")


def test_without_metadata_nothing_is_linked():
    capture = ex.explore(update, [jnp.eye(8)], jnp.ones((4, 8)), record=False)
    text = re.sub(r", metadata=\{[^}]*\}", "", capture.hlo.text)
    with TemporaryDirectory() as folder:
        Path(folder, "module_0001.jit_f.before_optimizations.txt").write_text(capture.hlo.text)
        Path(folder, "module_0001.jit_f.after_optimizations.txt").write_text(text)
        assert ex.open_hlo(folder).coverage("hlo", "unknown") == 1


# What is said of a capture --------------------------------------------------------------------------------------------


def test_constants_carry_their_python_names():
    weights = {"w": jnp.ones((8, 8))}

    def f(x):
        return x @ weights["w"]

    (constant,) = ex.explore(f, jnp.ones((2, 8))).constants
    assert (constant.name, constant.type, constant.bytes) == ("weights['w']", "f32[8,8]", 256)


def test_the_signature_names_the_arguments_and_counts_a_trees_arrays():
    assert ex.explore(loss, jnp.ones((3, 16, 16)), jnp.ones((4, 16))).signature.endswith("x: f32[4,16])")
    assert ex.explore(lambda tree: tree["a"] + tree["b"], {"a": 1.0, "b": 2.0}).signature == "(tree: 2 arrays)"


def test_the_parameters_of_a_reduction_that_xla_splits_are_of_its_equation():
    capture = ex.explore(lambda x: jnp.sum(x * x), jnp.ones(64))
    grades = capture.links.grades("hlo")
    applied = [node for node in capture.hlo.graph.nodes if node.op == "parameter" and node.group.kind == "apply"]
    assert len(applied) >= 4  # XLA sums parts, then their sums
    assert {GRADES[grades[node.index]] for node in applied} == {"exact"}
    (summed,) = capture.jaxpr.graph.where("op:reduce_sum")
    assert all(summed in capture.links.linked(node, "jaxpr") for node in applied)
