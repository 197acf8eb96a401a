"""What is asked of a trace: jaxprs inside of it, calls of the user's compiled functions, what each line does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from explorer._jax.symbolic import bounds_of, is_at_least, size_where
from explorer._jax.traces import (
    calls_compiled,
    foreign_tracers,
    inner_jaxprs,
    is_in_jaxpr_trace,
    program_lines,
    scan_inputs,
    user_stack,
)

X = jnp.arange(8.0)


@jax.jit
def inner(x):
    return x * 2


@jax.jit
def other(x):
    return jnp.sin(x)


def equations(f, *args):
    return jax.make_jaxpr(f)(*args).jaxpr.eqns


def test_the_users_compiled_functions_are_known_by_name_and_jaxs_own_left_out():
    def f(x):
        return inner(x) + other(inner(x[:4]))[0] + jnp.where(x > 0, x, 0.0)  # `where` is a jitted function too

    calls = calls_compiled(jax.make_jaxpr(f)(X).jaxpr)
    assert {name: [str(jaxpr.invars[0].aval.shape) for jaxpr in of] for name, of in calls.items()} == {
        "inner": ["(8,)", "(4,)"],
        "other": ["(4,)"],
    }
    assert calls_compiled(jax.make_jaxpr(lambda x: x + 1)(X).jaxpr) == {}


def test_inner_jaxprs_are_named_by_their_parameter_and_open():
    chosen = equations(lambda x: jax.lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), X)
    (cond,) = [equation for equation in chosen if equation.primitive.name == "cond"]
    branches = inner_jaxprs(cond.params)
    assert [name for name, _ in branches] == ["branches[0]", "branches[1]"]
    assert [jaxpr.eqns[0].primitive.name for _, jaxpr in branches] == ["cos", "sin"]
    (call,) = equations(inner, X)
    assert [(name, len(jaxpr.eqns)) for name, jaxpr in inner_jaxprs(call.params)] == [("jaxpr", 1)]
    (add,) = equations(lambda x: x + x, X)
    assert inner_jaxprs(add.params) == []


def test_a_scan_says_what_stays_and_what_is_carried():
    def f(x, w):
        return jax.lax.scan(lambda carry, row: ((carry[0] + row @ w, carry[1] + 1), row), (0.0, 0), x)

    (scan,) = [e for e in equations(f, jnp.ones((3, 4)), jnp.ones(4)) if e.primitive.name == "scan"]
    assert scan_inputs(scan.params) == (1, 2)


def test_only_what_becomes_part_of_a_jaxpr_is_traced_into_one():
    seen = []

    def f(x):
        seen.append(is_in_jaxpr_trace())
        return x.sum()

    f(X)
    jax.grad(f)(X)
    jax.vmap(f)(X[None])
    jax.jit(f)(X)
    jax.jit(jax.grad(f))(X)
    jax.lax.scan(lambda c, x: (c + f(x), None), 0.0, X)
    assert seen == [False, False, False, True, True, True]


def test_values_of_another_trace_are_foreign():
    found = []

    def outer(y):
        found.append(len(foreign_tracers(jax.jit(lambda x: x + y).trace(X))))
        found.append(len(foreign_tracers(jax.jit(lambda x: x + X).trace(X))))
        return y

    jax.make_jaxpr(outer)(X)
    assert found == [1, 0]


def test_a_stack_is_the_users_innermost_first():
    def deep(x):
        return jnp.sin(x)

    (sin,) = equations(lambda x: deep(x), X)
    stack = user_stack(sin.source_info.traceback)
    assert [frame.function.rpartition(".")[2] for frame in stack[:2]] == ["deep", "<lambda>"]
    assert user_stack(None) == ()


def test_a_program_is_a_line_for_each_of_the_source():
    def f(x):
        y = x * 2.0 + 1.0
        for _ in range(7):
            y = jnp.sin(y)
        return jax.lax.fori_loop(0, 3, lambda i, z: z * y, y)

    first = f.__code__.co_firstlineno
    lines = [line.rpartition(" #") for line in program_lines(jax.make_jaxpr(f)(X)).splitlines()]
    by_line = {int(text.partition(" ")[0]): text.split()[1:] for text, _, _ in lines}
    assert by_line[first + 1] == ["mul:float32[8]", "add:float32[8]"]
    assert by_line[first + 3] == ["sin:float32[8]"] * 6  # of seven six are named
    assert "mul:float32[8]" in by_line[first + 4]  # of the loop's body
    assert [*by_line] == [0, first + 1, first + 3, first + 4]  # JAX's own counting has no line
    assert all(len(digest) == 8 for _, _, digest in lines)


@pytest.mark.parametrize(
    ("other", "is_equal"),
    [
        (lambda x: x * 2.0, True),
        (lambda x: x * 3.0, False),  # another literal
        (lambda x: x + 2.0, False),
        (lambda x: (x * 2.0).astype(np.float16), False),
    ],
)
def test_programs_that_differ_have_other_lines(other, is_equal):
    def lines(f):
        return [line.partition(" ")[2] for line in program_lines(jax.make_jaxpr(f)(X)).splitlines()]

    assert (lines(lambda x: x * 2.0) == lines(other)) is is_equal


def size(text):
    return export.symbolic_shape(f"{text}, a, b")[0]


@pytest.mark.parametrize(
    ("text", "number", "found"),
    [
        ("b", 5, ("b", 5)),
        ("2*b - 1", 5, ("b", 3)),
        ("2*b - 1", 4, None),  # no whole size does
        ("7 - b", 3, ("b", 4)),
        ("3*b", 9.0, ("b", 3)),
        ("b*b", 4, None),
        ("a*b", 4, None),
        ("a + b", 4, None),
        ("floordiv(b, 2)", 4, None),
        ("b", "5", None),
        ("4", 4, None),  # no symbol
    ],
)
def test_the_size_at_which_a_dimension_is_a_number(text, number, found):
    assert size_where(size(text), number) == found


@pytest.mark.parametrize(
    ("text", "least", "largest"),
    [
        *(("b", 2, 8), ("2*b + 1", 5, 17), ("b - 2", 0, 6), ("mod(b, 3)", 0, 2)),
        *(("n", 1, None), ("n*b", 2, None), ("7", 7, 7)),
    ],
)
def test_the_bounds_of_a_dimension_are_what_is_known_of_it(text, least, largest):
    dimension = export.symbolic_shape(f"{text}, b, n", constraints=["b >= 2", "b <= 8"])[0]
    assert bounds_of(dimension) == (least, largest)
    assert is_at_least(dimension, least)
    assert not is_at_least(dimension, least + 1)
