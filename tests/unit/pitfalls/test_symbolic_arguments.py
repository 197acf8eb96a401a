"""Arguments whose sizes vary, described to JAX for all their sizes at once."""

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.pitfalls.tracing import symbolic_arguments

X = jnp.ones(3)
BATCH, LENGTH = ex.NamedDimension("batch", 2, 4, 8), ex.NamedDimension("length", 0, 16, 64)
VARYING, FIXED = ex.InputInfo((BATCH, 128), "float32"), ex.InputInfo((4, 2), "int32")


def test_where_no_size_varies_there_is_nothing_to_describe():
    assert symbolic_arguments([X, FIXED], {"y": 3}) is None
    assert symbolic_arguments([], {}) is None


def test_a_size_that_varies_is_a_symbol_and_all_else_is_as_it_was():
    (first, second, third), named = symbolic_arguments([VARYING, X, FIXED], {"n": 3, "z": VARYING})
    assert (str(first.shape), first.dtype) == ("(batch, 128)", jnp.float32)
    assert second is X
    assert third == jax.ShapeDtypeStruct((4, 2), jnp.int32)
    assert named["n"] == 3
    assert named["z"].shape == first.shape  # of one name they are one size


def test_a_size_without_a_name_has_a_number():
    (first, second), _ = symbolic_arguments(
        [ex.InputInfo(((1, 2, 3), 5, (1, 4, 9)), "float32"), ex.InputInfo(((2, 2, 3),), "float32")], {}
    )
    assert (str(first.shape), str(second.shape)) == ("(size_0, 5, size_1)", "(size_2,)")


@pytest.mark.parametrize(
    ("size", "answers"),
    [
        # Whether it is at least 2, at least 3, at most 8, at most 7: None where some sizes are and some aren't.
        (BATCH, [True, None, True, None]),
        (LENGTH, [None, None, None, None]),  # JAX has no symbol for nothing: it is 1 at the least
    ],
)
def test_jax_knows_the_bounds(size, answers):
    ((described,), _) = symbolic_arguments([ex.InputInfo((size,), "float32")], {})
    (symbol,) = described.shape

    def known(compare):
        try:
            return compare(symbol)
        except jax.errors.InconclusiveDimensionOperation:
            return None

    compares = (lambda n: n >= 2, lambda n: n >= 3, lambda n: n <= 8, lambda n: n <= 7)
    assert [known(compare) for compare in compares] == answers
    assert known(lambda n: n >= 1) is True
