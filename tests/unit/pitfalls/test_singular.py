"""Where operations have no finite derivative: held against JAX's own derivatives of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.scipy import special

from explorer.pitfalls.equations import Program
from explorer.pitfalls.gradient_slices import INFINITE, SINGULAR, singularity

# Each operation of the operand that its derivative depends on.
OPERATIONS = {
    "log": jnp.log,
    "log1p": jnp.log1p,
    "sqrt": lax.sqrt,
    "rsqrt": lax.rsqrt,
    "cbrt": lax.cbrt,
    "div": lambda x: lax.div(jnp.float32(1), x),
    "pow": lambda x: lax.pow(x, jnp.float32(0.5)),
    "integer_pow": lambda x: lax.integer_pow(x, -2),
    "asin": jnp.arcsin,
    "acos": jnp.arccos,
    "atanh": jnp.arctanh,
    "acosh": jnp.arccosh,
    "erf_inv": special.erfinv,
    "lgamma": special.gammaln,
    "digamma": special.digamma,
    "exp": jnp.exp,
    "expm1": jnp.expm1,
    "sinh": jnp.sinh,
    "cosh": jnp.cosh,
}
GRID = jnp.array([-100.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 100.0])


def equations_of(function, *args):
    return Program(jax.make_jaxpr(function)(*args)).equations


def equation(name):
    return next(one for one in equations_of(OPERATIONS[name], jnp.float32(0.3)) if one.op == name)


@pytest.fixture(scope="module")
def computed():
    """Of each operation, its value and its derivative over the grid, in one program."""
    every = jax.jit(lambda x: {name: jax.vmap(jax.value_and_grad(one))(x) for name, one in OPERATIONS.items()})
    return jax.tree.map(np.asarray, every(GRID))


@pytest.mark.parametrize("name", OPERATIONS)
def test_value_and_derivative_are_finite_where_the_test_of_an_operation_holds_and_nowhere_else(name, computed):
    where = SINGULAR[name]
    regular = np.asarray(where.is_regular(*[GRID] * 2))
    is_finite = np.logical_and(*map(np.isfinite, computed[name]))
    if name in ("lgamma", "digamma"):  # finite between the negative poles as well
        is_finite &= GRID > 0
    if where.overflows:
        is_finite &= GRID > -80  # far below 0 it is nothing or a sign: no choice is made there
        regular = regular | (GRID < -80) & is_finite
    np.testing.assert_array_equal(regular, is_finite)


@pytest.mark.parametrize("name", OPERATIONS)
def test_at_the_safe_operand_value_and_derivative_are_finite(name, computed):
    (at,) = np.flatnonzero(float(SINGULAR[name].safe) == GRID)
    assert np.isfinite([column[at] for column in computed[name]]).all()


@pytest.mark.parametrize("name", [name for name in OPERATIONS if SINGULAR[name].limit])
def test_the_limit_is_what_the_operation_gives_where_only_its_derivative_is_infinite(name, computed):
    where = SINGULAR[name]
    value, slope = computed[name]
    ends = np.isfinite(value) & ~np.isfinite(slope)
    assert ends.any()
    np.testing.assert_allclose(where.at_limit(GRID[ends]), value[ends], atol=1e-6)
    written = eval(where.limit.format(x="x"), {"jnp": jnp, "x": GRID[ends]})  # what stands in the user's program then
    np.testing.assert_allclose(np.broadcast_to(written, value[ends].shape), value[ends], atol=1e-6)


@pytest.mark.parametrize("where", [where for where in SINGULAR.values() if where.test])
def test_the_test_that_is_written_is_the_one_that_is_run(where):
    x, y = (grid.reshape(-1) for grid in np.meshgrid(GRID, GRID))
    written = eval(where.test.format(x="x", y="y"), {"x": x, "y": y})
    np.testing.assert_array_equal(where.holds(jnp.asarray(x), jnp.asarray(y)), written)


def test_an_angle_has_a_derivative_unless_both_of_its_sides_are_nothing():
    where = SINGULAR["atan2"]
    sides = [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (-1.0, 2.0)]
    slopes = [jax.grad(lax.atan2, (0, 1))(*map(jnp.float32, side)) for side in sides]
    assert [bool(where.is_regular(jnp.float32(y), jnp.float32(x))) for y, x in sides] == [False, True, True, True]
    assert [bool(np.isfinite(slope).all()) for slope in slopes] == [False, True, True, True]
    # With a divisor of 1 it is the same where both are 0: the guard changes no value.
    assert where.is_kept
    assert lax.atan2(0.0, float(where.safe)) == lax.atan2(0.0, 0.0) == 0


def test_positive_operands_are_enough_for_all_but_what_is_bounded_on_both_sides():
    enough = {name for name, where in SINGULAR.items() if where.needs_positive}
    assert enough == {"log", "log2", "log1p", "sqrt", "rsqrt", "cbrt", "div", "pow", "integer_pow", "lgamma", "digamma"}


ONE = jnp.float32(1)


@pytest.mark.parametrize(
    ("function", "name", "operand"),
    [
        (lambda x: lax.integer_pow(x, -1), "a reciprocal", 0),
        (lambda x: lax.integer_pow(x, 2), None, None),
        (lambda x: lax.integer_pow(x, 3), None, None),
        (lambda x: lax.pow(x, jnp.float32(0.5)), "a power", 0),
        (lambda x: lax.pow(x, jnp.float32(-1.5)), "a power", 0),
        (lambda x: lax.pow(x, jnp.float32(1.5)), None, None),  # its derivative is a root, finite at 0
        (lambda x: lax.pow(x, jnp.float32(1)), None, None),
        (lambda x: lax.pow(x, jnp.float32(0)), None, None),
        (lambda x: lax.pow(ONE, x), "a power", 0),  # nobody knows the exponent
        (lambda x: x / 2, "a division", 1),
        (lambda x: x / 0.0, INFINITE, 0),
        (lambda x: 0.0 / x, "a division", 1),
        (lambda x: x * jnp.inf, INFINITE, 0),
        (lambda x: -jnp.inf * x, INFINITE, 1),
        (lambda x: x * 3.0, None, None),
        (lambda x: x + jnp.inf, None, None),
        (jnp.sin, None, None),
    ],
)
def test_what_an_equation_is_given_decides_whether_it_has_a_singularity(function, name, operand):
    looked_at = ("integer_pow", "pow", "div", "mul", "add", "sin")
    (only,) = [one for one in equations_of(function, ONE) if one.op in looked_at]
    where = singularity(only)
    assert (where and where.name, where and where.operand) == (name, operand)


def test_an_infinite_factor_has_no_operand_with_a_finite_derivative():
    (only,) = equations_of(lambda x: x * jnp.inf, ONE)
    where = singularity(only)
    assert not np.asarray(where.is_regular(GRID, GRID)).any()
    assert jax.grad(lambda x: x * jnp.inf)(0.5) == jnp.inf
