"""Snippets with effects that happen once, while a function is traced. A line with a pitfall ends in `# HIT rule`."""

import datetime
import logging
import os
import random
import sys
import tempfile
import time
import uuid

import jax
import jax.numpy as jnp
import numpy as np

log = logging.getLogger("train")
log.setLevel(logging.INFO)
log.addHandler(logging.NullHandler())


def printed_array():
    def add(a, b):
        c = a + b
        print(c)  # HIT impure-print
        return c

    return add, (jnp.ones(3), jnp.ones(3))


def printed_f_string():
    def add(a, b):
        c = a + b
        print(f"c : {c}")  # HIT impure-print, formatted-tracer
        return c

    return add, (jnp.ones(3), jnp.ones(3))


def printed_in_a_helper():
    def debug(name, x):
        print(name, x)  # HIT impure-print
        return x

    @jax.jit
    def forward(x):
        return debug("activations", jnp.tanh(x)) * 2

    return forward, (jnp.ones((2, 3)),)


def printed_in_a_branch_that_runs():
    def step(x, verbose=True):
        y = jnp.sin(x)
        if verbose:
            print("step done")  # HIT impure-print
        return y

    return step, (jnp.ones(3),)


def logged():
    def loss(w, x):
        value = jnp.mean((x @ w) ** 2)
        log.info("loss %s", value)  # HIT impure-print
        return value

    return loss, (jnp.ones((3, 2)), jnp.ones((4, 3)))


def written_to_stdout():
    def f(x):
        sys.stdout.write("tracing f\n")  # HIT impure-print
        return x * 2

    return f, (jnp.ones(3),)


def formatted_in_debug_print():
    def f(x):
        y = x * 2
        jax.debug.print(f"y = {y}")  # HIT formatted-tracer
        return y

    return f, (jnp.ones(3),)


def formatted_with_str():
    def f(x):
        name = "value " + str(x)  # HIT formatted-tracer
        return x * len(name)

    return f, (jnp.ones(3),)


def formatted_with_format():
    def f(x):
        message = "x is {}".format(x)  # noqa: UP032  # HIT formatted-tracer
        return x + len(message)

    return f, (jnp.ones(3),)


def timed():
    def f(x):
        start = time.perf_counter()  # HIT impure-time
        y = jnp.exp(x)
        return y, time.perf_counter() - start  # HIT impure-time

    return f, (jnp.ones(3),)


def dated():
    def stamp(x):
        return x * datetime.datetime.now().microsecond  # HIT impure-time

    return stamp, (jnp.ones(3),)


def time_as_a_seed():
    def noisy(x):
        key = jax.random.key(int(time.time()))  # HIT impure-time, key-reuse
        return x + jax.random.normal(key, x.shape)

    return noisy, (jnp.ones(3),)


def random_of_python():
    def dropout(x):
        if random.random() < 0.5:  # HIT impure-random
            return x * 0
        return x

    return dropout, (jnp.ones(3),)


def random_of_numpy():
    def noisy(x):
        return x + np.random.normal(size=3)  # HIT impure-random

    return noisy, (jnp.ones(3),)


def random_generator_of_numpy():
    rng = np.random.default_rng(0)

    def noisy(x):
        noise = rng.standard_normal(3)  # HIT impure-random
        return x + noise

    return noisy, (jnp.ones(3),)


def shuffled():
    def pick(x):
        order = [0, 1, 2]
        random.shuffle(order)  # HIT impure-random
        return x[jnp.array(order)]

    return pick, (jnp.ones(3),)


def tagged_with_a_uuid():
    def tagged(x):
        tag = uuid.uuid4().int % 7  # HIT impure-random
        return x + tag

    return tagged, (jnp.ones(3),)


def read_from_the_environment():
    def scaled(x):
        return x * float(os.environ.get("SCALE", "2"))  # HIT impure-io

    return scaled, (jnp.ones(3),)


def read_with_getenv():
    def scaled(x):
        return x * len(os.getenv("HOME", "/"))  # HIT impure-io

    return scaled, (jnp.ones(3),)


def read_from_a_file():
    path = os.path.join(tempfile.gettempdir(), "explorer_corpus_scale.txt")
    with open(path, "w") as file:
        file.write("3")

    def scaled(x):
        with open(path) as file:  # HIT impure-io
            return x * float(file.read())

    return scaled, (jnp.ones(3),)


def saved_to_a_file():
    path = os.path.join(tempfile.gettempdir(), "explorer_corpus_log.txt")

    def step(x):
        with open(path, "a") as file:  # HIT impure-io
            file.write("step\n")
        return x + 1

    return step, (jnp.ones(3),)


def next_of_an_iterator():
    batches = iter([1.0, 2.0, 3.0])

    def step(x):
        return x + next(batches)  # HIT iterator

    return step, (jnp.ones(3),)


def loop_over_a_generator():
    def numbers():
        yield from (1.0, 2.0, 3.0)

    source = numbers()

    def total(x):
        for number in source:  # HIT iterator
            x = x + number
        return x

    return total, (jnp.ones(3),)


def an_iterator_as_a_fori_operand():
    iterator = iter(range(10))

    def f(x):
        return jax.lax.fori_loop(0, 10, lambda i, y: y + next(iterator), x)  # HIT iterator

    return f, (0,)


def callback_on_every_call():
    def step(x):
        jax.debug.print("x = {}", x)  # HIT slow-path-effect
        return x * 2

    return step, (jnp.ones(3),)


def io_callback_on_every_call():
    def step(x):
        jax.experimental.io_callback(lambda v: None, None, x)  # HIT slow-path-effect
        return x * 2

    import jax.experimental

    return step, (jnp.ones(3),)


def item_in_a_driver_loop():
    @jax.jit
    def update(x):
        return x * 0.9

    def train(x):
        losses = []
        for _ in range(3):
            x = update(x)
            losses.append(x.sum().item())  # HIT host-transfer
        return losses

    return train, (jnp.ones(3),)


def numpy_in_a_step():
    def step(x):
        return jnp.asarray(np.asarray(x) * 2)  # HIT concretization

    return step, (jnp.ones(3),)


def device_get_in_a_step():
    weights = jnp.ones(3)

    def step(x):
        return x * jax.device_get(weights)  # HIT host-transfer

    return step, (jnp.ones(3),)
