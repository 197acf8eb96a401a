"""jnp.where over a branch without a finite derivative: the gradient is NaN, and these say so before."""

import linecache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.jaxpr_rules import findings, only, piece

X = jnp.linspace(-1.0, 1.0, 5)
AT_ZERO = jnp.array([0.0, 0.0, -1.0, 2.0, 0.0])


def logarithm(x):
    return jnp.where(x > 0, jnp.log(x), 0.0).sum()


def root(x):
    return jnp.where(x > 0, jnp.sqrt(x), 0.0).sum()


def division(x):
    return jnp.where(x == 0, 1.0, jnp.sin(x) / x).sum()


def reciprocal(x):
    return jnp.where(x != 0, 1 / x, 0.0).sum()


def power(x):
    return jnp.where(x > 0, x**0.5, x).sum()


def two_conditions(x):
    return jnp.where((x > 0) & (x < 5), jnp.log(x), 0.0).sum()


def in_two_lines(x):
    y = 3 * jnp.log(x)
    return jnp.where(x > 0, y, -1.0).sum()


def shifted(x):
    return jnp.where(x + 1 > 1, jnp.log(x), -1.0).sum()


def of_a_norm(x):
    r = jnp.sqrt(jnp.sum(x**2))
    return jnp.where(r > 0, x / r, 0.0).sum()


HITS = [logarithm, root, division, reciprocal, power, two_conditions, in_two_lines, shifted, of_a_norm]


@pytest.mark.parametrize("function", HITS)
def test_a_choice_is_found_alone_differentiated_and_within_jit(function):
    assert only("nan-gradient", function, X).severity == "note"
    differentiated = only("nan-gradient", jax.value_and_grad(function), X)
    assert differentiated.severity == "warning"
    assert piece(differentiated).startswith("jnp.where(")
    inside = only("nan-gradient", lambda x: jax.jit(jax.grad(jax.jit(function)))(x), X)
    assert (inside.line, inside.severity) == (differentiated.line, "warning")


@pytest.mark.parametrize("function", HITS)
def test_the_gradient_really_is_not_a_number(function):
    x = jnp.zeros(5) if function is of_a_norm else AT_ZERO
    assert np.isfinite(function(x))
    assert not np.isfinite(jax.grad(function)(x)).all()


@pytest.mark.parametrize("function", [logarithm, root, division, reciprocal, power, two_conditions])
def test_the_cure_that_is_told_has_the_same_value_a_finite_gradient_and_no_finding(function):
    fix = only("nan-gradient", function, X).fix.text
    *before, last = fix.splitlines()
    body = "\n".join(f"    {line}" for line in (*before, f"return ({last}).sum()"))
    text, file = f"def cured(x):\n{body}\n", f"cured_{function.__name__}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space = {"jnp": jnp}
    exec(compile(text, file, "exec"), space)
    np.testing.assert_allclose(space["cured"](AT_ZERO), function(AT_ZERO))
    assert np.isfinite(jax.grad(space["cured"])(AT_ZERO)).all()
    assert findings("nan-gradient", space["cured"], X) == []


def chosen_twice(x):
    safe = jnp.where(x > 0, x, 1.0)
    return jnp.where(x > 0, jnp.log(safe), 0.0).sum()


def at_least(x):
    return jnp.where(x > 0, jnp.log(jnp.maximum(x, 1e-6)), 0.0).sum()


def clipped(x):
    return jnp.where(x > 0, jnp.sqrt(jnp.clip(x, 1e-6, 10.0)), 0.0).sum()


def leaky(x):
    return jnp.where(x > 0, x, 0.1 * x).sum()


def sigmoid(x):
    return jnp.where(x >= 0, 1 / (1 + jnp.exp(-x)), jnp.exp(x) / (1 + jnp.exp(x))).sum()


def never_zero(x):
    return jnp.where(x > 0, x / (1 + x**2), x / jnp.sqrt(x * x + 1e-6)).sum()


def by_position(x):
    return jnp.where(jnp.arange(5) > 2, jnp.log(jnp.exp(x) + 1), 0.0).sum()


def masked(x, mask=(1, 0, 1, 1, 0)):
    return jnp.where(jnp.asarray(mask) > 0, jnp.log(jax.nn.softmax(x)), 0.0).sum()


def scaled(x):
    return jnp.where(x > x.mean(), x / (x.std() + 1e-6), x / 3.0).sum()


def whole_numbers(x):
    n = x.astype(int)
    return jnp.where(n > 0, 10 // n, 0).sum() * 1.0


def with_a_rule_of_its_own(x):
    @jax.custom_jvp
    def safe_log(x):
        return jnp.where(x > 0, jnp.log(x), 0.0)

    safe_log.defjvps(lambda t, _, x: t / jnp.where(x > 0, x, 1.0))
    return safe_log(x).sum()


CLEAN = [
    *(chosen_twice, at_least, clipped, leaky, sigmoid, never_zero, by_position, masked, scaled, whole_numbers),
    with_a_rule_of_its_own,
]


@pytest.mark.parametrize("function", CLEAN)
def test_choices_whose_branches_have_finite_derivatives_are_fine(function):
    assert findings("nan-gradient", function, X) == []
    assert findings("nan-gradient", jax.value_and_grad(function), X) == []
    assert np.isfinite(jax.grad(function)(AT_ZERO)).all()


def test_a_choice_inside_of_jaxs_own_functions_is_not_the_users():
    def several(x):
        special = jax.scipy.special
        return (jax.nn.softplus(x) + jnp.sinc(x) + special.xlogy(x, x) + jnp.logaddexp(x, x) + jax.nn.elu(x)).sum()

    assert findings("nan-gradient", jax.grad(several), X) == []
