"""Rules on traces that fail, and on numbers that lose digits: concretization, boolean-mask, truncation."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.jaxpr_rules import findings, only, piece

X = jnp.ones(4)


def branch(x):
    y = x * 2
    if y.sum() > 0:
        return y
    return x


def loop(x, n):
    for i in range(n):
        x = x + i
    return x


def nested(state):
    return branch(state["x"]) + 1


def test_if_on_a_traced_value_is_pointed_at_with_its_condition():
    found = only("concretization", branch, X)
    assert found.severity == "error"
    assert piece(found) == "y.sum() > 0"
    assert "`if y.sum() > 0:` needs a value" in found.message
    assert "jax.lax.cond(y.sum() > 0" in found.fix.text


def test_a_loop_over_a_traced_number_names_it_as_a_static_argument():
    found = only("concretization", loop, X, 3)
    assert piece(found) == "range(n)"
    assert 'static_argnames=("n",)' in found.fix.text
    assert "fori_loop(0, n" in found.fix.text


def test_it_is_found_in_a_function_that_is_called():
    found = only("concretization", nested, {"x": X})
    assert piece(found) == "y.sum() > 0"
    assert "TracerBoolConversionError" in found.evidence


@pytest.mark.parametrize(
    ("function", "meant", "instead"),
    [
        (lambda x: float(x.sum()) + 1, "float(x.sum())", "jnp.asarray(x.sum(), float)"),
        (lambda x: np.sin(x), "np.sin(x)", "jnp.sin instead of np.sin"),
        (lambda x: x.sum().item(), "x.sum().item()", "leaving `.item()` out"),
        (lambda x: np.asarray(x) + 1, "np.asarray(x)", "jnp.asarray instead of np.asarray"),
        (lambda x: max(x[0], x[1]), "max(x[0], x[1])", "jnp.maximum"),
        (lambda x: [1, 2, 3][x[0].astype(int)], "[1, 2, 3][x[0].astype(int)]", "jnp.asarray([1, 2, 3])"),
    ],
)
def test_what_asks_for_a_value_is_pointed_at_exactly(function, meant, instead):
    found = only("concretization", function, X)
    assert piece(found) == meant
    assert instead in found.fix.text


def refuses_small_numbers(x):
    try:
        if x < 3:
            raise ValueError
    except ValueError:
        return x
    return -x


def test_in_a_function_that_catches_others_the_line_that_asked_is_named():
    assert only("concretization", refuses_small_numbers, 1.0).text == "if x < 3:"


def test_other_errors_and_clean_traces_are_none_of_it():
    def wrong(x):
        return x @ jnp.ones((3, 3))

    assert findings("concretization", wrong, X) == []
    assert findings("boolean-mask", wrong, X) == []
    assert findings("concretization", lambda x, n: x[: int(3.0)] * n, X, 2) == []


@pytest.mark.parametrize(
    ("function", "meant"),
    [
        (lambda x: x[x > 0], "x[x > 0]"),
        (lambda x: jnp.nonzero(x)[0], "jnp.nonzero(x)"),
        (lambda x: jnp.unique(x), "jnp.unique(x)"),
        (lambda x: jnp.where(x > 0)[0], "jnp.where(x > 0)"),
        (lambda x: jnp.argwhere(x), "jnp.argwhere(x)"),
        (lambda x: jnp.flatnonzero(x), "jnp.flatnonzero(x)"),
        (lambda x: x.at[x > 0].set(5.0), "x.at[x > 0].set(5.0)"),
    ],
)
def test_a_shape_that_depends_on_values_is_pointed_at(function, meant):
    found = only("boolean-mask", function, X)
    assert found.severity == "error"
    assert piece(found) == meant
    assert "size=" in found.fix.text or "jnp.where(x > 0, " in found.fix.text
    assert findings("concretization", function, X) == []


def test_masks_that_keep_the_shape_and_sizes_that_are_given_are_fine():
    def clean(x):
        known = np.array([True, False, True, True])
        return jnp.where(x > 0, x, 0), x[known], jnp.nonzero(x, size=4), jnp.unique(x, size=2)

    assert findings("boolean-mask", clean, X) == []


# Truncation ----------------------------------------------------------------------------------------------------------


def asks(x):
    y = x + 1
    return y.astype(jnp.float64) * 2


def asks_by_keyword(x):
    return x + jnp.zeros(4, dtype="float64")


def asks_for_whole_numbers(x):
    return x + jnp.arange(4, dtype=np.int64)


def twice(x):
    return x * 2


@pytest.mark.parametrize("action", ["error", "always", "default"])
@pytest.mark.parametrize(
    ("function", "meant", "dtype"),
    [
        (asks, "y.astype(jnp.float64)", "float64"),
        (asks_by_keyword, 'jnp.zeros(4, dtype="float64")', "float64"),
        (asks_for_whole_numbers, "jnp.arange(4, dtype=np.int64)", "int64"),
    ],
)
def test_a_dtype_that_is_asked_for_and_not_given_is_found_each_time(function, meant, dtype, action):
    for _ in range(2):  # Python shows a warning once for each line, and must be heard again
        with warnings.catch_warnings(record=True):
            warnings.simplefilter(action)
            found = only("truncation", function, X)
        assert piece(found) == meant
        assert f"asks for {dtype} and gets {dtype[:-2]}32" in found.message


@pytest.mark.parametrize(
    ("value", "severity", "told"),
    [
        (np.array([2**40, 5]), "error", "1,099,511,627,776 becomes 0"),
        (np.int64(2**33 + 7), "error", "8,589,934,599 becomes 7"),
        (np.array([1e300]), "error", "infinite"),
        (np.array([1.7e9 + 1]), "warning", "1700000001 becomes 1700000000"),
        (np.array([0.1, 0.2]), "note", "7 digits"),
    ],
)
def test_numpys_64_bits_are_an_error_where_the_value_changes_and_a_note_where_digits_go(value, severity, told):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's own, of the cast that JAX makes
        found = only("truncation", twice, value)
    assert (found.severity, piece(found)) == (severity, "x")
    assert told in found.message


def test_what_32_bits_hold_exactly_is_not_spoken_of():
    assert findings("truncation", twice, np.ones((3, 3))) == []
    assert findings("truncation", twice, np.arange(5)) == []
    assert findings("truncation", twice, 2.5) == []
    assert findings("truncation", lambda x: x.astype(float) + jnp.zeros(4, float) + jnp.asarray(1, int), X) == []


def test_a_whole_number_of_pythons_that_is_too_large_is_named():
    found = only("truncation", twice, 2**40)
    assert (found.severity, piece(found)) == ("error", "x")


def test_one_inside_of_the_function_is_pointed_at():
    found = only("truncation", lambda x: x * (2**40), jnp.ones(3, int))
    assert piece(found) == "x * (2**40)"


TABLE = np.random.default_rng(0).random((4, 4))
COUNTS = np.array([2**40, 1, 2, 3])


def test_numpys_arrays_from_outside_are_found_where_they_are_used():
    found = only("truncation", lambda x: x @ TABLE, X)
    assert (found.severity, piece(found)) == ("note", "x @ TABLE")
    found = only("truncation", lambda x: x + COUNTS, X)
    assert (found.severity, piece(found)) == ("error", "x + COUNTS")


def test_with_64_bits_nothing_is_truncated():
    with jax.enable_x64(True):
        assert findings("truncation", asks, X) == []
        assert findings("truncation", twice, np.array([2**40])) == []
