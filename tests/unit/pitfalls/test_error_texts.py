"""Texts of traced values that only an error would show."""

import equinox as eqx
import jax.numpy as jnp

from tests.examples.linted import hits

X = jnp.ones(3)


def checks(x, low):
    message = f"x is {x} and not above {low}"  # HIT
    x = eqx.error_if(x, (x < low).any(), message)
    return eqx.error_if(x, x.min() > 9, f"{x} is large")  # HIT


def shows(x, low):
    message = f"x is {x}"  # HIT
    return eqx.error_if(x, (x < low).any(), message), message


def test_a_text_that_only_a_run_time_error_takes_is_a_note_and_one_that_is_used_elsewhere_is_not():
    assert {one.severity for one in hits("formatted-tracer", checks, X, 0.0)} == {"note"}
    assert [one.severity for one in hits("formatted-tracer", shows, X, 0.0)] == ["warning"]
