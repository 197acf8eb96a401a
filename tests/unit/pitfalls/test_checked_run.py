"""What a run on the passed arguments shows: NaN, infinity, zero gradients, integers that wrap around."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer.pitfalls.checked_run import check_gradient, check_values
from explorer.pitfalls.lint import LintOptions, observe
from tests.examples.linted import found, hits


def entropy(p):
    return -jnp.sum(p * jnp.log(p))  # HIT


def overflow_in_a_turn(x):
    def turn(c, _):
        c = c * c  # HIT
        return c, None

    return jax.lax.scan(turn, x, None, length=10)[0]


def inner(x):
    return 1 / x


def infinite_in_a_call(x):
    return jax.jit(inner)(x) + 1


def equal_eigenvalues(a):
    return jnp.linalg.eigh(a)[1].sum()  # HIT


def rounded(w, x):
    q = jnp.round(w * 8) / 8  # HIT
    return jnp.sum(q * x)


def difference(a, b):
    return a - b  # HIT


def masked(scores, mask):
    return jax.nn.softmax(jnp.where(mask, scores, -jnp.inf))


def hashed(x):
    return (x * jnp.uint32(0x9E3779B1)) ^ (x >> 15)


def called_back(x):
    return jax.pure_callback(lambda x: 1 / 0, x, x)


def test_the_first_line_that_makes_infinity_is_named():
    (one,) = hits("nan-value", entropy, jnp.array([0.0, 1.0]))
    assert (one.code, one.severity) == ("EX038", "warning")
    assert "`jnp.log(p)` makes infinity" in one.message
    assert not found("nan-value", entropy, jnp.array([0.5, 0.5]))
    assert not found("nan-value", entropy, jax.ShapeDtypeStruct((2,), jnp.float32))
    assert not found("nan-value", entropy, np.array([np.nan, 1.0]))


def test_a_loop_is_run_turn_by_turn():
    hits("nan-value", overflow_in_a_turn, jnp.float32(1e9))


def test_the_line_may_be_in_a_function_that_is_called():
    (one,) = found("nan-value", infinite_in_a_call, jnp.float32(0.0))
    assert one.text == "return 1 / x"


def test_a_gradient_at_the_arguments_is_run_too():
    (one,) = hits("nan-gradient", equal_eigenvalues, jnp.eye(3))
    assert one.severity == "warning"
    assert not found("nan-gradient", equal_eigenvalues, jnp.diag(jnp.array([1.0, 2.0, 3.0])))


def test_a_gradient_that_is_not_run_in_time_is_unknown_rather_than_finite():
    evidence = observe(equal_eigenvalues, (jnp.eye(3),), {}, LintOptions()).evidence
    values = check_values(evidence)
    assert values.values is None
    evidence.deadline = 0.0
    assert check_gradient(evidence, values) is None


@pytest.mark.parametrize("function", [rounded, jax.grad(rounded), jax.value_and_grad(rounded)])
def test_a_gradient_that_is_always_zero_has_a_line_and_a_fix(function):
    findings = ex.lint(function, jnp.ones(3), jnp.arange(3.0))
    (one,) = findings.of("zero-gradient")
    assert one.text == "q = jnp.round(w * 8) / 8  # HIT"
    assert "stop_gradient(jnp.round(w * 8) - x)" in one.fix.text
    assert not any("leave `w` out" in other.fix.text for other in findings)


def test_the_fix_of_a_zero_gradient_has_a_gradient():
    def fixed(w, x):
        return jnp.sum((w + jax.lax.stop_gradient(jnp.round(w) - w)) * x)

    assert not found("zero-gradient", jax.grad(fixed), jnp.ones(3), jnp.arange(3.0))
    assert not found("zero-gradient", fixed, jnp.ones(3), jnp.arange(3.0))


def test_an_integer_that_wraps_around_is_shown_with_its_numbers():
    (one,) = hits("integer-wrap", difference, jnp.uint8(3), jnp.uint8(5))
    assert "3 - 5 is -2, and becomes 254" in one.message
    assert not found("integer-wrap", difference, jnp.uint8(5), jnp.uint8(3))


def test_masks_hashes_and_callbacks_are_left_alone():
    mask = jnp.array([True, False])
    assert not found("nan-value", masked, jnp.ones(2), mask)
    assert found("nan-value", masked, jnp.ones(2), ~mask & mask)
    assert not found("integer-wrap", hashed, jnp.arange(9, dtype=jnp.uint32))
    assert not found("nan-value", called_back, jnp.float32(1))


def test_indices_that_were_passed_are_looked_at():
    assert found("out-of-bounds", lambda x, i: x[i], jnp.arange(3.0), 3)
    assert not found("out-of-bounds", lambda x, i: x[i], jnp.arange(3.0), 2)
    (one,) = found("out-of-bounds", lambda y: jax.nn.one_hot(y, 3), jnp.array([1, 3]))
    assert "class 3" in one.message
    assert not found("out-of-bounds", lambda y: jax.nn.one_hot(y, 3), jnp.array([1, -1]))
