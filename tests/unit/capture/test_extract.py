"""An instruction as a module of its own: XLA parses it, compiles it, and it gives what the instruction gave."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxlib import _hlo, _jax

import explorer as ex
from explorer.capture.readers.hlo import read_hlo
from explorer.errors import ForeignNodeError, OptionError
from tests.examples.training import training_capture
from tests.support.quick import quick

KEY = jax.random.key(0)
X, W = jax.random.normal(KEY, (16, 16)), jax.random.normal(jax.random.key(1), (16, 16))


def run(text, *arguments):
    """What a module gives, compiled by XLA from its text."""
    module = _hlo.hlo_module_from_text(text)
    computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
    mlir = _jax.mlir.xla_computation_to_mlir_module(computation)
    client = jax.devices()[0].client
    executable = client.compile_and_load(mlir, _jax.DeviceList(tuple(jax.devices()[:1])))
    outputs = executable.execute([jax.device_put(argument) for argument in arguments])
    return [np.asarray(output) for output in outputs]


def entry_parameters(graph):
    return [node for node in graph.nodes if node.op == "parameter" and node.group.kind == "entry"]


def of_entry(graph):
    return [node for node in graph.nodes if node.group.kind == "entry" and node.op not in ("parameter", "constant")]


def attention(x, w):
    q, k = x @ w, jnp.tanh(x)
    return jax.nn.softmax(q @ k.T / 4.0) @ x


def sorted_and_scattered(x, w):
    order = jnp.argsort(x[:, 0])
    return jnp.cumsum(x[order], axis=0).at[order].add(w).sum(1)


def looped(x, w):
    y = jax.lax.fori_loop(0, 3, lambda _, c: jnp.tanh(c @ w), x)
    return jax.lax.cond(y.sum() > 0, lambda y: y * 2, lambda y: y - 1, y)


PROGRAMS = {"attention": attention, "sorted": sorted_and_scattered, "looped": looped}


@pytest.mark.parametrize("name", quick(PROGRAMS, {"attention", "looped"}))
def test_the_root_with_all_that_feeds_it_gives_what_the_function_gives(name):
    capture = ex.explore(PROGRAMS[name], X, W)
    root = next(node for node in of_entry(capture.hlo.graph) if capture.hlo.graph.is_root[node.index])
    text = capture.extract(root, height=10_000)
    extracted = read_hlo(text)
    inputs = {node.name: value for node, value in zip(entry_parameters(capture.hlo.graph), (X, W), strict=False)}
    given = [inputs[node.name] for node in entry_parameters(extracted)]
    np.testing.assert_allclose(run(text, *given)[0], PROGRAMS[name](X, W), rtol=2e-5, atol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "height"), [("attention", 0), ("sorted", 1), ("looped", 2)])
def test_with_what_its_operands_gave_an_instruction_gives_the_same_at_any_height(name, height):
    capture = ex.explore(PROGRAMS[name], X, W)
    graph = capture.hlo.graph
    inputs = {node.name: value for node, value in zip(entry_parameters(graph), (X, W), strict=False)}

    def value(node):
        """What the original gives there: everything that feeds it computed from the program's arguments."""
        if node.op == "parameter":
            return [np.asarray(inputs[node.name])]
        text = capture.extract(node, height=10_000)
        return run(text, *(inputs[given.name] for given in entry_parameters(read_hlo(text))))

    for node in of_entry(graph):
        text = capture.extract(node, height=height)
        extracted = read_hlo(text)
        arguments = []
        for parameter in entry_parameters(extracted):
            whole, _, element = parameter.name.partition(".element.")
            arguments.append(value(graph[whole])[int(element or 0)])
        for ours, theirs in zip(run(text, *arguments), value(node), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)


def test_an_instruction_inside_a_kernel_takes_the_kernels_parameters():
    capture = ex.explore(lambda x: jnp.tanh(jnp.sin(x) * 2 + 1), X)
    (tanh,) = capture.hlo.graph.where("op:tanh")
    assert tanh.group.kind == "fusion"
    text = capture.extract(tanh, height=100)
    np.testing.assert_allclose(run(text, X)[0], jnp.tanh(jnp.sin(X) * 2 + 1), rtol=1e-5)
    short = capture.extract(tanh)
    assert short.count("parameter(") == 1
    np.testing.assert_allclose(run(short, X)[0], jnp.tanh(X), rtol=1e-5)


@pytest.mark.slow
def test_every_instruction_of_a_training_step_can_be_extracted():
    capture = training_capture(2)
    nodes = [node for node in capture.hlo.graph.nodes if node.op not in ("parameter", "constant")]
    for node in nodes[::97]:
        assert read_hlo(capture.extract(node, height=2)).is_root.any()


def test_a_module_that_a_person_wrote_on_few_lines_is_extracted_too():
    capture = ex.open_hlo(
        "HloModule m\n\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n\n"
        "ENTRY e {\n  x = f32[8] parameter(0)\n  zero = f32[] constant(0)\n"
        "  ROOT all = f32[] reduce(x, zero),\n    dimensions={0}, to_apply=add\n}\n"
    )
    text = capture.extract(capture.hlo.graph["all"])
    assert run(text, np.arange(8, dtype=np.float32)) == [28.0]


def test_only_hlo_can_be_extracted():
    capture = ex.explore(jnp.sin, X)
    with pytest.raises(ForeignNodeError, match="not an instruction of this capture's HLO"):
        capture.extract(capture.jaxpr.graph.where("op:sin")[0])
    with pytest.raises(OptionError, match="height is -1"):
        capture.extract(next(capture.hlo.graph.nodes), height=-1)
