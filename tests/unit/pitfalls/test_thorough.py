"""Two traces of one function: which of its lines differ, and how that is said."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorer.pitfalls.lint import trace_differences
from explorer.pitfalls.tracing import gather

X = jnp.ones(3)


def differences(function, findings=(), twice=None):
    first = gather(function, (X,), {}, record=False)
    return trace_differences(first, gather(twice or function, (X,), {}, record=False), findings)


def lines(function, **more):
    start = function.__code__.co_firstlineno
    return [(one.line - start, one.evidence) for one in differences(function, **more)]


@pytest.fixture
def numbers():
    return itertools.count()


def test_a_number_that_is_another_is_said_with_both(numbers):
    def f(x):
        y = x * 2.0
        return y + float(next(numbers))

    assert lines(f) == [(2, "0.0 in the first trace, 1.0 in the second")]


def test_an_array_that_is_another_is_said_with_where_it_begins(numbers):
    def f(x):
        return x + np.float32([7, next(numbers), 9])

    seen = "float32[3] starting [7. 0. 9.] in the first trace, float32[3] starting [7. 1. 9.] in the second"
    assert lines(f) == [(1, seen)]


def test_an_array_of_the_same_bytes_but_another_shape_or_type_is_another(numbers):
    def reshaped(x):
        return x.sum() + jnp.sum(np.zeros((1, 3) if next(numbers) % 2 else (3, 1), np.float32))

    def retyped(x):
        return x.sum() + jnp.sum(np.zeros(3, np.int32 if next(numbers) % 2 else np.float32))

    assert [len(lines(f)) for f in (reshaped, retyped)] == [1, 1]


def test_an_operation_that_is_another_ends_the_comparison_for_all_that_follows_is_shifted(numbers):
    def f(x):
        turn = next(numbers)
        y = jnp.sin(x) if turn == 0 else jnp.cos(x)
        return y + float(turn)

    assert lines(f) == [(2, "sin in the first trace, cos in the second")]


def test_an_operation_more_is_counted_whichever_trace_has_it(numbers):
    def f(x):
        x = jax.lax.neg(x)
        return jax.lax.exp(x) if next(numbers) % 2 else x

    assert lines(f) == [(2, "1 equations, then 2")]
    next(numbers)
    assert lines(f) == [(2, "2 equations, then 1")]


def test_what_is_baked_into_a_jitted_function_is_seen_there(numbers):
    def f(x):
        @jax.jit
        def inner(x):
            return x * float(next(numbers))

        return inner(x)

    assert lines(f) == [(3, "0.0 in the first trace, 1.0 in the second")]


def test_a_program_that_is_the_same_has_none_whatever_it_holds(numbers):
    key = jax.random.key(0)

    def f(x):
        next(numbers)
        return x + np.arange(3, dtype=np.float32) + jax.random.uniform(key, (3,))

    assert lines(f) == []


def test_a_line_is_said_once_and_not_where_a_finding_is_already(numbers):
    def f(x):
        return (x + float(next(numbers))) * float(next(numbers))

    found = differences(f)
    assert len(found) == 1
    assert lines(f, findings=found) == []
    (finding,) = found
    assert (finding.rule, finding.severity, finding.fix.text) == (
        "impure-random",
        "warning",
        "make it outside, and pass it as an argument",
    )
    assert finding.message == (
        "f traced twice with the same arguments gives two programs: something made while tracing is baked in here"
    )


def test_twenty_lines_are_named_at_most(numbers, tmp_path):
    body = "\n".join("    x = x + float(next(numbers))" for _ in range(25))
    file = tmp_path / "many.py"
    file.write_text(f"def f(x):\n{body}\n    return x\n")
    namespace = {"numbers": numbers}
    exec(compile(file.read_text(), str(file), "exec"), namespace)
    assert [one.line for one in differences(namespace["f"])] == list(range(2, 22))


def test_of_a_trace_that_failed_nothing_is_said(numbers):
    def f(x):
        if next(numbers) == 1:
            raise ValueError
        return x + 1

    assert lines(f) == []
    assert lines(f, twice=lambda x: bool(x)) == []
