"""Integers that 32 bits, or the type that they are cast to, can't hold; NumPy arrays that are changed in place."""

import jax.numpy as jnp
import numpy as np
import pytest

from tests.examples.linted import found, hits

X = jnp.arange(3)
LATE = np.int64(3_000_000_000)
SOON = np.int64(3_000)


def adds_a_late_time(x):
    y = x + np.int64(3e9)  # HIT
    z = x < LATE  # HIT
    return y, z, jnp.add(x, 256 ** np.arange(1, 4) * 256)  # HIT


def adds_what_fits(x):
    return x + np.int64(3_000) + SOON + np.float64(0.1) + np.array([1, 2, 3]) + 2 * np.arange(3)


def computes_with_numpy_alone(x):
    seconds = np.int64(3e9) // 1_000_000
    return x * int(seconds)


def test_numpy_s_integers_that_32_bits_can_not_hold_are_errors():
    findings = hits("truncation", adds_a_late_time, X)
    assert {one.severity for one in findings} == {"error"}
    assert "3,000,000,000 becomes -1,294,967,296" in findings[0].message
    assert int((X + np.int64(3e9))[0]) == -1_294_967_296  # which is so


@pytest.mark.parametrize("function", [adds_what_fits, computes_with_numpy_alone])
def test_what_fits_and_what_meets_no_array_is_none(function):
    assert not found("truncation", function, X)


def casts(x):
    y = x + jnp.full((3,), 300).astype(jnp.uint8)  # HIT
    return y + jnp.arange(254.0, 257.0).astype("uint8")  # HIT


def casts_what_fits(x):
    return x + jnp.full((3,), 200).astype(jnp.uint8) + jnp.arange(3.0).astype("uint8") + (x > 1).astype(jnp.uint8)


def casts_all_bits(x):
    return x ^ jnp.full((3,), -1).astype(jnp.uint32)


def test_a_constant_that_its_type_can_not_hold_is_found():
    first, _ = hits("truncation", casts, X.astype(jnp.uint8))
    assert "it becomes 44" in first.message
    assert jnp.full((3,), 300).astype(jnp.uint8)[0] == 44
    assert not found("truncation", casts_what_fits, X.astype(jnp.uint8))
    (one,) = found("truncation", casts_all_bits, X.astype(jnp.uint32))
    assert one.severity == "note"


SMALL = 300


def casts_a_number(x):
    y = x + jnp.array(300).astype(jnp.int8)  # HIT
    return y + jnp.asarray(SMALL).astype("uint8").astype(jnp.int8)  # HIT


def casts_a_number_that_fits(x):
    return x + jnp.array(100).astype(jnp.int8) + jnp.array(SMALL).astype(jnp.int16).size + jnp.int8(4)


def test_a_number_that_jax_casts_at_once_is_found_by_its_text():
    first, _ = hits("truncation", casts_a_number, X.astype(jnp.int8))
    assert "300 is cast to int8" in first.message
    assert "it becomes 44" in first.message
    assert int(jnp.array(300).astype(jnp.int8)) == 44  # which is so
    assert not found("truncation", casts_a_number_that_fits, X.astype(jnp.int8))


def decays(stats, x):
    stats *= 0.9  # HIT
    return x - stats.mean()


def decays_and_returns(stats, x):
    stats *= 0.9
    return stats, x - stats.mean()


def decays_a_copy(stats, x):
    stats = stats * 1.0
    stats *= 0.9
    return x - stats.mean()


def test_a_numpy_array_changed_in_place_is_the_caller_s_unless_it_is_given_back():
    stats = np.ones(3, np.float32)
    (one,) = hits("argument-mutation", decays, stats, X)
    assert one.severity == "warning"
    assert stats.tolist() == [1, 1, 1]  # lint changes nothing of the caller's
    for function in (decays_and_returns, decays_a_copy):
        assert not found("argument-mutation", function, stats, X)
    assert not found("argument-mutation", decays, jnp.ones(3), X)


def sums_a_list(x):
    return x + jnp.sum([1, 2, 3])  # HIT


def test_a_list_that_jax_does_not_take_is_an_error_and_the_cure_is_taken():
    (one,) = hits("list-of-scalars", sums_a_list, X)
    assert (one.severity, one.fix.text) == ("error", "jnp.sum(jnp.array(…))")
    with pytest.raises(TypeError, match="requires ndarray or scalar"):
        jnp.sum([1, 2, 3])
    assert int(jnp.sum(jnp.array([1, 2, 3]))) == 6
