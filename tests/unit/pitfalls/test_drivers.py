"""A Python loop around jitted steps is read, not traced: reading a result after the loop is right."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from tests.examples.linted import found, hits

X = jnp.arange(4.0)
ran = []


@jax.jit
def step(w, x):
    return w - 0.1 * x, jnp.mean((w - x) ** 2)


def reads_at_the_end(w, x):
    ran.append(1)
    for _ in range(3):
        w, loss = step(w, x)
    return w, float(loss)


def waits_at_the_end(w, x):
    for _ in range(3):
        w, _ = step(w, x)
    return w.block_until_ready()


def reads_now_and_then(w, x):
    for i in range(300):
        w, loss = step(w, x)
        if i % 100 == 0:
            print(i, loss)
    return w


def reads_each_turn(w, x):
    losses = []
    for _ in range(3):
        w, loss = step(w, x)
        losses.append(float(loss))  # HIT
    return w, losses


def stops_by_the_loss(w, x):
    while True:
        w, loss = step(w, x)
        if loss < 0.1:  # HIT
            return w


def reads_in_a_comprehension(w, x):
    return [float(step(w, x)[1]) for _ in range(3)]  # HIT


def jits_in_the_loop(w, x):
    for _ in range(3):
        local = jax.jit(lambda w, x: w - x)  # HIT
        w = local(w, x)
    return np.asarray(w)


def layers(x):
    for _ in range(3):
        x, _ = step(x, x)
    return jnp.sum(x)


@pytest.mark.parametrize("function", [reads_at_the_end, waits_at_the_end, reads_now_and_then])
def test_a_driver_is_clean_and_did_not_run(function):
    ran.clear()
    findings = ex.lint(function, X, X)
    assert list(findings) == []
    assert (findings.failure, ran) == ("", [])
    assert "read, not traced" in findings.to_text()


@pytest.mark.parametrize("function", [reads_each_turn, stops_by_the_loss, reads_in_a_comprehension])
def test_a_wait_in_the_loop_is_a_note(function):
    (one,) = hits("host-transfer", function, X, X)
    assert one.severity == "note"
    assert len(ex.lint(function, X, X)) == 1


def test_other_rules_read_a_driver_too():
    (one,) = hits("rejit-in-loop", jits_in_the_loop, X, X)
    assert one.severity == "warning"


def test_a_function_that_takes_no_result_is_traced():
    assert "read, not traced" not in ex.lint(layers, X).to_text()


def test_a_driver_that_is_compiled_itself_is_traced():
    (one,) = ex.lint(jax.jit(reads_at_the_end), X, X).errors
    assert one.rule == "concretization"


def test_a_key_that_a_driver_passes_in_each_turn_is_found():
    draw = jax.jit(lambda key: jax.random.normal(key))

    def same(key):
        return [float(draw(key)) for _ in range(3)]  # HIT

    def different(key):
        total = 0.0
        for i in range(3):
            total += draw(jax.random.fold_in(key, i))
        return float(total)

    hits("key-reuse", same, jax.random.key(0))
    assert not found("key-reuse", different, jax.random.key(0))
