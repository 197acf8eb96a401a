"""What a trace was of, why another one was needed, and what a constant is compared by."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer.jitted.state import Same, constant
from explorer.jitted.surface import check_function, name_of_function
from explorer.jitted.traces import Trace, what_varies, why


class Raises:
    def __repr__(self):
        raise NotImplementedError


class Address:
    """Prints where it is."""


def of(**leaves):
    return Trace(leaves, {})


def test_leaves_are_types_or_values():
    trace = Trace.of(
        [
            ("x", jnp.ones((2, 3))),
            ("weak", jnp.asarray(1.0)),
            ("numpy", np.ones(4, np.int8)),
            ("n", 3),
            ("f", math.sqrt),
            ("method", Raises.__repr__),
            ("long", "a" * 38),  # with its quotes forty
            ("longer", "a" * 39),
            ("raises", Raises()),
            ("address", Address()),
        ]
    )
    assert trace.leaves == {
        "x": "f32[2,3]", "weak": "f32[] (weakly typed)", "numpy": "i8[4]", "n": "3", "f": "sqrt",
        "method": "Raises.__repr__", "long": f"'{'a' * 38}'", "longer": f"'{'a' * 38}…", "raises": "Raises",
        "address": "<tests.unit.jitted.test_traces.Address object>"[:39] + "…",
    }  # fmt: skip
    assert trace.shapes == {"x": (2, 3), "weak": (), "numpy": (4,)}
    specialization = trace.to_specialization()
    assert specialization.shapes == trace.shapes
    assert specialization.reason == "first call"


@pytest.mark.parametrize(
    ("new", "earlier", "reason"),
    [
        (of(x="f32[3]"), [], "first call"),
        (of(x="f32[3]"), [of(x="f32[2]")], "x: f32[2] → f32[3]"),
        (of(x="f32[3]"), [of(x="f32[3]")], "the structure, or a setting of JAX, changed"),
        (of(x="f32[3]", n="1"), [of(x="f32[3]")], "n: not there → 1"),
        (of(x="f32[3]"), [of(x="f32[3]", n="1")], "n: 1 → not there"),
        # The most similar one; of two the later.
        (of(x="3", y="3"), [of(x="3", y="2"), of(x="1", y="1")], "y: 2 → 3"),
        (of(x="3"), [of(x="1"), of(x="2")], "x: 2 → 3"),
        (of(a="2", b="2"), [of(a="1", b="1")], "a: 1 → 2; b: 1 → 2"),
        (of(a="2", b="2", c="2"), [of(a="1", b="1", c="1")], "a: 1 → 2; b: 1 → 2; and 1 more"),
        (of(a="2", b="2", c="2", d="2"), [of()], "a: not there → 2; b: not there → 2; and 2 more"),
    ],
)
def test_the_reason_of_a_trace_is_what_differs_from_the_nearest_earlier_one(new, earlier, reason):
    assert why(new, earlier) == reason


def test_what_varies_most_comes_first():
    traces = [of(x="1", y="1", z="0"), of(x="2", y="1", z="0"), of(x="2", y="2", z="0"), of(x="3", y="1", z="0", n="7")]
    assert what_varies(traces) == [("x", ["1", "2", "3"]), ("y", ["1", "2"]), ("n", ["not there", "7"])]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (float("nan"), float("nan"), True),
        (0.0, -0.0, False),
        (1.5, 1.5, True),
        (1j, 1j, True),
        ({1, 2}, {2, 1}, True),
        ({1}, {True}, False),  # equal to Python, and another program
        (frozenset({0.0}), frozenset({-0.0}), False),
        ("a", "a", True),
        ([1], [1], False),  # what can't be hashed is itself alone
    ],
)
def test_constants_are_compared_by_what_they_compute(one, other, same):
    assert (constant(one) == constant(other)) is same


def test_what_cannot_be_hashed_equals_itself():
    value = [1]
    assert constant(value) == constant(value)
    assert hash(constant(value)) == hash(constant(value))
    assert constant(value)() is value
    assert Same(value) != value


def generator(x):
    yield x


@pytest.mark.parametrize(
    ("function", "what", "hint"),
    [
        (staticmethod(of), "a staticmethod", "write @staticmethod above @jit"),
        (classmethod(of), "a classmethod", "write @classmethod above @jit"),
        (3, "int", "write jit(f)(x), not jit(f(x))"),
        (generator, "the generator function generator", "return the values, stacked or in a tuple"),
    ],
)
def test_what_is_no_function_to_compile_is_refused_with_what_to_write(function, what, hint):
    with pytest.raises(ex.errors.NotCallableError) as refused:
        check_function(function)
    first, *_, last = str(refused.value).splitlines()
    assert (first, last) == (f"jit takes a function; it got {what}.", f"  Hint: {hint}.")


def test_an_object_is_called_by_its_class():
    class Model:
        def __call__(self, x):
            return x

    check_function(Model())
    assert name_of_function(Model()) == "Model"
    assert ex.jit(Model()).__qualname__ == "Model"
