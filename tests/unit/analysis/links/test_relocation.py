"""Lines of instructions without a place or with another's: the equations say them, or who reads them does."""

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.analysis.attribution import attribute
from explorer.analysis.graphs import placed
from explorer.capture.readers.hlo import read_hlo

X = jnp.ones((1, 1, 16, 16))
KERNEL = jnp.ones((1, 1, 3, 3))


def two_convolutions(stride):
    def f(x, w):
        y = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME")
        z = jax.lax.conv_general_dilated(jnp.tanh(y), w, (stride, stride), "SAME")
        return z

    return f


@pytest.mark.parametrize("stride", [1, 2])
def test_a_convolution_costs_its_own_line_though_its_metadata_is_lost(stride):
    f = two_convolutions(stride)
    table = ex.explore(f, X, KERNEL).lines()
    flops = {line.line - f.__code__.co_firstlineno: line.flops for line in table}
    assert flops[1] == pytest.approx(stride**2 * flops[2], rel=0.2)
    assert flops[1] + flops[2] > 0.9 * table.flops


def test_without_passes_what_has_no_metadata_is_of_no_equation():
    capture = ex.explore(two_convolutions(1), X, KERNEL, record=False)
    nameless = [node for node in capture.hlo.graph.nodes if not node.scope]
    assert nameless
    assert {capture.links.grade(node, "jaxpr") for node in nameless} == {"unknown"}


def test_what_is_inside_of_a_kernel_that_finds_its_place_by_its_reader_has_it_too():
    graph = read_hlo(
        """HloModule m
fused (p: f32[8]) -> f32[8] {
  p = f32[8] parameter(0)
  ROOT copy.1 = f32[8] copy(p)
}
ENTRY main {
  x = f32[8] parameter(0)
  transposed = f32[8] fusion(x), kind=kLoop, calls=fused
  ROOT sine = f32[8] sine(transposed), metadata={source_file="model.py" source_line=3}
}
"""
    )
    by = placed(graph)
    assert graph.names[by[graph["copy.1"].index]] == "sine"
    attribution = attribute(graph, graph, {graph["transposed"].index: graph["sine"].index})
    assert graph.names[attribution.by[graph["copy.1"].index]] == "transposed"
    assert attribution.place(graph["copy.1"].index) == ex.types.SourceLine("model.py", 3, "", "serves")


def test_a_product_that_a_transpose_was_folded_into_stays_in_its_own_line():
    def f(a, b, c):
        left = a @ b
        return jnp.tanh(c @ left.T)

    a, b, c = jnp.ones((64, 512)), jnp.ones((512, 32)), jnp.ones((64, 32))
    capture = ex.explore(f, a, b, c)
    first = f.__code__.co_firstlineno
    flops = {line.line - first: line.flops for line in capture.lines()}
    assert flops[1] == 2 * 64 * 512 * 32
    assert flops[2] >= 2 * 64 * 32 * 64


def test_a_product_named_as_a_transpose_of_its_own_line_keeps_its_place():
    def f(a, b):
        return jnp.tanh(a @ b.T)

    a, b = jnp.ones((64, 512)), jnp.ones((32, 512))
    for function in (f, jax.grad(lambda a, b: f(a, b).sum())):
        products = ex.explore(function, a, b).hlo.graph.where("op:dot")
        assert products
        assert all(node.place.how == "own" for node in products)
        assert {node.place.line for node in products} == {f.__code__.co_firstlineno + 1}


def test_what_jax_lowered_once_for_two_lines_is_on_the_line_of_its_own_equation():
    def f(x):
        first = jax.lax.map(lambda row: jnp.sin(row) * 1.5, x)
        second = jax.lax.map(lambda row: row - row.max(), first)
        return second

    capture = ex.explore(f, jnp.ones((5, 4)))
    line = f.__code__.co_firstlineno
    slices = [node.index for node in capture.hlo.graph.nodes if node.op == "dynamic-slice"]
    attribution = capture.hlo.graph.attribution
    assert {attribution.place(node).line - line for node in slices} == {1, 2}
