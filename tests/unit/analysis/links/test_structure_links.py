"""Links from structure: paths, calls in place of their functions, lowering in order, and what tells equal ones apart.

The oracle is what takes no part in linking: the numbers that equations multiply by, and JAX's own parameters.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

import explorer as ex
from explorer.analysis.links.features import dtype_name
from explorer.analysis.links.inlining import inline_calls
from explorer.analysis.links.paths import parse_path
from explorer.model.types import parse_type

X = jnp.linspace(0.1, 0.9, 16)
WORDS = st.text(st.characters(codec="ascii"), max_size=30)


@given(WORDS)
def test_any_path_is_parsed(path):
    parsed = parse_path(path)
    assert list(parsed.names) == sorted(parsed.names)
    assert parsed.loops >= 0


@given(st.lists(st.sampled_from(["attention", "mlp", "norm"]), max_size=3))
def test_transforms_calls_and_scopes_are_the_same_however_they_are_nested(scopes):
    inner = "/".join([*scopes, "mul"])
    whole = parse_path(f"jit(f)/transpose(jvp(jit(g)))/{inner}")
    apart = parse_path(f"jit(f)/transpose(jvp())/jit(g)/{inner}")
    assert whole == apart
    assert whole.names == tuple(sorted([*scopes, "jit:g"]))
    assert (whole.transforms, whole.primitive) == (("transpose", "jvp"), "mul")


def test_a_function_called_three_times_stands_in_each_place_with_its_whole_path():
    @jax.jit
    def g(x):
        return jnp.tanh(x) * 2

    graph = ex.explore(lambda x: g(g(x) + 1) + g(x * 3), X).stablehlo.graph
    inlined = inline_calls(graph)
    copies = [node for node in inlined.graph.nodes if node.op == "stablehlo.tanh"]
    assert len(copies) == 3 > sum(node.op == "stablehlo.tanh" for node in graph.nodes)
    assert {node.scope.split("/")[1:] == ["jit(g)", "tanh"] for node in copies} == {True}
    assert sorted(inlined.order.tolist()) == list(range(len(inlined.graph)))
    place = {node: at for at, node in enumerate(inlined.order.tolist())}
    for node in inlined.graph.nodes:
        assert graph.ops[int(graph.op[inlined.row[node.index]])] == node.op
        assert all(place[operand.index] < place[node.index] for operand in node.operands)
    assert [len(node.operands) for node in copies] == [1, 1, 1]


def multiplied_by(node):
    """The number that an instruction multiplies by."""
    for operand in node.operands:
        at = operand.operands[0] if operand.op == "broadcast" and operand.operands else operand
        if at.op == "constant":
            return float(at.attributes["literal"])
    return None


@pytest.mark.parametrize("is_differentiated", [False, True])
def test_iterations_of_an_unrolled_loop_are_told_apart_by_how_they_follow_one_another(is_differentiated):
    def f(x):
        for i in range(5):
            x = jnp.tanh(x) * (1.5 + i)
        return x.sum()

    capture = ex.explore(jax.grad(f) if is_differentiated else f, X)
    seen = []
    for node in capture.hlo.graph.nodes:
        number = multiplied_by(node) if node.op == "multiply" else None
        linked = capture.links.linked(node, "jaxpr")
        literals = [
            float(there.attributes["literals"].split("=")[1].split(":")[0])
            for there in linked
            if there.op == "mul" and "literals" in there.attributes
        ]
        if number is None or len(literals) < len(linked):  # of an equation that multiplies by no number of its own
            continue
        assert number in literals
        seen.append((number, len(linked)))
    assert {number for number, _ in seen} >= {1.5, 2.5, 3.5, 4.5}  # the last one's gradient is a constant
    assert sum(count == 1 for _, count in seen) >= 0.8 * len(seen)


def _repeated(c, p):
    for i in range(4):
        c = jnp.tanh(c * (1.5 + i)) + p
    return c


INSIDE = {
    "scan": lambda x, p: lax.scan(lambda c, _: (_repeated(c, p), None), x, None, length=3)[0],
    "while": lambda x, p: lax.while_loop(lambda c: c.sum() < 9, lambda c: _repeated(c, p), x),
    "branch": lambda x, p: lax.cond(p.sum() > 0, lambda c: _repeated(c, p), lambda c: c, x * 0.7),
}


@pytest.mark.parametrize("where", INSIDE)
def test_what_depends_on_fewer_arguments_outside_of_a_loop_or_a_branch_is_not_mistaken_inside(where):
    capture = ex.explore(INSIDE[where], X, X * 2)
    numbers = set()
    for node in capture.hlo.graph.nodes:
        number = multiplied_by(node) if node.op == "multiply" else None
        linked = [there for there in capture.links.linked(node, "jaxpr") if there.op == "mul"]
        if number is not None and linked:
            literals = [float(there.attributes["literals"].split("=")[1].split(":")[0]) for there in linked]
            assert number in [pytest.approx(literal) for literal in literals]
            numbers.add(number)
    assert numbers >= {1.5, 2.5, 3.5, 4.5}


def test_equal_operations_of_one_line_are_told_apart_by_their_attributes():
    def f(x):
        return jnp.pad(x, (0, 2)) + jnp.pad(x, (2, 0)) + jnp.pad(x, (1, 1)), x[3:] - x[:-3], x[2:-1]

    capture = ex.explore(f, X)
    pads = {
        node.attributes["padding"]: capture.links.linked(node, "jaxpr") for node in capture.hlo.graph.where("op:pad")
    }
    assert {padding: len(linked) for padding, linked in pads.items()} == {"0_2": 1, "2_0": 1, "1_1": 1}
    for padding, (equation,) in pads.items():
        assert [f"int64({end})" in equation.attributes["padding_config"] for end in padding.split("_")] == [True, True]
    for node in capture.hlo.graph.nodes:
        if node.op == "slice":
            begin = node.attributes["slice"].strip("{[").partition(":")[0]
            assert {there.attributes["start_indices"] for there in capture.links.linked(node, "jaxpr")} == {
                f"({begin},)"
            }


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
    lowered = capture.links.linked(equation, "stablehlo")
    assert lowered
    unlinked = [
        node
        for node in capture.stablehlo.graph.nodes
        if capture.stablehlo.graph.is_equation[node.index] and not capture.links.linked(node, "jaxpr")
    ]
    assert unlinked == []
    assert capture.links.grade(equation, "stablehlo") == "inferred"


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


def test_of_a_linear_solve_only_the_solution_is_linked():
    def f(a, b):
        return jnp.linalg.solve(a, b).sum()

    capture = ex.explore(f, jnp.eye(3) * 2, jnp.ones(3))
    graph = capture.jaxpr.graph
    (solve,) = (node for node in graph.nodes if node.op == "custom_linear_solve")
    around = {index: graph.groups[group].name for index, group in enumerate(graph.group.tolist())}
    inside = {
        name: [index for index, own in around.items() if own == name and graph.is_equation[index]]
        for name in set(around.values())
        if name.startswith("jaxprs")
    }
    linked = {node.index for late in capture.stablehlo.graph.nodes for node in capture.links.linked(late, "jaxpr")}
    assert solve.index not in linked
    # The system times a vector, and the transposed system, are descriptions that only differentiation needs.
    assert {name: not linked.isdisjoint(rows) for name, rows in inside.items()} == {
        "jaxprs[0]": False,
        "jaxprs[1]": False,
        "jaxprs[2]": True,
        "jaxprs[3]": False,
    }
    (lu,) = (node for node in graph.nodes if node.op == "lu")
    assert "stablehlo.while" in {node.op for node in capture.links.linked(lu, "stablehlo")}


@pytest.mark.parametrize("dtype", ["uint8", "uint32", "int16", "float32", "bool", "complex64"])
def test_element_types_have_one_name_in_all_stages(dtype):
    capture = ex.explore(lambda x: x.reshape(3, 2), jnp.ones(6, dtype))
    types = [next(node.type for node in stage.graph.nodes) for stage in (capture.jaxpr, capture.stablehlo, capture.hlo)]
    assert len({dtype_name(parse_type(str(each)).arrays[0].dtype) for each in types}) == 1


def test_a_random_key_has_dimensions():
    (array,) = parse_type("key<fry>[3,4]").arrays
    assert (array.dtype, array.shape) == ("key<fry>", (3, 4))


def test_links_of_a_large_unrolled_program_stay_small():
    def f(x):
        for _ in range(60):
            x = jnp.tanh(x + 1) * x
        return x

    sets = ex.explore(f, X).links.sets["hlo"]
    assert np.median(sets.size[sets.size > 0]) == 1


def test_without_stablehlo_the_body_of_a_loop_is_linked_by_its_lines():
    def looped(x):
        last, sums = jax.lax.scan(lambda carry, _: (jnp.sin(carry) @ x, carry.sum()), x, None, length=4)
        return last.sum() + sums.sum()

    whole = ex.explore(looped, jnp.ones((8, 8)))
    capture = replace(whole, stages=tuple(stage for stage in whole.stages if stage.name != "stablehlo"))
    links = capture.links
    assert {
        node.op: [linked.op for linked in links.linked(node, "jaxpr")]
        for node in capture.hlo.graph.nodes
        if node.op in ("sine", "dot")
    } == {"sine": ["sin"], "dot": ["dot_general"]}
