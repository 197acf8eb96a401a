"""When a compiled call's result is the eager one's but for rounding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorer.hotpath.comparison import difference, is_close, shared_container

EPS = float(np.finfo(np.float32).eps)
NUMBERS = "its results differ by more than another order of summation explains"


@pytest.mark.parametrize(
    ("eager", "compiled", "close"),
    [
        (jnp.array([1.0, 1000.0]), jnp.array([1.0, 1000.0]), True),
        # Of the largest number, not of each: 512 units in its last place.
        (jnp.array([1.0, 1000.0]), jnp.array([1.0 + 400_000 * EPS, 1000.0]), True),
        (jnp.array([1.0, 1000.0]), jnp.array([1.0 + 600_000 * EPS, 1000.0]), False),
        (jnp.zeros(2), jnp.zeros(2), True),
        (jnp.zeros(2), jnp.ones(2), False),  # a share of nothing is no small one
        (jnp.zeros(2), -jnp.zeros(2), True),
        (jnp.array([jnp.nan, jnp.inf]), jnp.array([jnp.nan, jnp.inf]), True),
        (jnp.array([jnp.nan, 1.0]), jnp.array([1.0, 1.0]), False),
        (jnp.array([3, 4]), jnp.array([3, 4]), True),
        (jnp.array([3, 2_000_000_000]), jnp.array([3, 2_000_000_001]), False),
        (jax.random.key(0), jax.random.key(0), True),
        (jax.random.key(0), jax.random.key(1), False),
    ],
)
def test_results_are_close_within_what_reassociated_sums_differ_by(eager, compiled, close):
    assert is_close(eager, compiled) is close


X = jnp.arange(3.0)


@pytest.mark.parametrize(
    ("eager", "compiled", "words"),
    [
        ([X, X], [X, X], ""),
        ([X], (X,), f"it returns {jax.tree.structure((X,))} instead of {jax.tree.structure([X])}"),
        (X, X[:2], "the shape of a result is (2,) instead of (3,)"),
        (X, X.astype(jnp.float16), "the dtype of a result is float16 instead of float32"),
        (jnp.asarray(1.0), jnp.float32(1.0), "the weak type of a result is False instead of True"),
        (X, X + 1, NUMBERS),
        (jnp.zeros(3), X, NUMBERS),
    ],
)
def test_what_differs_is_said_in_words(eager, compiled, words):
    assert difference(eager, compiled) == words


def test_a_container_of_the_arguments_in_the_result_would_be_another_one():
    inner = [X]
    assert shared_container((inner,), (inner, X))
    assert shared_container({"state": {"a": inner}}, inner)
    assert shared_container((X,), [inner, inner])  # the same twice
    assert not shared_container((inner,), [X])
    assert not shared_container((X,), (X, X))
