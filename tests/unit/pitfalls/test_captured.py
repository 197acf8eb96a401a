"""State that explorer.jit captures is no pitfall: it is read anew in each call, and written back."""

import jax
import jax.numpy as jnp
import pytest

import explorer as ex

X = jnp.ones((8, 4))


@pytest.fixture
def state():
    return {"w": jnp.zeros(4), "step": jnp.int32(0), "rates": [0.1]}


def said(findings):
    return [(one.rule, one.text) for one in findings]


@pytest.mark.parametrize("look", [ex.lint, lambda function, x: ex.explore(function, x).findings])
def test_a_training_step_with_its_state_is_clean(state, look):
    @ex.jit(inputs=state, outputs=state)
    def train(x):
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w - 1) ** 2))(state["w"])
        state["w"] -= 0.001 * gradient
        state["step"] += 1
        return loss

    train(X)
    assert said(look(train, X)) == []


def test_state_that_is_only_left_behind_is_clean_and_needs_not_be_used():
    sums = []

    @ex.jit(outputs=sums)
    def step(x):
        total = jnp.sum(x)
        sums.append(total)
        return total * 2

    step(X)
    assert said(ex.lint(step, X)) == []


def test_without_the_capture_the_same_reads_are_found(state):
    def predict(x):
        return x @ state["w"]

    state["w"] = jnp.ones(4)
    assert said(ex.lint(ex.jit(predict), X)) == [("stale-closure", 'return x @ state["w"]')]
    assert said(ex.lint(ex.jit(predict, inputs=state), X)) == []


def test_what_is_read_besides_the_state_is_found(state):
    scales = [2.0]

    @ex.jit(inputs=state)
    def predict(x):
        return x @ state["w"] * scales[0]

    assert said(ex.lint(predict, X)) == [("stale-closure", 'return x @ state["w"] * scales[0]')]


def test_an_argument_that_is_not_used_is_found_beside_the_state(state):
    @ex.jit(inputs=state)
    def predict(x, mask):
        return x @ state["w"]

    (one,) = ex.lint(predict, X, X)
    assert (one.rule, "`mask`" in one.message) == ("dead-code", True)
