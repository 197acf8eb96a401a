"""The arguments of a call by name, and which of them a jit was told to be static."""

from functools import partial, wraps

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from explorer.pitfalls.function_source import call_arguments, hash_of, is_users_jitted


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


def plain(x, y):
    return x


def wrapper(function):
    @wraps(function)
    def called(*args, **kwargs):
        return function(*args, **kwargs)

    return called


class Layer:
    def __call__(self, x):
        return x

    def apply(self, x, y):
        return x


class Recursive:
    """Its own `__wrapped__`: whoever follows that goes on forever."""

    def __init__(self):
        self.__wrapped__ = self


@pytest.mark.parametrize(
    ("target", "names"),
    [
        (plain, ["x", "y", "args[0]"]),
        (jax.jit(plain), ["x", "y", "args[0]"]),
        (partial(plain, 1), ["y", "args[0]", "args[1]"]),
        (jax.jit(partial(plain, 1)), ["y", "args[0]", "args[1]"]),
        (partial(partial(plain, 1), 2), ["args[0]", "args[1]", "args[2]"]),
        (wrapper(plain), ["args[0]", "args[1]", "args[2]"]),  # it takes anything, whatever it says it is
        (Layer().apply, ["x", "y", "args[0]"]),  # the object is passed already
        (jax.jit(Layer().apply), ["x", "y", "args[0]"]),
        (Layer(), ["args[0]", "args[1]", "args[2]"]),
        (Recursive(), ["args[0]", "args[1]", "args[2]"]),
        (len, ["args[0]", "args[1]", "args[2]"]),
    ],
)
def test_positions_have_the_names_that_the_code_gives_them(target, names):
    assert [row.name for row in call_arguments(target, (1, 2, 3), {})] == names


@pytest.mark.parametrize(
    ("numbers", "static"),
    [(0, [True, False, False]), (-1, [False, False, True]), ((0, -2), [True, True, False]), ((), [False] * 3)],
)
def test_a_static_position_may_be_counted_from_the_end(numbers, static):
    def f(a, b, c):
        return b

    assert [row.static for row in call_arguments(jax.jit(f, static_argnums=numbers), (1, 2, 3), {})] == static


def test_a_jitted_function_is_the_users_unless_a_module_of_jax_has_it():
    def f(x):
        return x

    class Model(eqx.Module):
        def __call__(self, x):
            return x

    users = [jax.jit(f), jax.jit(plain), jax.jit(Model()), jax.jit(partial(plain, 1)), jax.jit(jnp.exp)]
    others = [f, plain, jnp.exp, jnp.matmul, jax.nn.relu, 3, None]
    assert [is_users_jitted(value) for value in users] == [True] * len(users)
    assert [is_users_jitted(value) for value in others] == [False] * len(others)


def test_the_hash_of_a_class_is_the_nearest_that_its_bases_have():
    class Plain:
        pass

    class Equal:
        __hash__ = None

        def __eq__(self, other):
            return True

    class Again(Equal):
        __hash__ = object.__hash__

    assert [hash_of(kind) for kind in (Plain, Equal, Again, list)] == [object.__hash__, None, object.__hash__, None]
    assert hash_of(int) is int.__hash__
