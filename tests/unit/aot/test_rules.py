"""Rules of custom derivatives and batches read what they read at compile, whenever one is asked for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex

pytestmark = pytest.mark.slow

N = ex.NamedDimension("n", 2, 4, 16)
X = jnp.arange(1.0, 5.0)


def rule_that_pushes(held):
    @jax.custom_jvp
    def function(x):
        return x * 1.0

    function.defjvp(lambda primals, tangents: (primals[0] * 1.0, tangents[0] * held[0]))
    return function


def rule_that_pulls(held):
    @jax.custom_vjp
    def function(x):
        return x * 1.0

    function.defvjp(lambda x: (x * 1.0, None), lambda _, slope: (slope * held[0],))
    return function


def rule_that_keeps_for_the_way_back(held):
    @jax.custom_vjp
    def function(x, count):
        return x * 1.0

    function.defvjp(lambda x, count: (x * 1.0, jnp.float32(held[0])), lambda by, slope: (slope * by, None))
    return lambda x: function(x, jnp.arange(x.shape[0]))


def rule_with_a_number_beside(held):
    @jax.custom_jvp
    def function(x, count):
        return x * 1.0, count + 1

    @function.defjvp
    def rule(primals, tangents):
        (x, count), (slope, none) = primals, tangents
        return (x * 1.0, count + 1), (slope * held[0], none)

    return lambda x: function(x, jnp.arange(x.shape[0]))[0]


RULES = [rule_that_pushes, rule_that_pulls, rule_that_keeps_for_the_way_back, rule_with_a_number_beside]
AROUND = {
    "alone": lambda function: function,
    "in jit": lambda function: jax.jit(function),
    "in a scan": lambda function: lambda x: jax.lax.scan(lambda x, _: (function(x), 0), x, None, 1)[0],
    "in a branch": lambda function: lambda x: jax.lax.cond(x.sum() > -1.0, function, lambda x: x, x),
    "each shape": lambda function: lambda x: function(x) if x.shape[0] > 3 else function(x) + 0.0,
}


def scanned(function):
    return jax.lax.scan(lambda carry, x: (carry, function(x)), 0, jnp.stack([X, X]))[1]


def slope(executable):
    return jax.grad(lambda x: executable(x).sum())


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.filterwarnings("ignore::explorer.errors.TracedPerShapeWarning")
def test_a_rule_of_a_derivative_is_what_it_was_at_compile(rule, around, tmp_path):
    held = [2.0]
    executable = ex.compile(AROUND[around](rule(held)), args=[ex.InputInfo((N,), jnp.float32)])
    assert slope(executable)(X[:3]).tolist() == [2.0] * 3
    held[0] = 7.0
    assert slope(executable)(X).tolist() == [2.0] * 4
    assert jax.vmap(slope(executable))(jnp.stack([X, X])).tolist() == [[2.0] * 4] * 2
    assert jax.jit(slope(jax.jit(executable)))(X).tolist() == [2.0] * 4
    assert scanned(slope(executable)).tolist() == [[2.0] * 4] * 2
    assert slope(executable)(X[:3]).tolist() == [2.0] * 3
    with pytest.raises(ex.errors.ChangedFunctionError, match=r"it was .*2(?s:.)*it is .*7"):
        slope(executable)(jnp.ones(7))
    executable.save(tmp_path / "e.explorer", derivatives=1)
    assert slope(ex.Executable.load(tmp_path / "e.explorer"))(X).tolist() == [2.0] * 4


def test_forward_and_second_derivatives_of_a_rule_are_what_they_were_at_compile():
    held = [2.0]

    @jax.custom_jvp
    def square(x):
        return x * x

    square.defjvp(lambda primals, tangents: (square(*primals), tangents[0] * primals[0] * held[0]))
    executable = ex.compile(square, args=[ex.InputInfo((N,), jnp.float32)])
    held[0] = 7.0
    value, tangent = jax.jvp(executable, (X,), (jnp.ones(4),))
    np.testing.assert_array_equal(value, X * X)
    np.testing.assert_array_equal(tangent, 2 * X)
    np.testing.assert_array_equal(slope(slope(executable))(X), jnp.full(4, 2.0))


@pytest.mark.filterwarnings("ignore::explorer.errors.TracedPerShapeWarning")
@pytest.mark.parametrize("around", AROUND)
def test_a_rule_for_batches_is_what_it_was_at_compile(around):
    held = [2.0]

    @jax.custom_batching.custom_vmap
    def function(x, by):
        return x * by

    @function.def_vmap
    def rule(count, are_batched, x, by):
        return x * held[0] * by[:, None] if are_batched[1] else x * held[0], True

    executable = ex.compile(AROUND[around](lambda x: function(x, 1.0)), args=[ex.InputInfo((N,), jnp.float32)])
    held[0] = 7.0
    for count in (2, 3):
        assert jax.vmap(executable)(jnp.stack([X] * count)).tolist() == (2 * jnp.stack([X] * count)).tolist()
    with pytest.raises(ex.errors.ChangedFunctionError):
        jax.vmap(executable)(jnp.ones((2, 7)))
