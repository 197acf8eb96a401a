"""What became of each equation: as the recorded passes tell, else as the metadata says; little is inferred."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.analysis.graphs import is_dead
from explorer.analysis.kernel_costs import kernel_of
from explorer.capture.readers.jaxpr import read_jaxpr
from explorer.model.fates import KINDS, Fate

X = jnp.ones((128, 64))


def fates(capture, stage="jaxpr"):
    """By operation, the fates in program order; arguments and constants have none."""
    found: dict[str, list[Fate]] = {}
    for node in capture.stage(stage).graph.nodes:
        if (fate := capture.fate(node)).kind:
            found.setdefault(node.op, []).append(fate)
    return found


def attention(q, k, v):
    return jax.nn.softmax(q @ k.T / jnp.sqrt(q.shape[-1] * 1.0)) @ v


def test_a_module_alone_has_no_equations_whose_fates_it_could_tell():
    module = ex.open_hlo(ex.explore(jnp.sin, X).hlo.text)
    with pytest.raises(ex.errors.UnknownNameError, match="equations of a stage 'jaxpr'; it knows for: none"):
        module.fates()


@pytest.fixture(scope="module")
def step():
    def block(w, x):
        centred = x - x.mean(-1, keepdims=True)
        return x + jnp.tanh(centred @ w)

    def objective(weights, x):
        for w in weights:
            x = block(w, x)
        return (x**2).sum()

    def update(weights, x):
        return [w - 0.1 * g for w, g in zip(weights, jax.grad(objective)(weights, x), strict=True)]

    return ex.explore(update, [jnp.eye(64) * (i + 1) for i in range(3)], X)


def test_an_operation_that_runs_alone_is_kept_and_its_kernel_is_named():
    capture = ex.explore(jnp.tanh, X)
    (fate,) = fates(capture)["tanh"]
    assert fate.kind == "kept"
    assert not fate.inferred
    assert [node.graph for node in fate.kernels] == [capture.hlo.graph]
    assert repr(fate) == f"kept as {fate.kernels[0].name}"


def test_operations_that_run_together_are_fused_into_one_kernel():
    capture = ex.explore(lambda x: jnp.sin(x) * 2 + 1, X)
    found = [fate for one in fates(capture).values() for fate in one]
    assert [fate.kind for fate in found] == ["fused"] * 3
    assert len({fate.kernels for fate in found}) == 1
    assert found[0].kernels[0].op == "fusion"
    assert not any(fate.inferred for fate in found)


def test_what_nothing_reads_is_eliminated_as_dead():
    def f(x):
        unused = jnp.sin(x) * 3  # noqa: F841
        return jnp.cos(x)

    found = fates(ex.explore(f, X))
    for op in ("sin", "mul"):
        assert repr(found[op][0]) == "eliminated by lowering: nothing that is returned depends on it"
    assert found["cos"][0].kind == "kept"


def test_an_effect_is_not_dead():
    def f(x):
        jax.debug.callback(lambda y: None, jnp.sin(x).sum())
        return jnp.cos(x)

    found = fates(ex.explore(f, X))
    assert all(fate.why != "nothing that is returned depends on it" for one in found.values() for fate in one)


def test_what_is_written_twice_is_computed_once():
    capture = ex.explore(lambda x: jnp.sin(x) + jnp.sin(x).sum(), X)
    first, second = fates(capture)["sin"]
    assert first.kernels
    assert not first.inferred
    assert repr(second) == "merged by cse (pass 1): the same as b, which stands for both"
    assert not second.inferred


def test_what_depends_on_no_argument_is_folded():
    found = fates(ex.explore(attention, X, X, X))
    assert found["sqrt"][0].kind == "folded"


def test_what_changes_no_value_is_eliminated():
    found = fates(ex.explore(lambda x: jax.lax.stop_gradient(x) + 1, X))
    assert repr(found["stop_gradient"][0]) == "eliminated by lowering: it changes no value"


def test_what_is_computed_again_in_another_kernel_is_duplicated():
    def layernorm(x):
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-6)

    found = fates(ex.explore(layernorm, X))
    (fate,) = found["sub"]
    assert fate.kind == "duplicated"
    assert len(fate.kernels) > 1
    assert "computed" in fate.why
    assert not fate.inferred


def test_a_call_is_inlined_and_a_loop_is_kept_as_the_loop():
    @jax.jit
    def inner(x):
        return jnp.sin(x) * 2

    assert fates(ex.explore(lambda x: inner(x) + 1, X))["jit"][0].kind == "inlined"
    loop = ex.explore(lambda w, x: jax.lax.scan(lambda h, _: (jnp.tanh(h @ w), None), x, None, length=10)[0], X[:64], X)
    (fate,) = fates(loop)["scan"]
    assert fate.kind == "kept"
    assert [node.op for node in fate.kernels] == ["while"]
    assert fates(loop)["tanh"][0].kind in ("kept", "fused")


def test_a_product_that_is_transposed_is_computed_transposed_and_does_the_work_of_both():
    capture = ex.explore(jax.grad(lambda w, x: (x @ w).sum()), X[:64], X)
    found = fates(capture)
    (product,) = [fate for fate in found["dot_general"] if fate.kind != "eliminated"]
    (kernel,) = product.kernels
    assert kernel.op == "dot"
    assert (product.kind, product.pass_name) == ("rewritten", "algsimp")
    assert (found["transpose"][0].kind, found["transpose"][0].pass_name) == ("folded into", "algsimp")
    assert found["transpose"][0].kernels == product.kernels


def unrecorded(capture):
    return replace(capture, record=None, read_passes=None)


def test_without_the_passes_a_fate_is_unknown_where_no_instruction_bears_its_name_and_says_what_would_help():
    capture = ex.explore(lambda x: jnp.sum(((x * 1.0).T.T + 0) * 0.25), X)
    gone = fates(unrecorded(capture))["transpose"]
    assert {fate.kind for fate in gone} == {"unknown"}
    assert "%explore --passes" in gone[0].why


@pytest.mark.parametrize("function", [jax.nn.softmax, lambda x: jnp.sum(((x * 1.0).T.T + 0) * 0.25)])
def test_a_kernel_that_an_equation_is_fused_into_has_an_instruction_of_it_recorded_or_not(function):
    recorded = ex.explore(function, X)
    _ = recorded.passes
    for capture in (recorded, unrecorded(ex.explore(function, X))):
        kernel = capture.hlo.graph.kernel
        for node in capture.jaxpr.graph.nodes:
            if (fate := capture.fate(node)).kind == "fused":
                inside = {int(kernel[there.index]) for there in capture.links.linked(node, "hlo")}
                assert {there.index for there in fate.kernels} <= inside


def test_a_constant_array_is_made_in_the_kernel_that_reads_it():
    (fate,) = fates(ex.explore(lambda x: x + jnp.arange(64.0) * 2, X))["mul"]
    assert fate.kind == "fused"


@pytest.mark.parametrize("stage", ["jaxpr", "stablehlo"])
def test_every_equation_has_exactly_one_fate_and_arguments_have_none(step, stage):
    found = step.fates(stage)
    graph = step.stage(stage).graph
    plain = [node for node in graph.nodes if node.op in ("parameter", "constant", "return", "stablehlo.constant")]
    assert sum(found.values()) == len(graph) - len(plain)
    assert not any(step.fate(node).kind for node in plain)
    assert set(found) <= set(KINDS)
    assert step.mapped(stage) == pytest.approx(1 - found.get("unknown", 0) / sum(found.values()))


def test_the_kernels_of_a_fate_are_kernels_that_have_something_of_it(step):
    kernel = kernel_of(step.hlo.graph)
    for node in step.jaxpr.graph.nodes:
        fate = step.fate(node)
        if fate.kind in ("merged", "folded", "eliminated", "inlined", "unknown", ""):
            assert not fate.kernels
        elif fate.kind in ("kept", "fused", "duplicated") and node.op not in ("scan", "while", "cond"):
            runs = {int(kernel[there.index]) for there in step.links.linked(node, "hlo")}
            assert {there.index for there in fate.kernels} <= runs


def test_nearly_all_of_a_training_step_is_mapped(step):
    assert step.passes  # recorded now, if it wasn't at once since the machine was busy
    assert step.mapped("jaxpr") > 0.9
    assert step.mapped("stablehlo") > 0.8


def test_each_iteration_of_an_unrolled_loop_runs_in_its_own_kernels(step):
    tanhs = fates(step)["tanh"]
    assert len(tanhs) == 3
    kernels = [set(fate.kernels) for fate in tanhs]
    assert all(kernels)
    assert all(not (a & b) for i, a in enumerate(kernels) for b in kernels[i + 1 :])


def test_the_weights_gradient_belongs_to_the_weights_own_kernel(step):
    """Three updates of one line, of one shape, in any order: only what they read and serve tells them apart."""
    entry = {
        node.scope: node for node in step.hlo.graph.nodes if node.op == "parameter" and node.scope.startswith("weights")
    }
    subtractions = [
        node for node in step.jaxpr.graph.nodes if node.op == "sub" and node.source[0].function.endswith("<listcomp>")
    ]
    subtractions = subtractions or [node for node in step.jaxpr.graph.nodes if node.op == "sub"][-3:]
    assert len(subtractions) == 3
    for node in subtractions:
        weight = next(operand.scope for operand in node.operands if operand.op == "parameter")
        kernels = step.fate(node).kernels
        assert kernels
        for kernel in kernels:
            assert entry[weight] in kernel.operands


def test_an_instruction_stands_for_what_it_was_made_of(step):
    for node in step.hlo.graph.nodes:
        for there in step.links.linked(node, "jaxpr"):
            assert node in step.links.linked(there, "hlo")


def test_a_saved_capture_tells_the_same_fates(step, tmp_path):
    step.save(tmp_path / "step.capture")
    loaded = ex.load(tmp_path / "step.capture")
    for stage in ("jaxpr", "stablehlo"):
        mine = [repr(step.fate(node)) for node in step.stage(stage).graph.nodes]
        assert mine == [repr(loaded.fate(node)) for node in loaded.stage(stage).graph.nodes]


def test_an_instruction_has_no_fate(step):
    with pytest.raises(ValueError, match="no node of this capture's jaxpr or stablehlo"):
        step.fate(next(step.hlo.graph.nodes))


@given(st.lists(st.tuples(st.sampled_from("+*-"), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12))
def test_what_lives_is_found_in_any_program(steps):
    """A program of binary operations on earlier values; the last is returned."""
    operations = {"+": jax.lax.add, "*": jax.lax.mul, "-": jax.lax.sub}
    wiring = [(sign, a % (i + 2), b % (i + 2)) for i, (sign, a, b) in enumerate(steps)]

    def program(x, y):
        values = [x, y]
        for sign, a, b in wiring:
            values.append(operations[sign](values[a], values[b]))
        return values[-1]

    alive = {len(wiring) + 1}
    for i in reversed(range(len(wiring))):
        if i + 2 in alive:
            alive |= set(wiring[i][1:])
    _, graph = read_jaxpr(jax.make_jaxpr(program)(1.0, 2.0))
    assert {i for i, dead in enumerate(is_dead(graph)) if not dead and i > 1} == {i for i in alive if i > 1}
