"""What can be shown of a program's values without running it: which are above 0 whatever the arguments are."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from explorer.pitfalls.equations import Program, is_float
from explorer.pitfalls.gradient_faults import Values

X = jnp.ones(3)


def shown(function, *args):
    """Whether the output is shown to be positive, and whether it is shown to be that or 0."""
    program = Program(jax.make_jaxpr(function)(*(args or (X, X))))
    values, output = Values(program), program.main.raw.outvars[0]
    return values.is_positive(program.main, output), values.is_positive(program.main, output, or_zero=True)


POSITIVE, OR_ZERO, UNKNOWN = (True, True), (False, True), (False, False)


@pytest.mark.parametrize(
    ("function", "sign"),
    [
        (lambda x, y: x, UNKNOWN),
        (lambda x, y: jnp.exp(x), POSITIVE),
        (lambda x, y: jax.nn.sigmoid(x), POSITIVE),
        (lambda x, y: jnp.cosh(x), POSITIVE),
        (lambda x, y: jnp.sinh(x), UNKNOWN),
        (lambda x, y: jnp.abs(x), OR_ZERO),
        (lambda x, y: jnp.abs(jnp.exp(x)), POSITIVE),
        (lambda x, y: jnp.square(x), OR_ZERO),
        (lambda x, y: jnp.square(jnp.exp(x)), POSITIVE),
        (lambda x, y: x**2, OR_ZERO),
        (lambda x, y: x**3, UNKNOWN),
        (lambda x, y: x**4, OR_ZERO),
        (lambda x, y: x * x, OR_ZERO),
        (lambda x, y: x * y, UNKNOWN),
        (lambda x, y: jnp.exp(x) * jnp.exp(y), POSITIVE),
        (lambda x, y: jnp.exp(x) * y, UNKNOWN),
        (lambda x, y: jnp.exp(x) * jnp.abs(y), OR_ZERO),
        (lambda x, y: jnp.exp(x) / jnp.exp(y), POSITIVE),
        (lambda x, y: jnp.exp(x) / y, UNKNOWN),
        (lambda x, y: jnp.exp(x) + jnp.exp(y), POSITIVE),
        (lambda x, y: jnp.exp(x) + jnp.abs(y), POSITIVE),  # one that is above 0 is enough
        (lambda x, y: jnp.abs(x) + jnp.abs(y), OR_ZERO),
        (lambda x, y: jnp.exp(x) + y, UNKNOWN),
        (lambda x, y: x * x + 1e-6, POSITIVE),
        (lambda x, y: x * x + 0.0, OR_ZERO),
        (lambda x, y: x * x - 1.0, UNKNOWN),
        (lambda x, y: jnp.exp(x) - jnp.exp(y), UNKNOWN),
        (lambda x, y: jnp.maximum(x, 1e-6), POSITIVE),
        (lambda x, y: jnp.maximum(x, 0.0), OR_ZERO),
        (lambda x, y: jnp.maximum(x, -1.0), UNKNOWN),
        (lambda x, y: jnp.minimum(x, 1.0), UNKNOWN),
        (lambda x, y: jnp.minimum(jnp.exp(x), 1.0), POSITIVE),
        (lambda x, y: jnp.minimum(jnp.exp(x), 0.0), OR_ZERO),
        (lambda x, y: lax.clamp(jnp.float32(0.5), x, jnp.float32(2)), POSITIVE),
        (lambda x, y: lax.clamp(jnp.float32(0), x, jnp.float32(2)), OR_ZERO),
        (lambda x, y: lax.clamp(jnp.float32(-1), x, jnp.float32(2)), UNKNOWN),
        (lambda x, y: jnp.sqrt(jnp.exp(x)), POSITIVE),
        (lambda x, y: jnp.sqrt(x * x), OR_ZERO),
        (lambda x, y: jnp.sum(jnp.exp(x)), POSITIVE),
        (lambda x, y: jnp.sum(x * x), OR_ZERO),
        (lambda x, y: jnp.max(jnp.exp(x)), POSITIVE),
        (lambda x, y: jnp.max(x), UNKNOWN),
        (lambda x, y: jnp.exp(x).reshape(3, 1).astype(jnp.bfloat16), POSITIVE),
        (lambda x, y: -jnp.exp(x), UNKNOWN),
        (lambda x, y: jax.jit(lambda z: jnp.exp(z) + 1.0)(x), POSITIVE),
        (lambda x, y: jax.jit(lambda z: z + 1.0)(x * x), POSITIVE),
    ],
)
def test_the_sign_of_a_value_follows_from_what_it_is_made_of(function, sign):
    assert shown(function) == sign


def chain(length):
    """A value that is above 0 for being made so, behind so many operations that keep its sign."""

    def of(x):
        x = jnp.exp(x)
        for _ in range(length):
            x = jnp.sqrt(x)
        return x

    return of


def test_who_looks_for_a_sign_looks_at_nine_operations_and_no_more():
    assert [shown(chain(length), X) for length in (7, 8, 9)] == [POSITIVE, POSITIVE, UNKNOWN]


@pytest.mark.parametrize(
    ("function", "number"),
    [
        (lambda x: x + jnp.full(3, 2.5), 2.5),
        (lambda x: x + jnp.full(3, 2, jnp.int32).astype(jnp.float32), 2.0),
        (lambda x: x + 0.25, 0.25),
        (lambda x: x + jnp.exp(x), None),
        (lambda x: x + x, None),
        (lambda x: jnp.logical_or(x > 0, True), None),  # a truth is no number
    ],
)
def test_a_number_of_the_text_is_one_however_it_is_spread(function, number):
    program = Program(jax.make_jaxpr(function)(X))
    last = program.main.equations[-1]
    assert Values(program).constant(program.main, last.inputs[1]) == number


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("float32", True), ("bfloat16", True), ("complex64", True), ("int32", False), ("bool", False), ("uint8", False)],
)
def test_derivatives_are_of_floats_of_every_size(dtype, expected):
    program = Program(jax.make_jaxpr(lambda x: x)(jnp.zeros(2, dtype)))
    assert is_float(program.main.raw.invars[0]) is expected


@pytest.mark.parametrize(
    ("condition", "is_tested"),
    [
        (lambda x, y: x > 0, (True, False)),
        (lambda x, y: y > 0, (False, True)),
        (lambda x, y: (x > 0) & (y < 1), (True, True)),
        (lambda x, y: ~jnp.isfinite(x), (True, False)),
        (lambda x, y: 2 * x + 1 == y, (True, True)),
        (lambda x, y: jnp.sin(x) > 0, (False, False)),  # what a sine is of may be anything
        (lambda x, y: jnp.sum(x * y) > 0, (False, False)),  # of a sum alone nothing is known of what is in it
        (lambda x, y: jnp.sqrt(jnp.sum(x * x)) > 0, (True, False)),  # of a norm it is
    ],
)
def test_a_condition_tests_what_it_compares_and_what_that_is_made_of_element_by_element(condition, is_tested):
    program = Program(jax.make_jaxpr(condition)(X, X))
    body = program.main
    tested = Values(program).tested(body, body.raw.outvars[0])
    assert tuple((id(body), given) in tested for given in body.raw.invars) == is_tested
