"""jnp.where over a branch without a finite derivative: the gradient is NaN, and these say so before."""

import linecache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from tests.support.jaxpr_rules import findings, only, piece
from tests.support.quick import quick

X = jnp.linspace(-1.0, 1.0, 5)
AT_ZERO = jnp.array([0.0, 0.0, -1.0, 2.0, 0.0])


def logarithm(x):
    return jnp.where(x > 0, jnp.log(x), 0.0).sum()


def entropy(x):
    return jnp.where(x > 0, x * jnp.log2(x), 0.0).sum()


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


HITS = [logarithm, entropy, root, division, reciprocal, power, two_conditions, in_two_lines, shifted, of_a_norm]


@pytest.mark.slow
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


ONE = jnp.array([1.0, 0.5, 1.0])
ZERO = jnp.zeros(3)


def far_softplus(x):
    return jnp.where(x > 20, x, jnp.log1p(jnp.exp(x))).sum()


def far_sigmoid(x):
    return jnp.where(x >= 0, 1 / (1 + jnp.exp(-x)), jnp.exp(x) / (1 + jnp.exp(x))).sum()


def two_arguments(x, w=ONE):
    return jnp.where(x < 1, w / (1 - x), 0).sum()


def above_minus_one(x):
    return jnp.where(x > -1, jnp.log1p(x), 0).sum()


def by_a_norm(v):
    n = jnp.linalg.norm(v)
    return jnp.where(n > 0, v / n, 0).sum()


def at_least_zero(x):
    return jnp.where(x >= 0, jnp.sqrt(x), 0.0).sum()


def inverse_cosine(x):
    return jnp.where(jnp.abs(x) < 1, jnp.arccos(x), 0.0).sum()


def bounded(x):
    return jnp.maximum(jnp.log(x), -10.0).sum()


def summed_where(x):
    return jnp.sum(jnp.log(x), where=x > 0)


def in_a_scan(x):
    return jax.lax.scan(lambda total, y: (total + jnp.where(y > 0, y * jnp.log(y), 0.0), None), 0.0, x)[0]


def nested(x):
    return jnp.where(x > 0, jnp.log(jnp.sqrt(x)), 0.0).sum()


def norm(x):
    return jnp.linalg.norm(x)


def deviation(x):
    return jnp.std(x) * 2


def scaled(x):
    return jnp.where(x > x.mean(), x / (x.std() + 1e-6), x / 3.0).sum()


def distance(x):
    return jnp.sqrt(jnp.sum((x - 1.0) ** 2))


def half_power(x):
    return jnp.sum(x**2) ** 0.5


def angle(x):
    return jnp.arctan2(x, 2 * x).sum()


FAR = jnp.array([100.0, 1.0, -100.0])
FAULTS = [
    *((function, AT_ZERO) for function in (logarithm, root, division, reciprocal, power, two_conditions)),
    *((in_two_lines, AT_ZERO), (shifted, AT_ZERO), (of_a_norm, ZERO), (far_softplus, FAR), (far_sigmoid, FAR)),
    *((two_arguments, ONE), (above_minus_one, -ONE), (by_a_norm, ZERO), (at_least_zero, AT_ZERO)),
    *((inverse_cosine, jnp.array([1.0, -1.0, 0.5])), (bounded, ZERO), (summed_where, AT_ZERO), (in_a_scan, AT_ZERO)),
    *((nested, AT_ZERO), (norm, ZERO), (deviation, ONE[:1].repeat(3)), (scaled, ZERO), (distance, jnp.ones(3))),
    *((half_power, ZERO), (angle, ZERO)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("function", "x"), FAULTS, ids=lambda value: getattr(value, "__name__", ""))
def test_the_cure_that_is_written_has_the_same_value_and_a_finite_gradient(function, x):
    assert np.isfinite(function(x))
    assert np.isnan(jax.grad(function)(x)).any()
    found = ex.lint(function, x, rules="nan-gradient")
    code = found.fix(0).code
    cured = run_text(code, function)
    points = [x, jnp.linspace(-3.0, 3.0, x.size), jnp.linspace(0.1, 0.9, x.size)]
    for point in (point for point in points if np.isfinite(function(point))):
        np.testing.assert_allclose(cured(point), function(point), rtol=1e-5)
        assert np.isfinite(jax.grad(cured)(point)).all()
        before = jax.grad(function)(point)
        if np.isfinite(before).all():
            np.testing.assert_allclose(jax.grad(cured)(point), before, rtol=1e-4, atol=1e-6)
    assert findings("nan-gradient", cured, x) == []
    for line in found[0].fix.text.splitlines():
        assert line.partition("  # in place of ")[0] in " ".join(code.split())


def test_a_value_that_only_the_choice_sees_is_guarded_where_it_is_made():
    found = ex.lint(in_two_lines, AT_ZERO, rules="nan-gradient")
    assert found[0].fix.text.splitlines()[0] == "jnp.log(jnp.where(x > 0, x, 1))  # in place of jnp.log(x)"


def in_a_function_inside(x):
    logarithm_of = lambda z: jnp.log(z)  # noqa: E731
    return jnp.where(x > 0, logarithm_of(x), 0.0).sum()


def test_what_another_function_makes_is_not_guarded_by_the_choices_condition():
    """Its names are its own: `x > 0` there would be of something else."""
    finding = only("nan-gradient", in_a_function_inside, X)
    assert "no rewrite of this was proven" in finding.fix.text


@pytest.mark.parametrize("dtype", quick(["uint8", "int8", "int16", "int32"], {"uint8", "int32"}))
def test_a_choice_by_whole_numbers_of_any_size_is_tried(dtype):
    def masked(x, mask):
        return jnp.where(mask > 0, jnp.log(x), 0.0).sum()

    assert only("nan-gradient", masked, X, jnp.ones(5, dtype))


def run_text(code, function):
    """The function that some text defines, under the names of another's module."""
    file = f"cured_{function.__name__}.py"
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    space = dict(function.__globals__)
    exec(compile(code, file, "exec"), space)
    return space[function.__name__]


def hidden_by_a_number(x):
    return jnp.nan_to_num(jnp.log(x)).sum()


def used_elsewhere(x):
    y = jnp.log(x)
    return jnp.where(x > 0, y, 0.0).sum() + jnp.exp(y).sum()


def with_a_slope_of_its_own(x):
    return jnp.where(x != 0, jnp.expm1(x) / x, 1.0).sum()


@pytest.mark.slow
@pytest.mark.parametrize("function", [hidden_by_a_number, used_elsewhere, with_a_slope_of_its_own])
def test_a_cure_that_is_not_proven_is_told_in_words_and_not_written(function):
    found = ex.lint(function, AT_ZERO, rules="nan-gradient")
    assert "no rewrite of this was proven" in found[0].fix.text
    assert found.fix(0).code == ""


@pytest.mark.slow
def test_a_mask_that_is_given_keeps_what_overflows_away_as_a_note():
    def masked(x, mask):
        return jnp.where(mask, jnp.exp(x), 0.0).sum()

    mask = jnp.array([True, False, True])
    assert np.isnan(jax.grad(masked)(FAR, mask)[0]) or np.isnan(jax.grad(masked)(FAR, ~mask)).any()
    assert only("nan-gradient", jax.grad(masked), ONE, mask).severity == "note"


@pytest.mark.slow
def test_a_gradient_that_is_never_a_number_is_said_to_be_so():
    def self_distances(x):
        return jnp.sqrt(jnp.sum((x[:, None] - x[None]) ** 2, axis=-1)).sum()

    finding = only("nan-gradient", jax.grad(self_distances), jnp.arange(6.0).reshape(3, 2))
    assert finding.severity == "warning"
    assert "whatever the arguments are" in finding.message
    assert np.isnan(jax.grad(self_distances)(jnp.arange(6.0).reshape(3, 2))).any()


def test_what_is_run_to_see_it_is_in_no_watch_and_needs_no_setting():
    with ex.watch() as ledger, jax.debug_nans(True), jax.numpy_dtype_promotion("strict"):
        assert only("nan-gradient", jax.jit(logarithm), X)
    assert [event for event in ledger.events if event.kind == "compile"] == []


def chosen_twice(x):
    safe = jnp.where(x > 0, x, 1.0)
    return jnp.where(x > 0, jnp.log(safe), 0.0).sum()


def at_least(x):
    return jnp.where(x > 0, jnp.log(jnp.maximum(x, 1e-6)), 0.0).sum()


def clipped(x):
    return jnp.where(x > 0, jnp.sqrt(jnp.clip(x, 1e-6, 10.0)), 0.0).sum()


def leaky(x):
    return jnp.where(x > 0, x, 0.1 * x).sum()


def never_zero(x):
    return jnp.where(x > 0, x / (1 + x**2), x / jnp.sqrt(x * x + 1e-6)).sum()


def by_position(x):
    return jnp.where(jnp.arange(5) > 2, jnp.log(jnp.exp(x) + 1), 0.0).sum()


def masked(x, mask=(1, 0, 1, 1, 0)):
    return jnp.where(jnp.asarray(mask) > 0, jnp.log(jax.nn.softmax(x)), 0.0).sum()


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
    *(chosen_twice, at_least, clipped, leaky, never_zero, by_position, masked, whole_numbers),
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
