"""What a fusion computes, in words."""

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.capture.readers.hlo import read_hlo

SOFTMAX = """HloModule m

max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

inner {
  p = f32[8,4] parameter(0)
  ROOT t = f32[8,4] tanh(p), metadata={op_name="jit(f)/tanh"}
}

fused {
  p = f32[8,4] parameter(0)
  zero = f32[] constant(0)
  biggest = f32[8] reduce(p, zero), dimensions={1}, to_apply=max, metadata={op_name="jit(f)/reduce_max"}
  wide = f32[8,4] broadcast(biggest), dimensions={0}, metadata={op_name="jit(f)/broadcast_in_dim"}
  moved = f32[8,4] subtract(p, wide), metadata={op_name="jit(f)/sub"}
  up = f32[8,4] exponential(moved), metadata={op_name="jit(f)/exp"}
  deep = f32[8,4] fusion(up), kind=kLoop, calls=inner
  ROOT total = f32[8] reduce(deep, zero), dimensions={1}, to_apply=sum, metadata={op_name="jit(f)/reduce_sum"}
}

laid {
  p = f32[8] parameter(0)
  ROOT c = f32[8] copy(p), metadata={op_name="jit(f)/dot_general"}
}

laid_twice {
  p = f32[8] parameter(0)
  w = f32[4,8] broadcast(p), dimensions={1}
  ROOT c = f32[8,4] transpose(w), dimensions={1,0}
}

mean {
  p = f32[8] parameter(0)
  w = f32[8,4] broadcast(p), dimensions={0}, metadata={op_name="jit(f)/broadcast_in_dim"}
  t = f32[4,8] transpose(w), dimensions={1,0}
  n = f32[4,8] negate(t)
  s = f32[2,8] slice(n), slice={[0:2], [0:8]}
  ROOT d = f32[2,8] divide(s, s), metadata={op_name="jit(f)/div"}
}

around {
  p = f32[8] parameter(0)
  w = f32[2,8] fusion(p), kind=kLoop, calls=mean
  ROOT c = f32[2,8] copy(w)
}

called {
  p = f32[8] parameter(0)
  ROOT c = f32[8] custom-call(p), custom_call_target="lapack_sgetrf_ffi"
}

ENTRY main {
  x = f32[8,4] parameter(0)
  softmax = f32[8] fusion(x), kind=kLoop, calls=fused
  copied = f32[8] fusion(softmax), kind=kLoop, calls=laid
  turned = f32[8,4] fusion(copied), kind=kLoop, calls=laid_twice
  halved = f32[2,8] fusion(copied), kind=kLoop, calls=around
  ROOT solved = f32[8] fusion(copied), kind=kCustom, calls=called
}
"""


@pytest.fixture(scope="module")
def words():
    graph = read_hlo(SOFTMAX)
    return {graph.names[node]: text for node, text in graph.kernel_words.items()}


def test_the_most_characteristic_operations_stand_in_program_order(words):
    assert words["softmax"] == "max, exp, sum"


def test_a_fusion_in_another_has_words_of_its_own(words):
    assert words["deep"] == "tanh"


def test_what_the_compiler_moves_is_called_a_move_whatever_it_was_made_for(words):
    assert words["copied"] == "copy"


def test_moves_are_said_only_where_nothing_computes(words):
    assert words["halved"] == "negate, divide"  # also of what is in a fusion inside of it
    assert words["turned"] == "broadcast, transpose"


def test_a_custom_call_is_called_by_its_target(words):
    assert words["solved"] == "lapack_sgetrf_ffi"


def test_only_fusions_have_any(words):
    assert set(words) == {"softmax", "deep", "copied", "solved", "turned", "halved", "w"}
    assert ex.explore(lambda x: x * 2, jnp.ones(3)).jaxpr.graph.kernel_words == {}


def test_a_real_program_s_kernel_is_named_for_what_its_function_does():
    def energy(x):
        return jnp.sum(jnp.tanh(x) * x)

    graph = ex.explore(energy, jax.ShapeDtypeStruct((4096,), jnp.float32)).hlo.graph
    assert any("sum" in text or "tanh" in text for text in graph.kernel_words.values())
