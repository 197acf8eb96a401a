"""The samples in the reference of Tripy's `compile`, in order, in JAX."""

import inspect

import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex

pytestmark = pytest.mark.slow


def add(a, b):
    return a + b


# Dynamic Shapes


def test_a_compiled_function_is_reused_for_any_shapes_within_the_range():
    # Nothing says that the two sizes are equal, so `a + b` can't be traced for all of them at once.
    with pytest.warns(
        ex.errors.TracedPerShapeWarning, match=r"(?s)broadcasting: \(a_0, 2\), \(b_0, 2\).*   return a \+ b"
    ):
        compiled_add = ex.compile(
            add,
            args=[
                ex.InputInfo(shape=((1, 2, 3), 2), dtype=jnp.float32),
                ex.InputInfo(shape=((1, 2, 3), 2), dtype=jnp.float32),
            ],
        )
    small_a = jnp.ones((1, 2), dtype=jnp.float32)
    small_b = jnp.ones((1, 2), dtype=jnp.float32)
    small_out = compiled_add(small_a, small_b)
    np.testing.assert_array_equal(small_out, np.full((1, 2), 2.0))

    big_a = jnp.ones((3, 2), dtype=jnp.float32)
    big_b = jnp.ones((3, 2), dtype=jnp.float32)
    big_out = compiled_add(big_a, big_b)
    np.testing.assert_array_equal(big_out, np.full((3, 2), 2.0))


# Baking Constants


def test_an_array_instead_of_an_input_info_is_baked_in_and_no_argument_any_more():
    b = jnp.ones((1,), dtype=jnp.float32)
    compiled_add = ex.compile(add, args=[ex.InputInfo((1,), dtype=jnp.float32), b])
    a = jnp.ones((1,), dtype=jnp.float32)
    out = compiled_add(a)
    assert out.tolist() == [2.0]
    assert list(inspect.signature(compiled_add).parameters) == ["a"]
    with pytest.raises(
        ex.errors.ExtraArgumentError, match=r"2 arguments by position, of at most 1\.\n  expected: \(a\)"
    ):
        compiled_add(a, b)
