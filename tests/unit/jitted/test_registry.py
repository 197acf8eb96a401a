"""Which program a function gets, and when a person is told that programs come and go."""

import gc
import warnings

import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.jitted.jit import Registry
from explorer.jitted.program import STORM, Options

X = jnp.ones(2)


def program(registry, function, inputs=None, outputs=None, options=None):
    return registry.program(function, inputs, outputs, options or Options(), (function.__name__, function.__name__))


def defined(number):
    def function(x):
        return x + number

    return function


def test_a_function_has_one_program_for_each_of_its_options_and_states():
    registry, state = Registry(), [X]
    one = defined(1)
    assert program(registry, one) is program(registry, one)
    assert program(registry, defined(1)) is not program(registry, one)
    assert program(registry, one, state) is not program(registry, one)
    assert program(registry, one, state) is program(registry, one, state)
    assert program(registry, one, state, state) is not program(registry, one, state)
    assert program(registry, one, None, state) is not program(registry, one)


def test_the_least_recently_asked_for_goes_first():
    registry = Registry(limit=2)
    one, two, three = map(defined, (1, 2, 3))
    first, second = program(registry, one), program(registry, two)
    assert program(registry, one) is first
    program(registry, three)
    assert len(registry) == 2
    assert program(registry, one) is first
    assert program(registry, two) is not second


def test_functions_that_come_back_in_turn_are_warned_of_once():
    registry = Registry(limit=2)
    in_turn = [defined(i) for i in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for at in range(2 + STORM):  # the first three are new, and each further one a return
            program(registry, in_turn[at % 3])
    with pytest.warns(ex.errors.RecompilationWarning) as caught:
        program(registry, in_turn[(2 + STORM) % 3])
    assert str(caught[0].message) == (
        "more than 2 functions are jitted in turn, and jit keeps the compiled programs of no more: each is traced and "
        "compiled again.\n  Hint: keep what jit returns, fast = jit(f), and call that: it keeps its own."
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for at in range(20):
            program(registry, in_turn[at % 3])


def jit_anew(registry, count, make):
    for number in range(count):
        program(registry, make(number))
        gc.collect()


def test_functions_from_one_line_that_come_and_go_are_warned_of_at_the_ninth():
    def make(number):
        def fresh(x):
            return x * 2

        return fresh

    registry = Registry()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jit_anew(registry, STORM, make)
    with pytest.warns(ex.errors.RecompilationWarning) as caught:
        jit_anew(registry, STORM + 2, make)
    assert len(caught) == 1
    line = make.__code__.co_firstlineno + 1
    assert str(caught[0].message) == (
        f"9 functions from test_registry.py, line {line} (fresh) were jitted, each a new one that is traced and "
        "compiled separately.\n  Hint: define and jit it once, before the loop."
    )


@pytest.mark.parametrize("make", [defined, lambda number: Box(number).method], ids=["factory", "method"])
def test_a_factorys_functions_and_methods_are_meant_to_be_new(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jit_anew(Registry(), STORM + 2, make)


class Box:
    def __init__(self, value):
        self.value = value

    def method(self, x):
        return x + self.value


def test_a_program_goes_with_its_function():
    registry = Registry()
    one, two = defined(1), defined(2)
    program(registry, one)
    program(registry, two)
    del one
    gc.collect()
    assert [each.name for each in registry] == ["function"]
    registry.clear()
    assert len(registry) == 0
    assert repr(registry) == "Registry()"
