"""Traps: the order, identity and classes of what comes in and goes out, which a tree of JAX's doesn't keep."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp

from tests.unit.hotpath.programs import X, calls, trap


@trap
def a_result_in_its_own_order():
    return lambda x: {"loss": x.sum(), "accuracy": x.mean()}, calls(X), list


@trap
def a_result_with_an_order_deep_inside():
    return lambda x: (x, [{"z": x + 1, "a": (x, {"d": x * 2, "c": x * 3})}]), calls(X), list


@trap
def arguments_in_their_own_order():
    def f(parts):
        total = 0.0
        for part in parts.values():
            total = total * 2 + part
        return total

    ab, ba = {"b": X * 2, "a": X}, {"a": X, "b": X * 2}
    return f, [((parts,), {}) for parts in (ab, ab, ab, ab, ab, ab, ba, ba, ab, ba)], list


@trap
def arguments_in_their_own_order_later():
    def f(parts):
        return jnp.stack([*parts.values()])

    ab, ba = {"b": X * 2, "a": X}, {"a": X, "b": X * 2}
    return f, [((parts,), {}) for parts in (ba, ba, ba, ba, ba, ba, ab, ab, ba, ab)], list


@trap
def keywords_in_their_own_order():
    def f(**parts):
        total = 0.0
        for part in parts.values():
            total = total * 2 + part
        return total

    ab, ba = {"b": X * 2, "a": X}, {"a": X, "b": X * 2}
    return f, [((), parts) for parts in (ba, ba, ba, ba, ba, ba, ab, ab, ba, ab)], list


@trap
def the_names_of_an_argument_in_their_order():
    def f(parts):
        first, *_ = parts
        return parts[first] * 2

    ab, ba = {"b": X * 2, "a": X}, {"a": X, "b": X * 2}
    return f, [((parts,), {}) for parts in (ba, ba, ba, ba, ba, ba, ab, ab, ba, ab)], list


@trap
def an_argument_that_cant_be_sorted():
    return lambda parts: parts[1] * 2 + parts["a"], calls({1: X, "a": X}), list


@trap
def a_result_that_cant_be_sorted():
    return lambda x: {1: x, "a": x + 1}, calls(X), list


@trap
def keys_that_are_equal_and_not_the_same():
    return (
        lambda parts: {key: part * 2 for key, part in parts.items()},
        [(({key: X},), {}) for key in (1, 1, 1, 1, 1, 1, True, 1.0, 1)],
        list,
    )


@trap
def settings_that_are_equal_and_not_the_same():
    @jax.tree_util.register_dataclass
    @dataclass
    class State:
        w: jax.Array
        by: float = field(metadata={"static": True}, default=1)

    whole = jnp.arange(4)
    return lambda s: s.w * s.by, [((State(whole, by),), {}) for by in (1, 1, 1, 1, 1, 1, 1.0, True, 1)], list


@trap
def settings_that_cant_be_hashed():
    @jax.tree_util.register_dataclass
    @dataclass
    class State:
        w: jax.Array
        sizes: list = field(metadata={"static": True}, default_factory=lambda: [1])

    return lambda s: s.w * s.sizes[0], [((State(X, [n]),), {}) for n in (1, 1, 1, 1, 1, 1, 2, 1)], list


@trap
def an_array_that_comes_back():
    return lambda x: (x, x + 1), calls(X), list


@trap
def an_array_that_comes_back_twice():
    def f(x):
        h = jnp.tanh(x)
        return h, h

    return f, calls(X), list


@trap
def an_array_from_outside_that_comes_back():
    w = X * 3
    return lambda x: (x * 2, w), calls(X), list


@trap
def arrays_that_are_one_and_later_two():
    y = X + 0
    return lambda x, y: (x, y, x + y), [((X, X), {})] * 6 + [((X, y), {})] * 4, list


@trap
def imaginary_numbers_that_are_equal_and_not_the_same():
    return lambda x, by: jnp.sqrt(x * by), [((X, by), {}) for by in (-1 + 0j,) * 6 + (complex(-1, -0.0),) * 4], list


@trap
def numbers_that_are_no_numbers():
    return lambda x, by: x * by, calls(X, float("nan")), list


@trap
def a_type_that_is_cut():
    return lambda x: x.astype("float64") + 1, calls(X), list


@trap
def an_error_that_has_no_other_before_it():
    def f(x, y):
        return x @ y

    return f, [((X, jnp.ones(n)), {}) for n in (4, 4, 4, 4, 4, 4, 5, 4)], list


@trap
def an_error_inside_an_error():
    def inner(x):
        return x @ jnp.ones(x.shape[0] + 1)

    def f(x):
        if x.shape[0] > 3:
            return inner(x)
        return x * 2

    return f, [((x,), {}) for x in (X, X, X, X, X, X, jnp.ones((5, 4)), X)], list


@trap
def warnings_that_are_errors():
    def f(x):
        return x.astype("int64") * 2

    def strict():
        warnings.simplefilter("error")

    return f, [((X,), {}, *([strict] if n == 7 else [])) for n in range(10)], list


@trap
def a_function_that_is_made_at_each_call():
    def f(x, act):
        return act(x) * 2

    return f, [((X, functools.partial(jnp.power, x2=n)), {}) for n in (2, 2, 2, 2, 2, 2, 3, 2)], list


@trap
def functions_of_one_code_and_other_cells():
    def power(n):
        return lambda x: x**n

    def f(x, act):
        return act(x) * 2

    return f, [((X, power(n)), {}) for n in (2, 2, 2, 2, 2, 2, 3, 2)], list


@trap
def a_cell_of_a_function_that_is_given():
    world = {"n": 2}

    def act(x):
        return x ** world["n"]

    def f(x, act):
        return act(x) * 2

    return f, [((X, act), {}, *([lambda: world.update(n=3)] if n == 7 else [])) for n in range(12)], list


@trap
def numpy_numbers_as_arguments():
    import numpy as np

    return lambda x, by: x * by, [((X.astype(jnp.bfloat16), by), {}) for by in (np.float32(2), 2.0) * 6], list
