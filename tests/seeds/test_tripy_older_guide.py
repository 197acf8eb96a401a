"""Tripy's older guide "Using the Compiler", with `Compiler(layer).compile(...)`, its samples in order, in JAX.

Its layer is an Equinox module here: weights that start at random, as Tripy's do.
"""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex

pytestmark = pytest.mark.slow

eqx = pytest.importorskip("equinox")

inp = jnp.ones((1, 2))
inp_2 = jnp.array([[1.0, 2.0], [2.0, 3.0]])


# Model Compilation And Deployment


class GEGLU(eqx.Module):
    proj: eqx.nn.Linear
    dim_out: int

    def __init__(self, dim_in, dim_out):
        self.proj = eqx.nn.Linear(dim_in, dim_out * 2, key=jax.random.key(0))
        self.dim_out = dim_out

    def __call__(self, x):
        x, gate = jnp.split(jax.vmap(self.proj)(x), 2, axis=-1)
        return x * jax.nn.gelu(gate, approximate=False)


@pytest.fixture(scope="module")
def layer():
    return GEGLU(2, 8)


@pytest.fixture(scope="module")
def compiler(layer):
    return ex.compat.tripy.Compiler(layer)


@pytest.fixture(scope="module")
def fast_geglu(compiler):
    """The one for a range of shapes, which the guide goes on with."""
    return compiler.compile(ex.InputInfo(shape=((1, 8, 16), 2), dtype=jnp.float32))


def test_the_layer_runs_without_a_compiler(layer):
    assert layer(inp).shape == (1, 8)


def test_the_compiler_compiles_for_a_static_shape(layer, compiler):
    inp_info = ex.InputInfo(shape=(1, 2), dtype=jnp.float32)
    fast_geglu = compiler.compile(inp_info)
    np.testing.assert_allclose(fast_geglu(inp), layer(inp), rtol=1e-5)


# Optimization Profiles


def test_one_executable_takes_shapes_from_1_to_16_and_is_optimised_for_8(layer, fast_geglu):
    out = fast_geglu(inp)
    np.testing.assert_allclose(out, layer(inp), rtol=1e-5)
    out_change_shape = fast_geglu(inp_2)
    np.testing.assert_allclose(out_change_shape, layer(inp_2), rtol=1e-5)
    assert fast_geglu.specializations[0].shapes == {"x": (8, 2)}


def test_a_shape_outside_of_the_range_is_an_error_with_relevant_information(fast_geglu):
    with pytest.raises(ex.errors.InputShapeError) as caught:
        fast_geglu(jnp.ones((32, 2), dtype=jnp.float32))
    told = re.sub(r"line \d+", "line N", str(caught.value))
    assert told.splitlines() == [
        "input `x` has shape (32, 2), outside the range this executable was compiled for.",
        "  dimension 0 is 32; compiled for 1 ≤ dimension 0 ≤ 16 (optimised for 8)",
        "  called at  test_tripy_older_guide.py, line N:   fast_geglu(jnp.ones((32, 2), dtype=jnp.float32))",
        "  Hint: compile with (1, 8, 32), or split it.",
    ]


# Saving The Executable


@pytest.fixture(scope="module")
def loaded_fast_geglu(fast_geglu, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "executable.explorer"
    fast_geglu.save(path)
    loaded = ex.Executable.load(path)
    path.unlink()
    return loaded


def test_an_executable_is_read_from_disk_and_runs_without_its_file(layer, loaded_fast_geglu):
    np.testing.assert_allclose(loaded_fast_geglu(inp_2), layer(inp_2), rtol=1e-5)


# Querying Executable Properties


def test_an_executable_that_was_read_tells_what_it_takes_and_what_it_returns(loaded_fast_geglu):
    assert loaded_fast_geglu.get_input_info() == {"x": ex.InputInfo(((1, 8, 16), 2), jnp.float32)}
    assert repr(loaded_fast_geglu.get_output_info()) == "{'result': OutputInfo((x_0, 8), float32)}"


# Functions Must Be Pure


def add_times_two(a, b):
    c = a + b
    print(f"c : {c}")
    return c + a + b


def test_a_print_while_compiling_shows_no_values_and_bakes_none_in(capsys):
    inp_info = ex.InputInfo(shape=(1, 2), dtype=jnp.float32)
    fast_myadd = ex.compat.tripy.Compiler(add_times_two).compile(inp_info, inp_info)
    (printed,) = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"c : .*Tracer.*float32\[1,2\].*", printed)

    a = jnp.array([[1.0, 2.0]])
    b = jnp.array([[2.0, 3.0]])
    out = fast_myadd(a, b)
    # Tripy computes with the ones that it traced with and gives something else; nothing is printed again.
    np.testing.assert_array_equal(out, [[6.0, 10.0]])
    assert capsys.readouterr().out == ""


def test_a_debug_print_shows_the_values_of_each_call(capsys):
    def add_times_two(a, b):
        c = a + b
        jax.debug.print("c : {}", c)
        return c + a + b

    inp_info = ex.InputInfo(shape=(1, 2), dtype=jnp.float32)
    fast_myadd = ex.compat.tripy.Compiler(add_times_two).compile(inp_info, inp_info)
    fast_myadd(jnp.array([[1.0, 2.0]]), jnp.array([[2.0, 3.0]])).block_until_ready()
    jax.effects_barrier()
    assert capsys.readouterr().out == "c : [[3. 5.]]\n"
