"""An update whose result nothing takes, and calls that look like one and are none."""

import jax
import jax.numpy as jnp
import optax
import pytest
from flax.training.train_state import TrainState

from tests.examples.linted import found, hits, piece

X = jnp.arange(4.0)
KEY = jax.random.key(0)
optimizer = optax.sgd(0.1)
product = jax.jit(jnp.dot)


def sets_one(x):
    x.at[0].set(1.0)  # HIT
    return x


def set_in_place_of_it(x):
    x = x.at[0].set(1.0)
    return x


@pytest.mark.parametrize("size", [1, 4, 1_000])
def test_an_update_that_is_a_statement_is_found_whatever_its_size(size):
    (one,) = hits("dropped-result", sets_one, jnp.zeros(size))
    assert (one.severity, one.code, piece(one)) == ("warning", "EX030", "x.at[0].set(1.0)")
    assert one.fix.text == "x = x.at[0].set(1.0)"
    assert not found("dropped-result", set_in_place_of_it, jnp.zeros(size))


def test_what_the_cure_says_is_the_function_that_was_meant():
    namespace = {"x": X}
    exec(found("dropped-result", sets_one, X)[0].fix.text, namespace)
    assert namespace["x"].tolist() == set_in_place_of_it(X).tolist() != sets_one(X).tolist()


table = jnp.zeros(4)


def updates_what_is_outside(x):
    table.at[0].set(x[0])  # HIT
    return x


def test_what_is_outside_is_not_to_be_assigned_in_the_function():
    (one,) = hits("dropped-result", updates_what_is_outside, X)
    assert one.fix.text == "return table.at[0].set(x[0]), and set table to it where this is called"


def names_and_forgets(x):
    changed = x.at[0].add(1.0)  # noqa: F841  # HIT
    _meant = x.at[1].add(1.0)
    return x


def test_a_name_that_nothing_reads_is_dropped_too():
    hits("dropped-result", names_and_forgets, X)


def forgets_the_updates(params, state):
    updates, state = optimizer.update(params, state)  # noqa: RUF059  # HIT
    return params, state


def drops_the_new_parameters(params, state):
    updates, state = optimizer.update(params, state)
    optax.apply_updates(params, updates)  # HIT
    return params, state


def trains(params, state):
    updates, _ = optimizer.update(params, state)
    return optax.apply_updates(params, updates)


def test_an_optax_update_that_is_not_applied_is_found():
    hits("dropped-result", forgets_the_updates, X, optimizer.init(X))
    (one,) = hits("dropped-result", drops_the_new_parameters, X, optimizer.init(X))
    assert one.fix.text == "params = optax.apply_updates(params, updates)"
    assert not found("dropped-result", trains, X, optimizer.init(X))


def forgets_the_state(state, gradients):
    state.apply_gradients(grads=gradients)  # HIT
    state.replace(step=0)  # HIT
    return state


def test_a_train_state_that_is_replaced_for_nobody_is_found():
    state = TrainState.create(apply_fn=len, params={"w": X}, tx=optimizer)
    hits("dropped-result", forgets_the_state, state, {"w": X})


def splits_for_nobody(key):
    jax.random.split(key)  # HIT
    jax.random.fold_in(key, 1)  # HIT
    first, second = jax.random.split(key)  # noqa: RUF059  # HIT
    return jax.random.normal(key)


def splits(key):
    key, subkey = jax.random.split(key)
    return key, jax.random.normal(subkey)


def test_keys_that_nobody_takes_are_found_and_the_key_that_is_used_is_no_reuse():
    hits("dropped-result", splits_for_nobody, KEY)
    assert not found("key-reuse", splits_for_nobody, KEY)
    assert not found("dropped-result", splits, KEY)


def sorts_like_numpy(x):
    x.sort()  # HIT
    jnp.clip(x, 0, 1)  # HIT
    return x


def checks_and_measures(x):
    jnp.broadcast_shapes(x.shape, (4,))
    product(x, x)
    shapes = []
    jax.tree.map(lambda leaf: shapes.append(leaf.shape), [x])
    jax.tree.map(lambda *leaves: None, [x], [x])
    optax.global_norm([x])
    return x.reshape(shapes[0])


def test_computing_for_nobody_is_found_and_asking_jax_something_is_not():
    hits("dropped-result", sorts_like_numpy, X)
    assert not found("dropped-result", checks_and_measures, X)


class Frame:
    """A table of somebody else's, with an `at` of its own that gives nothing."""

    def __init__(self):
        self.cells = {}

    def update(self, cells):
        self.cells = dict(cells)


def writes_to_an_object(x):
    frame = Frame()
    frame.update({"mean": 1})
    {}.update(a=1)
    return x * len(frame.cells)


def test_an_update_of_python_s_own_is_none():
    assert not found("dropped-result", writes_to_an_object, X)
