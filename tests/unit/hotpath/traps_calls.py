"""Traps: calls that differ in one small thing from those that a copy was made for, and what newcomers stumble over."""

from __future__ import annotations

import collections
import functools
import types
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.unit.hotpath.programs import X, calls, fine, trap

Y = X[::-1] * 2
_BEFORE = 7  # calls, after which the copy serves alone


def then(first, *others):
    """Calls with the same arguments, then some with others, and one more with the first ones."""
    return [(args, {}) for args in (*[first] * _BEFORE, *others, first)]


class Point(NamedTuple):
    x: object
    y: object


class Place(NamedTuple):
    x: object
    y: object


# The structure of what comes in ---------------------------------------------------------------------------------------


@trap
def a_list_and_then_a_tuple():
    return lambda parts: parts[:1] + parts[:1] if len(parts) > 1 else parts, then(([X, Y],), ((X, Y),)), list


@trap
def a_list_that_is_given_gets_longer():
    return lambda parts: sum(part * 2 for part in parts), then(([X, Y],), ([X, Y, X],), ([X],), ([],)), list


@trap
def a_tuple_in_a_tuple_of_another_form():
    def f(parts):
        (a, b), c = parts
        return a * 2 - b + c

    return f, then((((X, Y), X),), ((X, (Y, X)),), (((Y, X), X),), ((X, Y),)), list


@trap
def an_array_where_nothing_was():
    return lambda x, mask=None: x if mask is None else x * mask, then((X, None), (X, Y), (X,)), list


@trap
def a_number_where_an_array_was():
    return lambda x, rate: x * rate, then((X, jnp.float32(2)), (X, 2.0), (X, 2), (X, np.float32(2)), (X, True)), list


@trap
def an_array_where_a_number_was():
    return lambda x, rate: x * rate, then((X, 2.0), (X, jnp.asarray(2.0)), (X, 3.0), (X, jnp.float32(2))), list


@trap
def numpy_where_an_array_was():
    return lambda x, rate: (x * 2) / rate, then((X, Y), (np.asarray(X), np.asarray(Y)), (X, np.asarray(Y))), list


@trap
def numpy_where_an_array_was_of_wide_integers():
    x = jnp.arange(4) + 100_000
    return lambda x: x * x, then((x,), (np.asarray(x, np.int64),)), list


@trap
def a_dict_with_another_key():
    return (
        lambda parts: {key: part * 2 for key, part in parts.items()},
        then(({"a": X, "b": Y},), ({"a": X, "c": Y},), ({"a": X},), ({"b": Y, "a": X},)),
        list,
    )


@trap
def a_dict_of_another_class():
    ordered = collections.OrderedDict(a=X, b=Y)
    made = collections.defaultdict(list, {"a": X, "b": Y})
    return lambda parts: parts.get("c", parts["a"]) * parts["b"], then(({"a": X, "b": Y},), (ordered,), (made,)), list


@trap
def a_named_tuple_of_another_class():
    def f(point):
        return point.x * 2 if isinstance(point, Point) else point.y * 3

    return f, then((Point(X, Y),), (Place(X, Y),), (Point(Y, X),)), list


@trap
def a_named_tuple_that_is_taken_apart_in_its_own_way():
    class Turned(NamedTuple):
        x: object
        y: object

    jax.tree_util.register_pytree_node(Turned, lambda t: ((t.y, t.x), None), lambda _, parts: Turned(*parts[::-1]))
    return lambda t: Turned(t.x - t.y, t.y * 2), then((Turned(X, Y),), (Turned(Y, X),)), list


@trap
def a_list_of_a_class_of_its_own():
    class Layers(list):
        def __iter__(self):
            return reversed(list(super().__iter__()))

    return lambda parts: sum(part * (at + 1) for at, part in enumerate(parts)), then(([X, Y],), (Layers([X, Y]),)), list


@trap
def a_dict_that_makes_what_it_lacks():
    class Zeros(dict):
        def __missing__(self, key):
            self[key] = jnp.zeros((3, 4))
            return self[key]

    given = Zeros(a=X)
    return lambda parts: parts["a"] + parts["b"], then(({"a": X, "b": Y},), (given,)), lambda: [given]


@trap
def one_array_twice_and_then_two():
    return lambda a, b: (a, b, a is b, a + b)[2:], then((X, X), (X, Y)), list


@trap
def flags_that_are_numbers():
    return (
        lambda x, turn: x.T if turn is True else x * turn,
        then((X, True), (X, 1), (X, 1.0), (X, np.bool_(True))),
        list,
    )


@trap
def zeros_of_both_signs():
    return lambda x, by: x / (x * 0 + by), then((X, 0.0), (X, -0.0), (X, 0), (X, 0j)), list


@trap
def texts_and_bytes():
    return lambda x, how: x * 2 if how == "twice" else x, then((X, "twice"), (X, b"twice"), (X, "thrice")), list


@trap
def sizes_and_types_in_turn():
    each = [X, X[:2], X.astype(jnp.int32), X[0], jnp.zeros((0, 4))]
    return lambda x: (x * 2 + 1).sum(0), [((x,), {}) for _ in range(6) for x in each], list


@trap
def arrays_that_are_weakly_typed():
    weak, strong = jnp.asarray(2.0), jnp.float32(2)
    return lambda x, by: x.astype(jnp.bfloat16) * by, then((X, weak), (X, strong), (X, 2.0)), list


@trap
def keywords_and_positions_in_turn():
    def f(x, y=1.0, *rest, scale=2.0, **others):
        return (x - y) * scale + sum(rest) + sum(others.values())

    ways = [((X, Y), {}), ((X,), {"y": Y}), ((), {"y": Y, "x": X}), ((X, Y, X), {}), ((X,), {"scale": Y, "z": X})]
    return f, [way for way in ways for _ in range(6)] + ways, list


@trap
def options_that_are_objects():
    one, two = types.SimpleNamespace(rate=2.0), types.SimpleNamespace(rate=2.0)

    def f(x, options):
        return x * options.rate

    def faster():
        one.rate = 3.0

    return f, [((X, one), {})] * _BEFORE + [((X, two), {}), ((X, one), {}, faster), ((X, two), {})], list


@trap
def a_function_as_an_argument():
    made = [lambda x, by=by: x * by for by in (2.0, 3.0)]
    return (
        lambda x, g: g(x) + 1,
        then((X, made[0]), (X, made[1]), (X, jnp.sin), (X, functools.partial(made[0], by=5))),
        list,
    )


# What newcomers stumble over ------------------------------------------------------------------------------------------


@trap
def an_index_beyond_the_end():
    return lambda x: x[10], calls(X), list


@trap
def a_position_beyond_the_end_that_is_clamped():
    return (
        lambda x, at: x[at] + x.at[at].set(5.0),
        then((X, jnp.array(1)), (X, jnp.array(50)), (X, jnp.array(-1))),
        list,
    )


@trap
def a_shape_that_doesnt_fit_later():
    return lambda a, b: a @ b, then((X, X.T), (X, X), (X.T, X)), list


@trap
def integers_that_overflow():
    return lambda x: (x * x).sum(), then((jnp.arange(100_000, 100_004),), (jnp.arange(4),)), list


@trap
def a_division_by_zero():
    return lambda x, y: (x // y, x % y), then((jnp.arange(4), jnp.arange(4)), (X, X * 0)), list


@trap
def an_update_that_is_thrown_away():
    def f(x):
        x.at[0].set(9.0)
        return x * 1

    return f, calls(X), list


@trap
def an_assignment_into_an_array():
    def f(x):
        x[0] = 9.0
        return x

    return f, calls(X), list


@trap
def a_sum_over_a_python_list():
    return lambda values: jnp.sum(values), then(([1.0, 2.0],), ([1.0, 3.0],), (jnp.array([1.0, 2.0]),)), list


@trap
def a_size_by_a_value():
    return lambda x: x[x > 0.5] * 2, calls(X), list


@trap
def a_default_that_is_shared():
    def f(x, seen=[]):  # noqa: B006 - the trap
        return x * (len(seen) + 1)

    def grow():
        f.__defaults__[0].append(1)

    return f, [((X,), {}, *([grow] if n == 9 else [])) for n in range(14)], list


@trap
def loops_that_share_a_name():
    made = [lambda x: x * by for by in (1.0, 2.0, 3.0)]  # noqa: B023 - the trap: all multiply by 3
    return lambda x: sum(g(x) for g in made), calls(X), list


@trap
def a_key_that_is_used_again():
    key = jax.random.key(3)
    return lambda x: x + jax.random.normal(key, x.shape), calls(X), list


@trap
def a_key_that_is_split_outside():
    world = {"key": jax.random.key(3)}

    def split():
        world["key"], _ = jax.random.split(world["key"])

    return lambda x: x + jax.random.normal(world["key"], x.shape), [((X,), {}, split) for _ in range(12)], list


@trap
def precision_of_a_block():
    def f(x):
        return x @ x.T

    def by(name):
        return lambda: jax.config.update("jax_default_matmul_precision", name)

    changes = [((X,), {}, by(name)) for name in [None] * _BEFORE + ["float32", "bfloat16", None, None]]
    return f, changes, list


@trap
def wide_numbers_for_a_while():
    def f(x):
        return jnp.asarray(x, float) * 2 + jnp.arange(3.0)[:, None]

    def switch(to):
        return lambda: jax.config.update("jax_enable_x64", to)

    return f, [((X,), {}, switch(to)) for to in [False] * _BEFORE + [True, True, False, False]], list


@trap
def warnings_by_an_overflow():
    def f(x):
        if x.dtype == jnp.float16:
            warnings.warn("half", stacklevel=2)
        return x * 2

    return f, then((X,), (X.astype(jnp.float16),)), list


@trap
def a_walrus_and_a_late_name():
    def f(x):
        parts = [y := x * 2, y + 1, (lambda: y)()]
        return sum(parts)

    return f, calls(X), list


@trap
def a_match_on_a_class():
    def f(thing):
        match thing:
            case {"w": w}:
                return w * 2
            case [first, *_]:
                return first * 3
            case _:
                return thing * 4

    return f, then(({"w": X},), ([X, Y],), (X,)), list


@trap
def an_object_that_is_called():
    @dataclass
    class Scaled:
        by: float

        def __call__(self, x):
            return x * self.by

    scaled = Scaled(2.0)

    def change():
        scaled.by = 7.0

    return lambda x: scaled(x) + 1, [((X,), {}, *([change] if n == 9 else [])) for n in range(14)], list


@trap
def a_method_of_a_class_that_is_replaced():
    class Model:
        def __init__(self):
            self.w = X

        def forward(self, x):
            return x * self.w

    model = Model()

    def replaced():
        Model.forward = lambda self, x: x - self.w

    return lambda x: model.forward(x), [((Y,), {}, *([replaced] if n == 9 else [])) for n in range(14)], list


@trap
def a_loop_carried_in_a_while():
    def f(x):
        return lax.while_loop(lambda s: s[1] < 5, lambda s: (s[0] * 1.1, s[1] + 1), (x, 0))

    return f, calls(X), list


@fine
def deep_trees_of_every_kind():
    def f(state):
        layers, (m, v), count = state["layers"], state["moments"], state["count"]
        moved = [Point(p.x - 0.1 * p.y, p.y * 0.9) for p in layers]
        return {"layers": moved, "moments": (m * 0.9, v * 0.99), "count": count + 1, "none": None}

    state = {"layers": [Point(X, Y), Point(Y, X)], "moments": (X, Y), "count": jnp.int32(0), "none": None}
    return f, calls(state), list


@fine
def settings_beside_arrays():
    def f(x, how, times, rate):
        y = jnp.tanh(x) if how == "tanh" else x
        return y * times * rate

    return f, [((X, "tanh", 2, 0.5), {})] * 12, list
