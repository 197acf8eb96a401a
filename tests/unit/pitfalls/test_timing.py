"""Clocks around jitted functions, and values brought to the host in loops."""

import time

import jax
import jax.numpy as jnp
import pytest

from tests.examples.linted import found, hits

X = jnp.ones((3, 3))
square = jax.jit(lambda x: x @ x)


def times_the_start(x):
    start = time.perf_counter()
    y = square(x)
    return y, time.perf_counter() - start  # HIT


def times_a_loop(x):
    start = time.time()
    for _ in range(3):
        x = square(x)
    stop = time.time()  # HIT
    return x, stop - start


def waits(x):
    start = time.perf_counter()
    y = jax.block_until_ready(square(x))
    return y, time.perf_counter() - start


def waits_after_a_loop(x):
    start = time.perf_counter()
    for _ in range(3):
        x = square(x)
    jax.block_until_ready(x)
    return x, time.perf_counter() - start


@pytest.mark.parametrize("function", [times_the_start, times_a_loop])
def test_a_clock_that_waits_for_nothing_measures_the_start(function):
    (one,) = hits("async-timing", function, X)
    assert (one.severity, one.code) == ("warning", "EX031")
    assert not found("impure-time", function, X)


@pytest.mark.parametrize("function", [waits, waits_after_a_loop])
def test_who_waits_measures(function):
    assert not found("async-timing", function, X)
    assert not found("impure-time", function, X)


def test_in_a_compiled_function_a_clock_stands_still_whoever_waits():
    assert not found("async-timing", jax.jit(times_the_start), X)
    assert len(found("impure-time", jax.jit(times_the_start), X)) == 2


def asks_each_turn(x):
    out = []
    for _ in range(3):
        out.append(float(square(x).sum()))  # HIT
    return out


def calls_back_in_a_branch(x):
    def body(_, x):
        return jax.lax.cond(x.sum() > 1e9, lambda x: jax.pure_callback(abs, x, x), lambda x: x, x)

    return jax.lax.fori_loop(0, 3, body, x)


def test_a_value_without_a_name_is_brought_to_the_host_too():
    hits("host-transfer", asks_each_turn, X)


def test_a_callback_in_a_branch_of_a_loop_may_never_run():
    assert not found("host-transfer", calls_back_in_a_branch, X)
