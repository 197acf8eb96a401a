"""Programs that look as if they could be compiled: each is made anew, run as it is and run hot, and must do the same.

A program is a function that makes its own world and gives a function to call, the calls, and what to look at after.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import math
import os
import random
import time
import warnings
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

X = jnp.linspace(0.1, 1.0, 12).reshape(3, 4)
TRAPS, FINE = [], []


def trap(make):
    """What must stay eager, or do the same."""
    TRAPS.append(make)
    return make


def fine(make):
    """What is to be compiled."""
    FINE.append(make)
    return make


def calls(*args, count=10):
    return [(args, {})] * count


# Effects --------------------------------------------------------------------------------------------------------------


@trap
def prints():
    def f(x):
        print("called")
        return jnp.sin(x) + 1

    return f, calls(X), list


@trap
def prints_deep_inside():
    def inner(x):
        if x.ndim == 2:
            print("two")
        return x * 2

    return lambda x: jnp.tanh(inner(x)), calls(X), list


@trap
def counts_in_a_closure():
    count = 0

    def f(x):
        nonlocal count
        count += 1
        return x * count

    return f, calls(X), lambda: [count]


@trap
def counts_in_a_dict():
    seen = {"calls": 0}

    def f(x):
        seen["calls"] += 1
        return x + 1

    return f, calls(X), lambda: [seen]


@trap
def counts_by_an_iterator():
    numbers = itertools.count()
    return lambda x: x * next(numbers), calls(X), list


@trap
def appends():
    log = []

    def f(x):
        log.append(x.sum())
        return x + 1

    return f, calls(X), lambda: [len(log)]


@trap
def appends_by_alias():
    log = []

    def f(x):
        keep = log
        other = keep
        other.append(1)
        return x + len(log)

    return f, calls(X), lambda: [log]


@trap
def appends_to_a_default():
    def f(x, acc=[]):  # noqa: B006
        acc.append(1)
        return x * len(acc)

    return f, calls(X), list


@trap
def appends_through_a_bound_method():
    log = []
    add = log.append

    def f(x):
        add(1)
        return x + 1

    return f, calls(X), lambda: [log]


@trap
def changes_its_argument():
    state = {"x": X}

    def f(state):
        state["x"] = state["x"] + 1
        return state["x"]

    return f, [((state,), {})] * 10, lambda: [state["x"]]


@trap
def pops_from_its_argument():
    def f(xs):
        last = xs.pop()
        return last * 2

    return f, [(([X, X + 1],), {}) for _ in range(10)], list


@trap
def extends_its_argument_in_place():
    xs = [X]

    def f(xs):
        xs += [X]
        return jnp.stack([xs[0], xs[-1]])

    return f, [((xs,), {})] * 10, lambda: [len(xs)]


@trap
def changes_an_attribute():
    class Model:
        def __init__(self):
            self.steps = 0
            self.w = jnp.ones(4)

        def __call__(self, x):
            self.steps += 1
            return x @ self.w

    model = Model()
    return lambda x: model(x), calls(X), lambda: [model.steps]


@trap
def changes_an_attribute_by_setattr():
    class Box:
        n = 0

    box = Box()

    def f(x):
        setattr(box, "n", box.n + 1)  # noqa: B010
        return x * box.n

    return f, calls(X), lambda: [box.n]


@trap
def changes_by_an_operator():
    class Log:
        def __init__(self):
            self.seen = 0

        def __iadd__(self, other):
            self.seen += 1
            return self

    log = Log()

    def f(x):
        mine = log
        mine += x
        return x + 1

    return f, calls(X), lambda: [log.seen]


@trap
def a_property_that_counts():
    class Box:
        reads = 0

        @property
        def w(self):
            type(self).reads += 1
            return 2.0

    box = Box()
    return lambda x: x * box.w, calls(X), lambda: [Box.reads]


@trap
def an_item_that_counts():
    class Table(dict):
        reads = 0

        def __getitem__(self, key):
            Table.reads += 1
            return 3.0

    table = Table()
    return lambda x: x * table["a"], calls(X), lambda: [Table.reads]


@trap
def an_operator_that_prints():
    class Loud:
        def __rmul__(self, other):
            print("times")
            return other * 2

        __array_priority__ = 1000

    loud = Loud()
    return lambda x: x.sum() * loud if False else 2 * x * 1.0 + (loud and 0), calls(X), list


@trap
def a_default_dict():
    from collections import defaultdict

    table = defaultdict(list)

    def f(x):
        table["a"]
        return x + len(table)

    return f, calls(X), lambda: [dict(table)]


@trap
def draws_from_numpy():
    np.random.seed(0)
    return lambda x: x + np.random.normal(), calls(X), list


@trap
def draws_from_a_generator():
    draw = np.random.default_rng(0)
    return lambda x: x + draw.normal(), calls(X), list


@trap
def draws_from_python():
    random.seed(0)
    return lambda x: x + random.random(), calls(X), list


@trap
def draws_from_a_python_generator():
    draw = random.Random(0)
    return lambda x: x * draw.uniform(0, 1), calls(X), list


@trap
def advances_a_key_outside():
    world = {"key": jax.random.key(0)}

    def f(x):
        world["key"], key = jax.random.split(world["key"])
        return x + jax.random.normal(key, x.shape)

    return f, calls(X), list


@trap
def reads_a_clock():
    began = time.monotonic()
    return lambda x: x * (time.monotonic() < began - 1), calls(X), list


@trap
def reads_the_environment():
    os.environ["EXPLORER_TRAP"] = "1"

    def f(x):
        value = float(os.environ["EXPLORER_TRAP"])
        os.environ["EXPLORER_TRAP"] = str(value + 1)
        return x * value

    return f, calls(X), list


@trap
def writes_a_log():
    lines = []

    class Keep(logging.Handler):
        def emit(self, record):
            lines.append(record.getMessage())

    logger = logging.Logger("trap")
    logger.addHandler(Keep())

    def f(x):
        logger.warning("called")
        return x + 1

    return f, calls(X), lambda: [lines]


@trap
def warns():
    def f(x):
        warnings.warn("careful", stacklevel=1)
        return x + 1

    return f, calls(X), list


@trap
def caches_by_lru():
    @functools.lru_cache
    def weights(n):
        return jnp.arange(float(n))

    return lambda x: x + weights(4), calls(X), lambda: [weights.cache_info().hits]


@trap
def caches_by_hand():
    cache = {}

    def f(x):
        if "w" not in cache:
            cache["w"] = jnp.cos(x)
        return x + cache["w"]

    return f, calls(X), lambda: [list(cache)]


@trap
def prints_while_it_is_traced():
    @jax.jit
    def inner(x):
        print("traced")
        return x * 2

    return lambda x: inner(x) + 1, calls(X), list


@trap
def debug_prints():
    def f(x):
        jax.debug.print("sum {}", x.sum())
        return x + 1

    return f, calls(X), list


@trap
def calls_back():
    seen = []

    def f(x):
        jax.debug.callback(lambda v: seen.append(float(v)), x.sum())
        jax.effects_barrier()
        return x + 1

    return f, calls(X), lambda: [seen]


@trap
def a_derivative_that_counts():
    seen = []

    def loss(x):
        seen.append(1)
        return (x**2).sum()

    return lambda x: jax.grad(loss)(x), calls(X), lambda: [len(seen)]


@trap
def a_loop_body_that_counts():
    seen = []

    def body(carry, x):
        seen.append(1)
        return carry + x, carry

    return lambda x: lax.scan(body, x[0], x)[1], calls(X), lambda: [bool(seen)]


# Values ---------------------------------------------------------------------------------------------------------------


@trap
def branches_on_a_value():
    def f(x):
        if x.sum() > 0:
            return x
        return -x

    return f, [((X * s,), {}) for s in (1, 1, 1, 1, 1, -1, 1, -1)], list


@trap
def branches_on_a_weight():
    world = {"w": jnp.asarray(1.0)}

    def f(x):
        return x * 2 if world["w"] > 0 else x * 3

    def step(number, x):
        world["w"] = jnp.asarray(1.0 if number < 6 else -1.0)
        return f(x)

    return f, [((X,), {}, lambda n=n: world.update(w=jnp.asarray(1.0 if n < 6 else -1.0))) for n in range(10)], list


@trap
def reads_a_weight():
    world = {"w": jnp.asarray(2.0)}
    change = [((X,), {}, lambda n=n: world.update(w=jnp.asarray(float(n)))) for n in range(10)]
    return lambda x: x * float(world["w"]), change, list


@trap
def ranges_over_a_weight():
    world = {"n": jnp.asarray(2)}

    def f(x):
        for _ in range(world["n"]):
            x = x * 2
        return x

    return f, [((X,), {}, lambda n=n: world.update(n=jnp.asarray(n % 4))) for n in range(10)], list


@trap
def picks_by_a_weight():
    world = {"n": jnp.asarray(0)}
    parts = [X, X * 2, X * 3]
    change = [((X,), {}, lambda n=n: world.update(n=jnp.asarray(n % 3))) for n in range(10)]
    return lambda x: x + parts[world["n"]], change, list


@trap
def catches_what_a_trace_raises():
    def f(x):
        try:
            scale = float(x.sum())
        except Exception:
            scale = 0.0
        return x * scale

    return f, calls(X), list


@trap
def suppresses_what_a_trace_raises():
    def f(x):
        scale = 0.0
        with contextlib.suppress(Exception):
            scale = float(x[0, 0])
        return x + scale

    return f, calls(X), list


@trap
def asks_for_the_class():
    return lambda x: x if type(x).__name__ == "ArrayImpl" else x + 1, calls(X), list


@trap
def asks_whether_it_is_traced():
    return lambda x: x + 1 if isinstance(x, jax.core.Tracer) else x, calls(X), list


@trap
def asks_for_identity():
    return lambda x, y: x if x is y else x + y, [((X, X), {})] * 6 + [((X, X + 0), {})] * 4, list


@trap
def asks_for_identity_with_a_weight():
    w = X
    return lambda x: x * 2 if x is w else x, [((X,), {})] * 6 + [((X + 0,), {})] * 4, list


@trap
def formats_a_value():
    def f(x):
        names = {f"{x.sum()}": x}
        return jnp.stack([*names.values()]) * len(next(iter(names)))

    return f, calls(X), list


@trap
def formats_by_percent():
    return lambda x: x * len("%s" % x[0, 0]), calls(X), list  # noqa: UP031


@trap
def hashes_by_id():
    return lambda x: x * (id(x) % 7 >= 0) + hash(str(id(x))) * 0, calls(X), list


@trap
def returns_a_python_number():
    return lambda x: (x + 1, x.ndim), calls(X), list


@trap
def returns_a_float_of_a_value():
    return lambda x: float(jnp.sum(x)), calls(X), list


@trap
def returns_what_it_was_given():
    state = {"x": X}

    def f(state):
        return state

    return f, [((state,), {})] * 8, lambda: [True]


@trap
def returns_one_list_twice():
    def f(x):
        parts = [x, x + 1]
        return parts, parts

    return f, calls(X), list


@trap
def returns_numpy():
    return lambda x: np.asarray(x) + 1, calls(X), list


@trap
def is_given_numpy():
    return lambda x: x * 2, calls(np.ones(3)), list


@trap
def is_given_numpy_in_double():
    return lambda x: jnp.sum(x * np.float64(0.1) + 0.2), calls(np.linspace(0, 1, 100)), list


@trap
def reads_a_numpy_buffer():
    buffer = np.zeros(4, np.float32)
    change = [((X,), {}, lambda n=n: buffer.fill(n)) for n in range(10)]
    return lambda x: x + buffer, change, list


@trap
def is_a_generator():
    def f(x):
        for row in x:
            yield row * 2

    return lambda x: list(f(x)), calls(X), list


@trap
def raises_by_a_value():
    def f(x):
        if bool(jnp.any(x > 5)):
            raise ValueError("too large")
        return x * 2

    return f, [((X * s,), {}) for s in (1, 1, 1, 1, 1, 1, 9, 1)], list


@trap
def asserts_a_value():
    def f(x):
        assert x.sum() < 50, "too large"
        return x * 2

    return f, [((X * s,), {}) for s in (1, 1, 1, 1, 1, 1, 90, 1)], list


@trap
def raises_by_a_shape():
    def f(x):
        if x.shape[0] > 3:
            raise ValueError(f"{x.shape[0]} rows")
        return x * 2

    return f, [((x,), {}) for x in (X, X, X, X, X, X, jnp.ones((5, 4)), X)], list


@trap
def fails_inside_jax():
    return lambda x, y: x @ y, [((X, jnp.ones(n)), {}) for n in (4, 4, 4, 4, 4, 4, 5, 4)], list


# A world that changes -------------------------------------------------------------------------------------------------


@trap
def a_number_that_changes():
    world = {"rate": 0.1}
    change = [((X,), {}, lambda n=n: world.update(rate=0.1 if n < 6 else 0.5)) for n in range(10)]
    return lambda x: x * world["rate"], change, list


@trap
def a_number_that_changes_each_time():
    world = {"rate": 0}
    change = [((X,), {}, lambda n=n: world.update(rate=n)) for n in range(20)]
    return lambda x: x * world["rate"], change, list


@trap
def a_function_that_changes():
    world = {"act": jnp.tanh}
    change = [((X,), {}, lambda n=n: world.update(act=jnp.tanh if n < 6 else jnp.sin)) for n in range(12)]
    return lambda x: world["act"](x), change, list


@trap
def a_global_function_that_changes():
    namespace = {"jnp": jnp}
    source = "def scale(x):\n    return x * 2\ndef f(x):\n    return scale(x) + 1\n"
    exec(compile(source, "<trap>", "exec"), namespace)  # its source can't be had
    other = {}
    exec("def scale(x):\n    return x * 3\n", other)
    change = [((X,), {}, lambda n=n: n == 6 and namespace.update(scale=other["scale"])) for n in range(10)]
    return namespace["f"], change, list


@trap
def an_attribute_that_changes():
    class Config:
        rate = 0.1

    config = Config()
    change = [((X,), {}, lambda n=n: n == 6 and setattr(config, "rate", 0.7)) for n in range(12)]
    return lambda x: x * config.rate, change, list


@trap
def a_class_attribute_that_is_shadowed():
    class Config:
        rate = 0.1

    class Own(Config):
        pass

    config = Own()
    change = [((X,), {}, lambda n=n: n == 6 and setattr(Own, "rate", 0.7)) for n in range(12)]
    return lambda x: x * config.rate, change, list


@trap
def a_method_that_is_patched():
    class Model:
        def scale(self, x):
            return x * 2

    model = Model()
    change = [((X,), {}, lambda n=n: n == 6 and setattr(model, "scale", lambda x: x * 5)) for n in range(12)]
    return lambda x: model.scale(x), change, list


@trap
def a_default_that_is_replaced():
    def scale(x, by=2.0):
        return x * by

    change = [((X,), {}, lambda n=n: n == 6 and setattr(scale, "__defaults__", (7.0,))) for n in range(12)]
    return lambda x: scale(x), change, list


@trap
def a_code_that_is_replaced():
    def scale(x):
        return x * 2

    def other(x):
        return x * 9

    change = [((X,), {}, lambda n=n: n == 6 and setattr(scale, "__code__", other.__code__)) for n in range(12)]
    return lambda x: scale(x), change, list


@trap
def a_list_that_grows():
    layers = [X.T]
    change = [((X,), {}, lambda n=n: n == 6 and layers.append(jnp.ones((3, 3)))) for n in range(12)]

    def f(x):
        for w in layers:
            x = x @ w
        return x

    return f, change, list


@trap
def two_names_of_one_weight():
    world = {"a": X, "b": X}
    world["b"] = world["a"]
    change = [((X,), {}, lambda n=n: n == 6 and world.update(b=X * 3)) for n in range(12)]
    return lambda x: x * world["a"] - world["b"], change, list


@trap
def a_weight_of_another_type():
    world = {"w": X}
    kinds = [X, X, X, X, X, X, X.astype(jnp.float16), X[:1], 2.0, X]
    change = [((X,), {}, lambda kind=kind: world.update(w=kind)) for kind in kinds]
    return lambda x: x * world["w"], change, list


@trap
def numbers_that_are_equal_and_not_the_same():
    return (
        lambda x, by: x * by,
        [((X, by), {}) for by in (1, 1, 1, 1, 1, True, 1.0, 1, True, 0.0, -0.0, 0.0, -0.0, 0.0, -0.0)],
        list,
    )


@trap
def weak_types():
    weak = jnp.asarray(2.0) * 1
    return (
        lambda x, y: x * y,
        [((X.astype(jnp.bfloat16), y), {}) for y in (weak, 2.0, jnp.float32(2), weak, 2.0) * 4],
        list,
    )


@trap
def recursion_by_name():
    def f(x, n=3):
        return x if n == 0 else f(jnp.sin(x), n - 1)

    return f, calls(X), list


# What is to be compiled -----------------------------------------------------------------------------------------------


@fine
def a_chain():
    def f(x):
        for _ in range(5):
            x = jnp.tanh(x * 1.01 + 0.1) - x * 0.5
        return x

    return f, calls(X), list


@fine
def a_training_step():
    def loss(params, x):
        h = jnp.tanh(x @ params["w"] + params["b"])
        return jnp.mean(h**2)

    def f(params, x):
        value, grads = jax.value_and_grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    return f, calls({"w": jnp.ones((4, 2)), "b": jnp.zeros(2)}, X), list


@fine
def weights_that_are_replaced():
    world = {"w": jnp.ones((4, 4))}
    change = [((X,), {}, lambda n=n: world.update(w=jnp.full((4, 4), float(n)))) for n in range(12)]
    return lambda x: jnp.tanh(x @ world["w"]), change, list


@fine
def a_model_of_ones_own():
    class Dense:
        def __init__(self, n, m):
            self.w = jnp.ones((n, m))
            self.act = jnp.tanh

        def __call__(self, x):
            return self.act(x @ self.w)

    layers = [Dense(4, 8), Dense(8, 2)]

    def f(x):
        for layer in layers:
            x = layer(x)
        return x

    return f, calls(X), list


@fine
def a_named_tuple_of_state():
    class State(NamedTuple):
        w: jax.Array
        momentum: jax.Array

    def f(state, x):
        grad = jax.grad(lambda w: ((x @ w) ** 2).sum())(state.w)
        momentum = 0.9 * state.momentum + grad
        return State(state.w - 0.1 * momentum, momentum)

    return f, calls(State(jnp.ones((4, 2)), jnp.zeros((4, 2))), X), list


@fine
def a_dataclass_of_state():
    @jax.tree_util.register_dataclass
    @dataclass
    class State:
        w: jax.Array
        names: str = field(metadata={"static": True}, default="w")

    def f(state):
        return State(state.w * 2, state.names)

    return f, calls(State(X)), list


@fine
def options_by_name():
    def f(x, *, scale=2.0, train=True, name="mean"):
        if train:
            x = x * scale
        return {"mean": jnp.mean, "sum": jnp.sum}[name](x, axis=0)

    return f, [((X,), {"train": t, "name": n}) for t in (True, False) for n in ("mean", "sum")] * 6, list


@fine
def lists_of_its_own():
    def f(xs):
        out = []
        for i, x in enumerate(xs):
            out.append(x * (i + 1))
        total = sum(out[1:], out[0])
        return {"total": total, "parts": tuple(out)}

    return f, [(([X, X + 1, X + 2],), {})] * 10, list


@fine
def random_by_key():
    return lambda key, x: x + jax.random.normal(key, x.shape), calls(jax.random.key(0), X), list


@fine
def functions_of_functions():
    def power(n):
        return lambda x: x**n

    cube = power(3)
    return lambda x: jax.vmap(jax.grad(lambda row: cube(row).sum()))(x), calls(X), list


@fine
def a_scan():
    def f(x):
        def body(carry, row):
            carry = jnp.tanh(carry + row)
            return carry, carry.sum()

        return lax.scan(body, jnp.zeros(4), x)

    return f, calls(X), list


@fine
def texts_of_numbers():
    params = {f"w{i}": jnp.ones((4, 4)) * i for i in range(3)}

    def f(params, x):
        for i in range(3):
            x = x @ params[f"w{i}"]
        return x

    return f, calls(params, X), list


@fine
def an_inner_jit():
    inner = jax.jit(lambda x: jnp.sin(x) * 2)
    return lambda x: inner(x) + inner(x * 2), calls(X), list


@fine
def partials():
    def dense(w, x, scale):
        return jnp.tanh(x @ w) * scale

    layer = functools.partial(dense, jnp.ones((4, 4)), scale=2.0)
    return lambda x: layer(x) * math.sqrt(x.shape[-1]), calls(X), list


@fine
def updates_in_place_of_its_own():
    return lambda x: x.at[0].set(jnp.cos(x[1])).at[1].add(1.0), calls(X), list


# Values that are read in passing, once they have been the same for long enough ----------------------------------------


def late(world, name, *values):
    """Calls of which the first seven see the first value."""
    return [((X,), {}, lambda n=n: world.update({name: values[0] if n < 7 else values[1]})) for n in range(12)]


@trap
def a_size_that_changes_late():
    world = {}
    return lambda x: jnp.zeros(world["n"]) + x[0, 0], late(world, "n", jnp.asarray(2), jnp.asarray(3)), list


@trap
def a_cut_that_changes_late():
    world = {}
    return lambda x: x[: world["n"]] * 2, late(world, "n", jnp.asarray(2), jnp.asarray(3)), list


@trap
def turns_that_change_late():
    world = {}

    def f(x):
        for _ in range(world["n"]):
            x = x * 2
        return x

    return f, late(world, "n", jnp.asarray(2), jnp.asarray(3)), list


@trap
def an_axis_that_changes_late():
    world = {}
    return lambda x: jnp.sum(x, axis=world["n"]), late(world, "n", jnp.asarray(0), jnp.asarray(1)), list


@trap
def repeats_that_change_late():
    world = {}
    return lambda x: jnp.tile(x, world["n"]), late(world, "n", jnp.asarray([1, 2]), jnp.asarray([2, 1])), list


@trap
def a_root_that_changes_late():
    world = {}
    return lambda x: x * math.sqrt(world["w"]), late(world, "w", jnp.asarray(4.0), jnp.asarray(9.0)), list


@trap
def numpy_of_what_changes_late():
    world = {}
    return lambda x: x * np.sqrt(world["w"]), late(world, "w", jnp.asarray(4.0), jnp.asarray(9.0)), list


@trap
def a_step_that_changes_late():
    world = {}
    return (
        lambda x: jnp.arange(0.0, 2.0, world["w"]) + x[0, 0],
        late(world, "w", jnp.asarray(0.5), jnp.asarray(1.0)),
        list,
    )


@trap
def a_branch_that_changes_late():
    world = {}
    return lambda x: x * 2 if world["w"] else x * 3, late(world, "w", jnp.asarray(1.0), jnp.asarray(0.0)), list


@trap
def a_choice_that_changes_late():
    world = {}

    def f(x):
        scale = world["w"] and 2.0
        return x * scale

    return f, late(world, "w", jnp.asarray(1.0), jnp.asarray(0.0)), list


@trap
def an_assertion_that_fails_late():
    world = {}

    def f(x):
        assert world["w"], "gone"
        return x * 2

    return f, late(world, "w", jnp.asarray(1.0), jnp.asarray(0.0)), list
