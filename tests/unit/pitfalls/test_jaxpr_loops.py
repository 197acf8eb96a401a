"""Python loops that are unrolled into the program."""

from functools import reduce

import jax
import jax.numpy as jnp
import pytest

from explorer.capture.sources import Span
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.rule_unrolled_loop import unrolled_loop
from explorer.pitfalls.source_loops import loops_of
from explorer.pitfalls.tracing import gather
from tests.examples.training import training_step
from tests.support.jaxpr_rules import findings, only, piece

X = jnp.ones(5)


def integrate(x):
    for i in range(50):
        x = x + 0.01 * i * jnp.sin(x)
    return x


def two_states(x, v):
    t = 0.0
    for _ in range(100):
        a = -x
        v = v + 0.01 * a
        x = x + 0.01 * v
        t += 0.01
    return x, v, t


def slope(x):
    k = -x
    return k + 0.5 * jnp.cos(k)


def in_a_function_it_calls(x):
    n = 0
    while n < 60:
        x = x + slope(x)
        n += 1
    return x


def comprehension(x):
    return jnp.stack([jnp.sin(x * i) + 1 for i in range(64)])


def loop_in_a_loop(x):
    for _ in range(10):
        for j in range(10):
            x = x + jnp.sin(x * j)
    return x


@pytest.mark.parametrize(
    ("function", "args", "meant", "turns"),
    [
        (integrate, (X,), "for i in range(50)", 50),
        (two_states, (X, X), "for _ in range(100)", 100),
        (in_a_function_it_calls, (X,), "while n < 60", 60),
        (comprehension, (X,), "[jnp.sin(x * i) + 1 for i in range(64)]", 64),
        (loop_in_a_loop, (X,), "for j in range(10)", 100),
        (lambda x: jax.jit(integrate)(x), (X,), "for i in range(50)", 50),
    ],
)
def test_a_loop_of_many_turns_is_a_warning_with_its_turns(function, args, meant, turns):
    found = only("unrolled-loop", function, *args)
    assert (found.severity, piece(found)) == ("warning", meant)
    assert f"is in the program {turns} times" in found.message


@jax.jit
def known_before(x):
    return slope(slope(slope(x)))


def calls_it_in_a_loop(x):
    for _ in range(30):
        x = known_before(x)
    return x


def calls_it_often(x):
    return reduce(lambda x, _: known_before(x), range(30), x)


def test_a_function_that_was_traced_in_a_loop_before_isnt_in_that_loop_later():
    traced = [jax.jit(one).trace(X) for one in (calls_it_in_a_loop, calls_it_often)]
    first, later = (
        list(unrolled_loop.check(Evidence(one, one, traced=t).collect())) for one, t in zip(LOOPS, traced, strict=True)
    )
    assert [(one.severity, piece(one)) for one in first] == [("warning", "for _ in range(30)")]
    assert later == []


LOOPS = [calls_it_in_a_loop, calls_it_often]


def test_the_loop_that_asks_is_none_of_the_functions():
    for _ in range(2):
        evidence = gather(comprehension, (X,), {}, record=False)
        files = {frame.function for one in evidence.program.equations for frame in evidence.program.stack(one)}
        assert {name.rpartition(".")[2] for name in files} <= {"comprehension", "<listcomp>"}


def test_the_backward_pass_doesnt_change_the_number_of_turns():
    found = only("unrolled-loop", jax.grad(lambda x: integrate(x).sum()), X)
    assert "50 times" in found.message


def test_the_cure_carries_what_one_turn_hands_to_the_next():
    assert "fori_loop(0, 50, body, x)" in only("unrolled-loop", integrate, X).fix.text
    fix = only("unrolled-loop", two_states, X, X).fix.text
    assert "v, x, t = jax.lax.fori_loop(0, 100, body, (v, x, t))" in fix
    assert "while_loop" in only("unrolled-loop", in_a_function_it_calls, X).fix.text
    assert "jax.vmap(lambda i: …)" in only("unrolled-loop", comprehension, X).fix.text


@pytest.mark.slow
def test_a_model_of_four_layers_is_a_note_and_one_of_twenty_four_a_warning():
    step, args = training_step(4)
    found = only("unrolled-loop", step, *args)
    assert (found.severity, piece(found)) == ("note", 'for p in params["blocks"]')
    assert "4 times" in found.message
    assert "jax.lax.scan(body, x, stacked)" in found.fix.text
    step, args = training_step(24)
    found = only("unrolled-loop", step, *args)
    assert (found.severity, piece(found)) == ("warning", 'for p in params["blocks"]')
    assert "24 times" in found.message


def few_turns(x):
    for _ in range(3):
        x = jnp.tanh(x)
    return x


def of_numbers_only(x):
    scale = 1.0
    for i in range(1000):
        scale += 1 / (i + 1)
    return x * scale


def compiled(x):
    return jax.lax.fori_loop(0, 1000, lambda i, x: x + slope(x), x)


def straight(x):
    return sum((jnp.sin(x), jnp.cos(x), jnp.tan(x))) + slope(slope(slope(x)))


def many_of_different_shapes(x):
    parts = []
    for n in range(1, 60):
        parts.append(jnp.zeros((n,)).sum() * n)
    return x + sum(parts[:1])


@pytest.mark.parametrize("function", [few_turns, of_numbers_only, compiled, straight])
def test_small_loops_and_compiled_ones_are_fine(function):
    assert findings("unrolled-loop", function, X) == []


def test_a_body_that_differs_in_each_turn_is_not_counted_as_repeated():
    assert findings("unrolled-loop", many_of_different_shapes, X) == []


def test_a_loop_around_a_function_isnt_the_functions(tmp_path):
    file = tmp_path / "cells.py"
    file.write_text("for n in sizes:\n    def f(x):\n        y = [g(i) for i in x]\n        return y + 1\n    f(n)\n")
    assert loops_of(str(file)).around(Span(4, 15, 4, 20)) is None
    assert loops_of(str(file)).around(Span(5, 4, 5, 8)).source == "sizes"
    assert loops_of(str(file)).around(Span(3, 13, 3, 17)).is_comprehension
    assert loops_of(str(file)).around(Span(3, 27, 3, 28)) is None  # what it goes through is evaluated once
