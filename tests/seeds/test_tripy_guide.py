"""Tripy's guide "Using the Compiler", its samples in order, in JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex

pytestmark = pytest.mark.slow


class Linear:
    def __init__(self, in_dim, out_dim):
        self.weight = jnp.zeros((out_dim, in_dim))
        self.bias = jnp.zeros(out_dim)

    def __call__(self, x):
        return x @ self.weight.T + self.bias


class GEGLU:
    def __init__(self, in_dim, out_dim):
        self.proj = Linear(in_dim, out_dim * 2)
        self.out_dim = out_dim

    def __call__(self, x):
        x, gate = jnp.split(self.proj(x), 2, axis=-1)
        return x * jax.nn.gelu(gate, approximate=False)


@pytest.fixture(scope="module")
def layer():
    layer = GEGLU(in_dim=2, out_dim=1)
    layer.proj.weight = jnp.ones((2, 2))
    layer.proj.bias = jnp.ones(2)
    return layer


# What the layer gives for ones: 1·1 + 1·1 + 1 = 3, and gelu(3) = 3·Φ(3) as its gate.
GATED_ONES = 3 * 3 * 0.99865010

inp = jnp.ones((1, 2))
inp1 = jnp.array([[1.0, 2.0], [2.0, 3.0]])


# Compiling


@pytest.fixture(scope="module")
def fast_geglu(layer):
    return ex.compile(layer, args=[ex.InputInfo(shape=(1, 2), dtype=jnp.float32)])


def test_a_layer_is_compiled_for_the_one_input_that_is_described(fast_geglu):
    assert list(fast_geglu.input_infos) == ["x"]


def test_what_is_no_input_becomes_a_constant_of_the_program(fast_geglu):
    assert {constant.name for constant in fast_geglu.explore().constants} == {"self.proj.weight", "self.proj.bias"}


def test_the_executable_behaves_like_a_callable(layer, fast_geglu):
    assert isinstance(fast_geglu, ex.Executable)
    out = fast_geglu(inp)
    np.testing.assert_allclose(out, [[GATED_ONES]], rtol=1e-6)
    np.testing.assert_allclose(out, layer(inp), rtol=1e-6)


# Dynamic Shapes


def test_a_range_of_sizes_is_from_1_to_4_and_optimised_for_2():
    inp_info = ex.InputInfo(shape=((1, 2, 4), 2), dtype=jnp.float32)
    assert inp_info.shape_bounds == ((1, 2), (2, 2), (4, 2))


def test_one_executable_takes_inputs_of_every_shape_in_the_range(layer):
    fast_geglu = ex.compile(layer, args=[ex.InputInfo(shape=((1, 2, 4), 2), dtype=jnp.float32)])
    out0 = fast_geglu(inp)
    np.testing.assert_allclose(out0, [[GATED_ONES]], rtol=1e-6)
    out1 = fast_geglu(inp1)
    np.testing.assert_allclose(out1, layer(inp1), rtol=1e-6)


# Named Dynamic Dimensions


def add(a, b):
    return a + b


def test_dimensions_of_one_name_are_equal_in_both_inputs_and_in_the_output():
    batch = ex.NamedDimension("batch", 1, 2, 4)
    inp_info0 = ex.InputInfo(shape=(batch, 2), dtype=jnp.float32)
    inp_info1 = ex.InputInfo(shape=(batch, 2), dtype=jnp.float32)
    fast_add = ex.compile(add, args=[inp_info0, inp_info1])
    np.testing.assert_array_equal(fast_add(inp1, inp1), 2 * inp1)
    # Because the two are one, the compiler knows that there is nothing to broadcast.
    assert fast_add.output_infos["result"].shape == ("batch", 2)
    with pytest.raises(ex.errors.InputShapeError, match="`batch` has several sizes"):
        fast_add(inp, inp1)


# Saving And Loading Executables


def test_an_executable_is_saved_loaded_and_gives_the_same(fast_geglu, tmp_path):
    path = tmp_path / "executable.explorer"
    fast_geglu.save(path)
    loaded_fast_geglu = ex.Executable.load(path)
    np.testing.assert_array_equal(loaded_fast_geglu(inp), fast_geglu(inp))
