"""Random keys: used twice, the same in each turn of a loop, made from a constant. Typed keys and raw ones."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from jax import lax, random

from tests.support.jaxpr_rules import findings, only, piece

KEYS = [random.key(0), random.PRNGKey(0)]
ROWS = jnp.ones((3, 2))
OUTSIDE = random.key(1)
both_kinds = pytest.mark.parametrize("key", KEYS, ids=["typed", "raw"])


def draws_twice(key):
    noise = random.normal(key, (3,))
    return noise + random.uniform(key, (3,))


def draws_after_split(key):
    one, two = random.split(key)
    return random.normal(one) + random.normal(two) + random.gumbel(key)


def draws_one_of_several_twice(key):
    keys = random.split(key, 3)
    a = random.normal(keys[0])
    return a + random.normal(keys[1]) + random.uniform(keys[0])


def splits_twice(key):
    one, _ = random.split(key)
    two, _ = random.split(key)
    return random.normal(one) + random.normal(two)


def draws_in_a_function_it_calls(key):
    return jax.jit(draws_noise)(key) + random.exponential(key)


def draws_noise(key):
    return random.normal(key)


def folds_the_same_in_twice(key):
    return random.normal(random.fold_in(key, 3)) + random.uniform(random.fold_in(key, 3))


@both_kinds
@pytest.mark.parametrize(
    ("function", "meant"),
    [
        (draws_twice, "random.uniform(key, (3,))"),
        (draws_after_split, "random.gumbel(key)"),
        (draws_one_of_several_twice, "random.uniform(keys[0])"),
        (splits_twice, "random.split(key)"),
        (draws_in_a_function_it_calls, "random.exponential(key)"),
        (folds_the_same_in_twice, "random.uniform(random.fold_in(key, 3))"),
    ],
)
def test_the_second_use_of_a_key_is_pointed_at(function, meant, key):
    found = only("key-reuse", function, key)
    assert (found.severity, piece(found)) == ("warning", meant)
    assert "that it used on line" in found.message


def test_they_really_are_the_same_numbers():
    key = KEYS[0]
    assert jnp.array_equal(random.uniform(key, (3,)), random.uniform(key, (3,)))


def turns(key, x):
    for _ in range(3):
        x = x + random.normal(key)
    return x


def scanned(key, rows):
    def body(total, row):
        return total + row * random.normal(key), None

    return lax.scan(body, jnp.zeros(2), rows)[0]


def carried_unchanged(key, x):
    def body(_, state):
        key, x = state
        return key, x + random.normal(key)

    return lax.fori_loop(0, 5, body, (key, x))


def while_it_is_small(key, x):
    return lax.while_loop(lambda x: x < 9, lambda x: x + random.uniform(key), x)


@both_kinds
@pytest.mark.parametrize(
    ("function", "x", "meant"),
    [
        (turns, jnp.ones(()), "random.normal(key)"),
        (scanned, ROWS, "random.normal(key)"),
        (carried_unchanged, jnp.ones(()), "random.normal(key)"),
        (while_it_is_small, jnp.ones(()), "random.uniform(key)"),
    ],
)
def test_a_key_that_is_the_same_in_each_turn_is_found(function, x, meant, key):
    assert piece(only("key-reuse", function, key, x)) == meant


def splits_properly(key):
    key, one = random.split(key)
    key, two = random.split(key)
    return random.normal(one) + random.uniform(two) + random.bernoulli(key)


def one_of_two(key, x=1.0):
    return lax.cond(x > 0, lambda k: random.normal(k), lambda k: random.uniform(k), key)


def splits_in_each_turn(key):
    def body(key, row):
        key, one = random.split(key)
        return key, row * random.normal(one)

    return lax.scan(body, key, ROWS)


def folds_the_turn_in(key):
    return lax.fori_loop(0, 5, lambda i, x: x + random.normal(random.fold_in(key, i)), 0.0)


def one_key_each(key):
    return jax.vmap(lambda k, row: row + random.normal(k))(random.split(key, 3), ROWS)


def one_for_each_in_python(key):
    return [random.normal(one) for one in random.split(key, 3)]


def rematerialized(key):
    drop = jax.checkpoint(lambda x: (jnp.sin(x) * random.bernoulli(key, 0.5, (3, 2))).sum())
    return jax.value_and_grad(drop)(ROWS)


def of_many_kinds(key):
    keys = iter(random.split(key, 8))
    shuffled = random.permutation(next(keys), 10)
    chosen = random.choice(next(keys), shuffled, (3,), replace=False)
    gamma = random.gamma(next(keys), 2.0), random.dirichlet(next(keys), jnp.ones(3)), random.t(next(keys), 3.0)
    return chosen, gamma, random.categorical(next(keys), jnp.ones(4)), random.orthogonal(next(keys), 3)


@both_kinds
@pytest.mark.parametrize(
    "function",
    [
        *(splits_properly, one_of_two, splits_in_each_turn, folds_the_turn_in, one_key_each, one_for_each_in_python),
        *(rematerialized, of_many_kinds, draws_noise),
    ],
)
def test_keys_that_are_used_once_are_fine(function, key):
    assert findings("key-reuse", function, key) == []


def test_dropout_of_a_library_called_twice_with_one_key_is_found_in_the_users_line():
    dropout = eqx.nn.Dropout(0.5)

    def layer(x, key):
        x = dropout(x, key=key)
        return dropout(jnp.tanh(x), key=key)

    assert piece(only("key-reuse", layer, ROWS, KEYS[0])) == "dropout(jnp.tanh(x), key=key)"


def made_inside(x):
    return x + random.normal(random.key(0), x.shape)


def made_raw_inside(x):
    key = random.PRNGKey(42)
    return x + random.normal(key, x.shape)


def taken_from_outside(x):
    return x + random.normal(OUTSIDE, x.shape)


@pytest.mark.parametrize(
    ("function", "meant"),
    [
        (made_inside, "random.key(0)"),
        (made_raw_inside, "random.PRNGKey(42)"),
        (taken_from_outside, "random.normal(OUTSIDE, x.shape)"),
    ],
)
def test_a_constant_key_is_found_where_it_is_made_or_used(function, meant):
    found = only("key-reuse", function, ROWS)
    assert (found.severity, piece(found)) == ("warning", meant)
    assert "the same in each call" in found.message


def test_without_arguments_a_constant_key_is_only_a_note():
    assert only("key-reuse", lambda: random.normal(random.key(0), (3,))).severity == "note"
