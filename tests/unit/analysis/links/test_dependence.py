"""Which arguments a value depends on, what nothing depends on, and what is computed twice."""

import jax
import jax.numpy as jnp

import explorer as ex
from explorer.analysis.links.dependence import argument_sets
from explorer.analysis.links.equations import is_dead
from explorer.capture.readers.hlo import read_hlo

MODULE = """HloModule m
sum {
  s.a = f32[] parameter(0)
  s.b = f32[] parameter(1)
  ROOT s.c = f32[] add(s.a, s.b)
}
fused {
  k.q = f32[8] parameter(1)
  k.p = f32[8] parameter(0)
  k.s = f32[8] sine(k.p)
  ROOT k.t = f32[8] cosine(k.q)
}
body {
  b.p = (f32[8], f32[8]) parameter(0)
  b.x = f32[8] get-tuple-element(b.p), index=0
  ROOT b.r = (f32[8], f32[8]) tuple(b.x, b.x)
}
cond {
  c.p = (f32[8], f32[8]) parameter(0)
  ROOT c.r = pred[] constant(false)
}
ENTRY main {
  x = f32[8] parameter(0), metadata={op_name="x"}
  y = f32[8] parameter(1), metadata={op_name="y"}
  z = f32[] parameter(2), metadata={op_name="z"}
  one = f32[] constant(1)
  k = f32[8] fusion(x, y), kind=kLoop, calls=fused
  r = f32[] reduce(k, z), dimensions={0}, to_apply=sum
  t = (f32[8], f32[8]) tuple(x, k)
  w = (f32[8], f32[8]) while(t), condition=cond, body=body
  n = f32[] negate(one)
  ROOT out = (f32[], (f32[8], f32[8]), f32[]) tuple(r, w, n)
}
"""
X, Y, Z = 1, 2, 4


def test_what_a_value_depends_on_goes_through_kernels_and_round_loops():
    graph = read_hlo(MODULE)
    bits = {}
    sets = dict(zip(graph.names, argument_sets(graph, bits), strict=True))
    assert bits == {"x": 0, "y": 1, "z": 2}
    assert sets == {
        "x": X, "y": Y, "z": Z, "one": 0, "n": 0,
        "k.p": X, "k.q": Y, "k.s": X, "k.t": Y,  # by their numbers, not by their order
        "k": X | Y, "r": X | Y | Z, "t": X | Y, "w": X | Y,
        "s.a": X | Y, "s.b": Z, "s.c": X | Y | Z,
        "b.p": X | Y, "b.x": X | Y, "b.r": X | Y, "c.p": X | Y, "c.r": 0,
        "out": X | Y | Z,
    }  # fmt: skip


def test_arguments_of_two_stages_have_the_same_bits():
    bits = {"z": 0, "y": 1}
    graph = read_hlo(MODULE)
    sets = dict(zip(graph.names, argument_sets(graph, bits), strict=True))
    assert bits == {"z": 0, "y": 1, "x": 2}
    assert (sets["z"], sets["y"], sets["x"], sets["k"]) == (1, 2, 4, 6)
    nameless = read_hlo(MODULE.replace(', metadata={op_name="x"}', "").replace(', metadata={op_name="y"}', ""))
    sets = dict(zip(nameless.names, argument_sets(nameless, {}), strict=True))
    assert len({sets[name] for name in "xyz"}) == 3  # without a name it is like no other


def test_where_the_operands_are_not_as_many_as_the_parameters_each_depends_on_all():
    graph = read_hlo(MODULE.replace("fusion(x, y)", "fusion(x, y, z)"))
    sets = dict(zip(graph.names, argument_sets(graph, {}), strict=True))
    assert sets["k.p"] == sets["k.q"] == X | Y | Z


# Equations -----------------------------------------------------------------------------------------------------------


def jaxpr(function, *arguments):
    return ex.explore(function, *arguments).jaxpr.graph


ONES = jnp.ones(8)


def test_what_nothing_that_is_returned_depends_on_is_dead():
    def function(x, y):
        unused = jnp.sin(y)
        jnp.cos(unused)
        jax.debug.callback(lambda value: None, jnp.tanh(y))

        def body(carry, _):
            return jnp.exp(carry), None

        carry, _ = jax.lax.scan(body, x, None, length=3)
        return carry * 2, 1.0

    graph = jaxpr(function, ONES, ONES)
    dead = {node.op for node in graph.nodes if is_dead(graph)[node.index]}
    assert dead == {"sin", "cos"}
