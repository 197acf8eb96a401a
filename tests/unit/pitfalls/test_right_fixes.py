"""Fixes that were wrong once: for quotients, for shapes, for variables of comprehensions, and one note per cause."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.examples.linted import found

X = jnp.arange(1.0, 4.0)
settings = {"size": 3, "rate": 0.1, "mode": "fast"}


def sized(x):
    return x[0] * jnp.ones(settings["size"])


def rated(x):
    return x * settings["rate"]


def chosen(x):
    return x if settings["mode"] == "fast" else -x


def test_a_shape_becomes_a_static_argument_and_a_number_a_plain_one():
    (size,), (rate,), (mode,) = (found("stale-closure", one, X) for one in (sized, rated, chosen))
    assert 'static_argnames="size"' in size.fix.text
    assert 'static_argnames="mode"' in mode.fix.text
    assert "static" not in rate.fix.text


def test_the_fix_for_a_shape_compiles():
    def fixed(x, size):
        return x[0] * jnp.ones(size)

    assert jax.jit(fixed, static_argnames="size")(X, 3).shape == (3,)


def direction(x):
    return jnp.sum(x / jnp.linalg.norm(x - 1))


def half_direction(x):
    return jnp.sum(x / (2.0 * jnp.linalg.norm(x - 1)))


def direction_of_half(x):
    return jnp.sum(x / (jnp.linalg.norm(x - 1) * 2.0))


@pytest.mark.parametrize("function", [direction, half_direction, direction_of_half])
def test_a_root_that_is_a_divisor_is_not_guarded_alone(function):
    notes = [one for one in found("nan-gradient", function, X) if "norm" in one.message]
    assert notes
    for one in notes:
        assert "safe divisor" in one.fix.text


def test_the_divisor_of_the_fix_is_finite_and_has_a_gradient():
    def fixed(x):
        s = jnp.sum(x**2)
        return jnp.sum(jnp.where(s > 0, x / jnp.sqrt(jnp.where(s > 0, s, 1)), 0))

    for at in (jnp.zeros(3), X):
        assert np.isfinite(fixed(at)).all()
        assert np.isfinite(jax.grad(fixed)(at)).all()


def loop_with_a_comprehension(x, ws):
    for _ in range(30):
        x = jnp.tanh(x + sum([jnp.sin(w) * x for w in ws]))
    return x


def test_the_variable_of_a_comprehension_is_not_carried():
    fixes = [one.fix.text for one in found("unrolled-loop", loop_with_a_comprehension, X, [X, X])]
    assert any("x = jax.lax.fori_loop(0, 30, body, x)" in text for text in fixes), fixes


def test_an_argument_of_many_leaves_has_one_finding():
    state = {name: np.full(2, 1e9 + 0.1) for name in "abcdef"}
    assert len(found("truncation", lambda state: jnp.stack(list(state.values())), state)) == 1
