"""Instructions that lost their place are found by what they are; where that isn't certain, nothing is said."""

import jax
import jax.numpy as jnp

import explorer as ex
from explorer.analysis.attribution import attribute, attribute_in
from explorer.analysis.links.relocation import relocate_unattributed
from explorer.analysis.placement import placed
from explorer.capture.readers.hlo import read_hlo
from explorer.model.capture import Capture
from explorer.model.compilation import Durations
from explorer.model.stage import Stage

X = jnp.ones((1, 1, 16, 16))


def kernel(size):
    return jnp.ones((1, 1, size, size))


def conv(x, w):
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME")


def without_places(capture):
    """The capture as XLA's CPU compiler leaves it, but with no convolution's metadata for certain."""
    lines = capture.hlo.text.split("\n")
    text = "\n".join(line.partition(", metadata=")[0] if " convolution(" in line else line for line in lines)
    stages = [
        stage if stage.name != "hlo" else Stage("hlo", lambda: (text, read_hlo(text))) for stage in capture.stages
    ]
    return Capture("f", "", stages, Durations(), read_source=capture.read_source)


def lines_found(function, *args):
    """The lines of the convolutions, in the optimised program's order, from the function's first on."""
    capture = without_places(ex.explore(function, *args))
    jaxpr = capture.jaxpr.graph
    first = function.__code__.co_firstlineno
    found = relocate_unattributed(capture)
    return [jaxpr.frames[int(jaxpr.frame[row])].line - first for _, row in sorted(found.items())]


def test_the_only_convolution_is_found():
    def f(x, w):
        y = conv(x, w)
        return jnp.tanh(y)

    # In conv() itself: the innermost line of the user's.
    capture = without_places(ex.explore(f, X, kernel(3)))
    found = relocate_unattributed(capture)
    (row,) = found.values()
    assert capture.jaxpr.graph.ops[int(capture.jaxpr.graph.op[row])] == "conv_general_dilated"
    lines = {line.line: line for line in capture.lines()}
    assert lines[conv.__code__.co_firstlineno + 1].flops > 0.9 * capture.lines().flops


def test_convolutions_of_one_size_are_in_the_same_order():
    def f(x, w):
        y = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME")
        z = jax.lax.conv_general_dilated(jnp.tanh(y), w, (1, 1), "SAME")
        return z

    assert lines_found(f, X, kernel(3)) == [1, 2]


def test_convolutions_of_different_sizes_are_told_apart_by_them():
    def f(x, w):
        y = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME")
        z = jax.lax.conv_general_dilated(jnp.tanh(y), w, (2, 2), "SAME")
        return z

    assert lines_found(f, X, kernel(3)) == [1, 2]


def test_where_it_does_not_come_out_even_nothing_is_said():
    def f(x, w):
        y = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME")
        z = jax.lax.conv_general_dilated(jnp.tanh(y), w, (1, 1), "SAME")
        return z

    capture = without_places(ex.explore(f, X, kernel(3)))
    text = capture.hlo.text
    first = next(line for line in text.split("\n") if " convolution(" in line)
    fewer = text.replace(first, first.replace(" convolution(", " custom-call("), 1)
    stages = [
        stage if stage.name != "hlo" else Stage("hlo", lambda: (fewer, read_hlo(fewer))) for stage in capture.stages
    ]
    assert relocate_unattributed(Capture("f", "", stages, Durations())) == {}


def test_without_a_jaxpr_nothing_is_found():
    capture = without_places(ex.explore(conv, X, kernel(3)))
    text = capture.hlo.text
    alone = Capture("f", "", [Stage("hlo", lambda: (text, read_hlo(text)))], Durations())
    assert relocate_unattributed(alone) == {}


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
    assert attribution.place(graph["copy.1"].index) == ex.SourceLine("model.py", 3, "", "serves")


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
    assert not relocate_unattributed(ex.explore(f, a, b))
    assert not relocate_unattributed(ex.explore(jax.grad(lambda a, b: f(a, b).sum()), a, b))


def test_what_jax_lowered_once_for_two_lines_is_on_the_line_of_its_own_equation():
    def f(x):
        first = jax.lax.map(lambda row: jnp.sin(row) * 1.5, x)
        second = jax.lax.map(lambda row: row - row.max(), first)
        return second

    capture = ex.explore(f, jnp.ones((5, 4)))
    _ = capture.passes
    line = f.__code__.co_firstlineno
    slices = [node.index for node in capture.hlo.graph.nodes if node.op == "dynamic-slice"]
    attribution = attribute_in(capture, "hlo", capture.hlo.graph)
    assert {attribution.place(node).line - line for node in slices} == {1, 2}
