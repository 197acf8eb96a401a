"""Traps: what lies outside of a call and is read in passing, by an operation that one wouldn't think reads."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tests.unit.hotpath.programs import X, calls, trap


def change_at(act, at=7, count=12, args=(X,)):
    """Calls before one of which something is done."""
    return [(args, {}, *([act] if n == at else [])) for n in range(count)]


@trap
def a_list_of_numbers_that_changes():
    weights = [1.0, 2.0, 3.0, 4.0]
    return lambda x: x * jnp.asarray(weights), change_at(lambda: weights.__setitem__(0, 9.0)), list


@trap
def a_tree_that_changes_inside():
    params = {"w": X, "more": [X, X + 1]}
    change = change_at(lambda: params["more"].__setitem__(0, X * 5))
    return lambda x: jax.tree.map(lambda p: p * x.sum(), params), change, list


@trap
def a_tree_that_is_differentiated_by_and_changes():
    params = {"w": jnp.ones((4, 2)), "b": jnp.zeros(2)}

    def loss(params, x):
        return ((x @ params["w"] + params["b"]) ** 2).sum()

    change = change_at(lambda: params.update(w=params["w"] * 3))
    return lambda x: jax.grad(loss)(params, x), change, list


@trap
def a_list_whose_length_is_asked():
    seen = [1, 2]
    return lambda x: x * len(seen), change_at(lambda: seen.append(3)), list


@trap
def a_list_whose_truth_is_asked():
    seen = []
    return lambda x: x * 2 if seen else x * 3, change_at(lambda: seen.append(3)), list


@trap
def a_list_whose_falsity_is_asked():
    seen = []
    return lambda x: x * 2 if not seen else x * 3, change_at(lambda: seen.append(3)), list


@trap
def a_list_that_is_summed():
    seen = [1.0, 2.0]
    return lambda x: x * sum(seen), change_at(lambda: seen.append(3.0)), list


@trap
def a_list_whose_largest_is_taken():
    seen = [1.0, 2.0]
    return lambda x: x * max(seen), change_at(lambda: seen.append(3.0)), list


@trap
def a_list_that_is_compared():
    seen = [1]
    return lambda x: x * 2 if seen == [1] else x * 3, change_at(lambda: seen.append(3)), list


@trap
def a_list_that_is_searched():
    seen = [1, 2]
    return lambda x: x * seen.index(2), change_at(lambda: seen.insert(0, 5)), list


@trap
def a_list_in_which_something_is_counted():
    seen = [1, 2]
    return lambda x: x * seen.count(2), change_at(lambda: seen.insert(0, 2)), list


@trap
def a_set_of_options():
    options = {"scaled"}
    return lambda x: x * 2 if "double" in options else x, change_at(lambda: options.add("double")), list


@trap
def a_dict_of_options():
    options = {}
    return lambda x: x * 2 if "double" in options else x, change_at(lambda: options.update(double=1)), list


@trap
def an_option_that_is_missing_at_first():
    options = {}
    return lambda x: x * options.get("scale", 1.0), change_at(lambda: options.update(scale=4.0)), list


@trap
def the_keys_of_a_dict():
    options = {"a": 1}
    return lambda x: x * len([*options.keys()]), change_at(lambda: options.update(b=1)), list


@trap
def a_part_of_a_list():
    seen = [1.0, 2.0]
    return lambda x: x * sum(seen[:2]), change_at(lambda: seen.__setitem__(0, 7.0)), list


@trap
def an_attribute_that_is_missing_at_first():
    class Config:
        pass

    config = Config()
    change = change_at(lambda: setattr(config, "scale", 2.0))
    return lambda x: x * 2 if hasattr(config, "scale") else x, change, list


@trap
def an_attribute_with_a_default():
    class Config:
        pass

    config = Config()
    return lambda x: x * getattr(config, "scale", 1.0), change_at(lambda: setattr(config, "scale", 2.0)), list


@trap
def a_default_of_numpy():
    table = np.ones(4, np.float32)

    def f(x, table=table):
        return x + jnp.asarray(table)

    return f, change_at(lambda: table.fill(3)), list


@trap
def a_partial_with_numpy():
    table = np.ones(4, np.float32)
    add = functools.partial(lambda table, x: x + jnp.asarray(table), table)
    return lambda x: add(x), change_at(lambda: table.fill(3)), list


@trap
def numpy_in_a_list():
    tables = [np.ones(4, np.float32)]
    return lambda x: x + jnp.stack(tables), change_at(lambda: tables[0].fill(3)), list


@trap
def numpy_in_a_named_tuple():
    class Tables(NamedTuple):
        low: np.ndarray

    tables = Tables(np.ones(4, np.float32))
    return lambda x: jax.tree.map(lambda t: x + t, tables), change_at(lambda: tables.low.fill(3)), list


@trap
def a_weight_that_an_assertion_reads_and_that_is_used():
    world = {"w": jnp.asarray(2.0)}

    def f(x):
        assert world["w"], "gone"
        return x * world["w"]

    return f, change_at(lambda: world.update(w=jnp.asarray(0.0))), list


@trap
def a_weight_that_a_comprehension_reads_and_that_is_used():
    world = {"w": jnp.asarray(2.0)}

    def f(x):
        parts = [x * 2 for _ in range(2) if world["w"]]
        return len(parts) * x * world["w"]

    return f, change_at(lambda: world.update(w=jnp.asarray(0.0))), list


@trap
def a_weight_that_any_reads_and_that_is_used():
    world = {"w": jnp.asarray(2.0)}
    change = change_at(lambda: world.update(w=jnp.asarray(0.0)))
    return lambda x: x * world["w"] + any([world["w"]]), change, list


@trap
def a_weight_that_numpy_reads_and_that_is_used():
    world = {"w": jnp.asarray(2.0)}
    change = change_at(lambda: world.update(w=jnp.asarray(5.0)))
    return lambda x: x * world["w"] + np.array([world["w"], world["w"]]).sum(), change, list


@trap
def a_weight_that_a_numpy_array_takes_and_that_is_used():
    world = {"w": jnp.asarray(2.0)}

    def f(x):
        table = np.zeros(4, np.float32)
        table[0] = world["w"]
        return x * world["w"] + table

    return f, change_at(lambda: world.update(w=jnp.asarray(5.0))), list


@trap
def a_weight_that_is_a_condition_and_that_is_used():
    world = {"w": jnp.asarray(2.0)}

    def f(x):
        while world["w"]:
            x = x + 1
            break
        return x * world["w"]

    return f, change_at(lambda: world.update(w=jnp.asarray(0.0))), list


@trap
def an_object_with_a_length():
    class Data:
        asked = 0

        def __len__(self):
            Data.asked += 1
            return 3

    data = Data()
    return lambda x: x * len(data), calls(X), lambda: [Data.asked]


@trap
def an_object_with_a_truth():
    class Data:
        asked = 0

        def __bool__(self):
            Data.asked += 1
            return True

    data = Data()
    return lambda x: x * 2 if data else x, calls(X), lambda: [Data.asked]


@trap
def an_object_with_a_length_that_is_its_truth():
    class Data:
        asked = 0

        def __len__(self):
            Data.asked += 1
            return 1

    data = Data()

    def f(x):
        if not data:
            return x
        return x + 1

    return f, calls(X), lambda: [Data.asked]


@trap
def an_object_that_is_an_array():
    class Weight:
        asked = 0

        def __jax_array__(self):
            Weight.asked += 1
            return jnp.ones(4)

    weight = Weight()
    return lambda x: jnp.add(x, weight), calls(X), lambda: [Weight.asked]


@trap
def an_object_that_is_searched():
    class Names:
        asked = 0

        def __contains__(self, name):
            Names.asked += 1
            return name == "w"

    names = Names()
    return lambda x: x * 2 if "w" in names else x, calls(X), lambda: [Names.asked]


@trap
def objects_that_compare_as_they_like():
    class Name:
        asked = 0

        def __eq__(self, other):
            Name.asked += 1
            return True

        __hash__ = None

    names = [Name()]
    return lambda x: x * 2 if "w" in names else x, calls(X), lambda: [Name.asked]


@trap
def an_attribute_that_every_reading_counts():
    class Config:
        asked = 0

        def __init__(self):
            self.rate = 2.0

        def __getattribute__(self, name):
            Config.asked += 1
            return object.__getattribute__(self, name)

    config = Config()
    return lambda x: x * config.rate, calls(X), lambda: [Config.asked]


@trap
def a_property_over_an_attribute():
    class Config:
        asked = 0

        @property
        def rate(self):
            Config.asked += 1
            return 3.0

        @rate.setter
        def rate(self, value):
            self.__dict__["rate"] = value

    config = Config()
    config.__dict__["rate"] = 2.0
    return lambda x: x * config.rate, calls(X), lambda: [Config.asked]


@trap
def an_object_that_counts_what_it_is_given():
    class State:
        given = 0

        def __init__(self, x):
            self.x = x

        def __setattr__(self, name, value):
            State.given += 1
            object.__setattr__(self, name, value)

    return lambda x: State(x).x + 1, calls(X), lambda: [State.given]


@trap
def a_dataclass_whose_default_is_made():
    made = []

    def make():
        made.append(1)
        return []

    from dataclasses import field

    @dataclass
    class State:
        x: jax.Array
        seen: list = field(default_factory=make)

    return lambda x: State(x).x * 2, calls(X), lambda: [len(made)]


@trap
def an_error_that_counts():
    class Wrong(Exception):
        made = 0

        def __init__(self, text):
            Wrong.made += 1
            super().__init__(text)

    def f(x):
        if x.shape[0] > 3:
            raise Wrong("rows")
        return x * 2

    return f, [((x,), {}) for x in (X, X, X, X, X, X, jnp.ones((5, 4)), X)], lambda: [Wrong.made]


@trap
def an_error_whose_text_counts():
    made = []

    def text():
        made.append(1)
        return "rows"

    def f(x):
        if x.shape[0] > 3:
            raise ValueError(text())
        return x * 2

    return f, [((x,), {}) for x in (X, X, X, X, X, X, jnp.ones((5, 4)), X)], lambda: [len(made)]


@trap
def an_assertion_whose_text_counts():
    made = []

    def text():
        made.append(1)
        return "rows"

    def f(x):
        assert x.shape[0] <= 3, text()
        return x * 2

    return f, [((x,), {}) for x in (X, X, X, X, X, X, jnp.ones((5, 4)), X)], lambda: [len(made)]


@trap
def a_name_that_a_comprehension_gives():
    scale = None

    def f(x):
        [y := x * n for n in range(3)]
        return y if scale is None else x

    return f, calls(X), list


@trap
def a_derivative_of_ones_own_that_counts():
    seen = []

    @jax.custom_vjp
    def cube(x):
        return x**3

    def forward(x):
        seen.append("forward")
        return x**3, x

    def backward(x, g):
        seen.append("backward")
        return (3 * x**2 * g,)

    cube.defvjp(forward, backward)
    return lambda x: jax.grad(lambda x: cube(x).sum())(x), calls(X), lambda: [len(seen)]


@trap
def a_derivative_forward_of_ones_own_that_counts():
    seen = []

    @jax.custom_jvp
    def cube(x):
        return x**3

    @cube.defjvp
    def rule(primals, tangents):
        seen.append(1)
        return primals[0] ** 3, 3 * primals[0] ** 2 * tangents[0]

    return lambda x: jax.grad(lambda x: cube(x).sum())(x), calls(X), lambda: [len(seen)]
