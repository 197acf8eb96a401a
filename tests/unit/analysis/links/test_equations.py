"""What depends on an argument, and what nothing depends on."""

import jax
import jax.numpy as jnp

import explorer as ex
from explorer.analysis.graphs import is_dead, varies
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


def varying(text):
    graph = read_hlo(text)
    return {name for name, is_varying in zip(graph.names, varies(graph), strict=True) if is_varying}


def test_what_depends_on_an_argument_does_so_through_kernels_and_round_loops():
    everything = set(read_hlo(MODULE).names)
    assert varying(MODULE) == everything - {"one", "n", "c.r"}


def test_a_parameter_depends_on_what_its_own_number_is_given():
    text = MODULE.replace("fusion(x, y)", "fusion(one, y)")
    assert {"k.q", "k.t", "k"} <= varying(text)
    assert not {"k.p", "k.s"} & varying(text)


def test_where_the_operands_are_not_as_many_as_the_parameters_each_depends_on_all():
    text = MODULE.replace("fusion(x, y)", "fusion(one, y, z)")
    assert {"k.p", "k.q"} <= varying(text)


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
