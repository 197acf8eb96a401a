"""Snippets that read and write state outside of a function. A line with a pitfall ends in `# HIT rule`."""

import jax
import jax.numpy as jnp
import numpy as np

counter = 0
history = []
scale = 2.0
settings = {"rate": 0.1}


def writes_a_global():
    def step(x):
        global counter
        counter += 1  # HIT state-write
        return x + 1

    return step, (jnp.ones(3),)


def writes_a_nonlocal():
    calls = 0

    def step(x):
        nonlocal calls
        calls = calls + 1  # HIT state-write
        return x + 1

    return step, (jnp.ones(3),)


def appends_a_number():
    seen = []

    def step(x):
        seen.append(x.shape)  # HIT state-write
        return x + 1

    return step, (jnp.ones(3),)


def leaks_into_a_list():
    losses = []

    def step(x):
        loss = jnp.sum(x**2)
        losses.append(loss)  # HIT leaked-tracer
        return loss

    return step, (jnp.ones(3),)


def leaks_into_a_global():
    def step(x):
        global last
        last = x * 2  # HIT leaked-tracer
        return x

    return step, (jnp.ones(3),)


def leaks_into_self():
    class Model:
        def __init__(self):
            self.hidden = None

        def __call__(self, x):
            self.hidden = jnp.tanh(x)  # HIT leaked-tracer
            return self.hidden * 2

    return Model().__call__, (jnp.ones(3),)


def leaks_into_a_dict():
    cache = {}

    def step(x):
        cache["activation"] = jnp.tanh(x)  # HIT leaked-tracer
        return x

    return step, (jnp.ones(3),)


def counts_in_self():
    class Meter:
        def __init__(self):
            self.calls = 0

        def __call__(self, x):
            self.calls += 1  # HIT state-write
            return x * 2

    return Meter().__call__, (jnp.ones(3),)


def updates_a_dict():
    stats = {"calls": 0}

    def step(x):
        stats["calls"] += 1  # HIT state-write
        return x * 2

    return step, (jnp.ones(3),)


def extends_in_a_helper():
    shapes = []

    def note(x):
        shapes.extend(x.shape)  # HIT state-write
        return x

    def step(x):
        return note(x) * 2

    return step, (jnp.ones((2, 3)),)


def reads_a_mutable_list():
    rates = [0.1, 0.2]

    def step(x):
        return x * rates[0]  # HIT stale-closure

    return step, (jnp.ones(3),)


def reads_settings():
    def step(x):
        return x - settings["rate"] * x  # HIT stale-closure

    return step, (jnp.ones(3),)


def reads_an_attribute():
    class Optimizer:
        def __init__(self):
            self.rate = 0.1

        def set_rate(self, rate):
            self.rate = rate

        def step(self, x, gradient):
            return x - self.rate * gradient  # HIT stale-closure

    return Optimizer().step, (jnp.ones(3), jnp.ones(3))


def changes_a_list_argument():
    def step(xs):
        xs.append(jnp.zeros(3))  # HIT argument-mutation
        return sum(xs)

    return step, ([jnp.ones(3), jnp.ones(3)],)


def changes_a_dict_argument():
    def step(state, x):
        state["count"] = state["count"] + 1  # HIT argument-mutation
        return state["w"] * x

    return step, ({"w": jnp.ones(3), "count": jnp.int32(0)}, jnp.ones(3))


def pops_from_an_argument():
    def step(batch):
        label = batch.pop("label")  # HIT argument-mutation
        return batch["x"] * label

    return step, ({"x": jnp.ones(3), "label": jnp.ones(3)},)


def assigns_to_an_array():
    def step(x):
        x[0] = 1.0  # HIT argument-mutation
        return x

    return step, (jnp.ones(3),)


def captures_weights():
    weights = jnp.ones((512, 1024))

    def predict(x):
        return x @ weights  # HIT large-constant

    return predict, (jnp.ones((2, 512)),)


def captures_a_numpy_table():
    table = np.zeros((1000, 300), np.float32)

    def embed(i):
        return jnp.asarray(table)[i]  # HIT large-constant

    return embed, (jnp.arange(4),)


def captures_in_self():
    class Dense:
        def __init__(self):
            self.w = jnp.ones((600, 600))

        def __call__(self, x):
            return x @ self.w  # HIT large-constant

    return jax.jit(Dense().__call__), (jnp.ones((2, 600)),)
