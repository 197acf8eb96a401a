"""Broadcasts, comparisons and promotions that nobody meant; hidden errors, dropped state, missing donation."""

import queue

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.examples.linted import found, hits

COLUMN, ROW = jnp.ones((5, 1)), jnp.ones(5)
HALF = jnp.ones((3, 3), jnp.bfloat16)
BIG = jnp.ones((600, 600))
optimizer = optax.adam(0.1)


def loss(prediction, y):
    return jnp.mean((prediction - y) ** 2)  # HIT


def loss_with_an_axis(prediction, y):
    return jnp.mean((prediction - y[:, None]) ** 2)


def table(prediction, y):
    return jnp.exp(prediction - y)


def all_pairs(x):
    return jnp.mean(jnp.abs(x[:, None] - x[None, :]))


def test_a_column_and_a_row_in_a_loss():
    (one,) = hits("accidental-broadcast", loss, COLUMN, ROW)
    assert "5 × 5" in one.message
    assert found("accidental-broadcast", jax.grad(loss), COLUMN, ROW)
    assert not found("accidental-broadcast", loss_with_an_axis, COLUMN, ROW)
    assert not found("accidental-broadcast", table, COLUMN, ROW)
    assert not found("accidental-broadcast", all_pairs, ROW)


def equal(x):
    return jnp.where(x == jnp.nan, 0.0, x)  # HIT


def unequal(x):
    return jnp.sum(x * (x != float("nan")))  # HIT


@pytest.mark.parametrize(("function", "fix"), [(equal, "jnp.isnan(x)"), (unequal, "~jnp.isnan(x)")])
def test_nan_is_equal_to_nothing(function, fix):
    (one,) = hits("nan-comparison", function, ROW)
    assert one.fix.text == fix
    assert not found("nan-comparison", lambda x: jnp.where(x != x, 0.0, x), ROW)


def scaled(x):
    return x / np.sqrt(64)  # HIT


def test_a_number_of_numpy_promotes():
    (one,) = hits("promotion", scaled, HALF)
    assert "computes in float32" in one.message
    assert not found("promotion", lambda x: x / 8.0, HALF)
    assert not found("promotion", lambda x: x.astype(jnp.float32) / np.float32(8), HALF)


def hidden(x):
    try:
        scale = float(x.sum())  # HIT
    except Exception:
        scale = 1.0
    return x * scale


def shown(x):
    try:
        scale = float(x.sum())
    except Exception as error:
        raise ValueError("x is no number") from error
    return x * scale


def of_a_length(x):
    try:
        return x * len(x)
    except TypeError:
        return x


def test_a_hidden_error_of_the_trace_is_found():
    (one,) = hits("concretization", hidden, ROW)
    assert one.severity == "warning"
    assert "`except Exception` hides it" in one.message
    assert not found("concretization", of_a_length, ROW)
    assert found("concretization", shown, ROW) == [] or all(
        one.severity == "error" for one in found("concretization", shown, ROW)
    )


def test_a_traced_value_in_a_queue_is_a_leak():
    waiting = queue.Queue()

    def worker(x):
        waiting.put(x * 2)  # HIT
        return x

    hits("leaked-tracer", worker, ROW)


def returns_the_old_state(w, state):
    updates, new_state = optimizer.update(w, state)  # noqa: RUF059  # HIT
    return optax.apply_updates(w, updates), state


def returns_the_new_state(w, state):
    updates, state = optimizer.update(w, state)
    return optax.apply_updates(w, updates), state


def test_the_new_state_of_an_optimizer_is_not_dropped():
    (one,) = hits("dropped-result", returns_the_old_state, ROW, optimizer.init(ROW))
    assert "`new_state`" in one.message
    assert not found("dropped-result", returns_the_new_state, ROW, optimizer.init(ROW))


@jax.jit
def track(average, x):
    return 0.9 * average + 0.1 * x


@jax.jit
def gradient(w, x):
    return jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)


@jax.jit
def track_sharded(average, x):
    one_device = jax.sharding.NamedSharding(jax.make_mesh((1,), ("data",)), jax.sharding.PartitionSpec())
    return jax.lax.with_sharding_constraint(0.9 * average + 0.1 * x, one_device)


@jax.jit
def track_copied(average, x):
    return jnp.array(0.9 * average + 0.1 * x, copy=True)


@pytest.mark.parametrize("step", [track_sharded, track_copied])
def test_state_that_is_returned_updated_by_a_constraint_or_a_copy_may_be_donated(step):
    (one,) = found("missing-donation", step, BIG, BIG[:1])
    assert one.fix.text.startswith('donate_argnames=("average",)')


def test_state_that_is_returned_updated_may_be_donated():
    (one,) = found("missing-donation", track, BIG, BIG[:1])
    assert (one.severity, one.fix.text.split(" ")[0]) == ("note", 'donate_argnames=("average",)')
    assert not found("missing-donation", jax.jit(track, donate_argnums=0), BIG, BIG[:1])
    assert not found("missing-donation", gradient, BIG, BIG)
    assert not found("missing-donation", track, ROW, ROW)
