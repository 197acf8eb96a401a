"""The arguments of a call by name, and which of them a jit was told to be static."""

from functools import partial

import jax

from explorer.pitfalls.jits import call_arguments


def scaled(x, factor, *rest, mode="sum"):
    return x * factor


def test_a_static_argument_is_static_by_position_and_by_name():
    function = jax.jit(scaled, static_argnames=("factor", "mode"))
    given = [(row.name, row.static) for row in call_arguments(function, (1.0, 2, 3.0), {"mode": "mean"})]
    assert given == [("x", False), ("factor", True), ("args[0]", False), ("mode", True)]
    assert [row.static for row in call_arguments(function, (1.0,), {"factor": 2, "other": 3})] == [False, True, False]


def test_where_numbers_and_names_are_given_jax_infers_neither_from_the_other():
    function = jax.jit(scaled, static_argnums=1, static_argnames="mode")
    assert [row.static for row in call_arguments(function, (1.0, 2), {"mode": "mean"})] == [False, True, True]
    assert [row.static for row in call_arguments(function, (1.0,), {"factor": 2})] == [False, False]


def test_of_a_bound_method_its_object_comes_first():
    class Model:
        @partial(jax.jit, static_argnums=0)
        def call(self, x):
            return x

    model = Model()
    assert [(row.name, row.value is model, row.static) for row in call_arguments(model.call, (1.0,), {})] == [
        ("self", True, True),
        ("x", False, False),
    ]
