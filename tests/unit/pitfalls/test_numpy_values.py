"""NumPy's numbers that a text spells out are what Python makes of that text."""

import ast

import jax.numpy as jnp
import numpy as np
import pytest

from explorer.capture.safe_reading import callee_name
from explorer.pitfalls.rule_truncation import numpy_value
from explorer.pitfalls.tracing import gather

LATE, SOON, TABLE, FLAG = np.int64(3_000_000_000), 7, np.arange(3), True


def users(x):
    local = 3
    return x + np.int64(SOON) * 0 + LATE * 0 + TABLE * 0 + FLAG + local


@pytest.fixture(scope="module")
def function():
    """The user's function as lint sees it: it says what its names stand for."""
    return gather(users, (jnp.ones(3),), {}).functions[0]


def value(function, text):
    node = ast.parse(text, mode="eval").body
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            function.callees[call] = callee_name(function.value(call.func))[0]
    return numpy_value(function, node)


@pytest.mark.parametrize(
    "text",
    [
        *("np.int64(3)", "np.int64(3e9)", "np.uint64(2)", "np.float64(0.1)", "LATE", "-LATE", "np.int64(-3)"),
        *("np.array([1, 2])", "np.asarray((1, 2.5))", "np.array([[1, 2], [3, 4]])", "np.arange(4)"),
        *("np.arange(1, 9, 3)",),
        *("np.int64(2) + 3", "3 - np.int64(2)", "np.int64(2) * SOON", "2 ** np.arange(5)", "np.int64(1) << 33"),
        *("np.arange(3) * 2 - LATE", "256 ** np.arange(1, 4) * 256", "np.int64(2**40)", "np.int64(1 << 40)"),
        *("np.arange(4096)", "np.arange(-4096, 0)", "np.int64(2 ** 62)", "np.float64(2**64)", "np.int64(-(-5))"),
    ],
)
def test_the_value_is_what_python_makes_of_the_text(text, function):
    expected = eval(text, globals())
    found = value(function, text)
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("3", "it is Python's own"),
        ("SOON + 2", "it is Python's own"),
        ("[1, 2]", "it is Python's own"),
        ("x + np.int64(3)", "nobody knows x"),
        ("np.int64(local)", "a local name may be anything"),
        ("TABLE", "an array from outside is a constant, which another rule looks at"),
        ("np.int64(FLAG)", "a truth is no number"),
        ("np.int64('3')", "a text is no number"),
        ("np.array([1, x])", "nobody knows all of it"),
        ("np.array([1], dtype=np.int8)", "what it is told besides isn't read"),
        ("np.int64()", "nothing is given"),
        ("np.arange(4097)", "it would be computed for nothing"),
        ("np.arange(-4097, 0)", "it would be computed for nothing"),
        ("np.arange(0.5)", "its steps are no whole numbers"),
        ("np.float64(2**64 + 1) * (2**64 + 2 * 1)", "a number beyond 64 bits"),
        ("np.float64(2 ** 65)", "a power beyond 64 bits"),
        ("np.float64(1 << 65)", "a power beyond 64 bits"),
        ("np.int64(3) / 2", "it is none of the operators that whole numbers are written with"),
        ("np.zeros(3)", "it is no function that numbers are written with"),
        ("np.arange(3) + np.arange(4)", "NumPy refuses it"),
        ("~np.int64(3)", "it is none of the operators that whole numbers are written with"),
    ],
)
def test_nothing_else_is_made_of_a_text(text, why, function):
    assert value(function, text) is None
