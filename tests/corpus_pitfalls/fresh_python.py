"""Fresh pitfalls of Python around JAX: drivers, swallowed errors, queues, effects. Pitfalls end in `# HIT rule`."""

import contextlib
import functools
import heapq
import itertools
import logging
import os
import queue
import random
import time
from collections import deque

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

X = jnp.arange(1.0, 5.0)
BATCHES = [X, X * 2, X * 3]


@jax.jit
def sgd_step(w, x):
    loss, grad = jax.value_and_grad(lambda w: jnp.mean((w - x) ** 2))(w)
    return w - 0.1 * grad, loss


@functools.partial(jax.jit, donate_argnums=0)
def donating_step(w, x):
    return w - 0.1 * x


def loss_to_float_each_turn():
    def train(w, batches):
        history = []
        for x in batches:
            w, loss = sgd_step(w, x)
            history.append(float(loss))  # HIT host-transfer
        return w, history

    return train, (X, BATCHES)


def loss_printed_each_turn():
    def train(w, batches):
        for i, x in enumerate(batches):
            w, loss = sgd_step(w, x)
            print(i, loss)  # HIT host-transfer
        return w

    return train, (X, BATCHES)


def item_each_turn():
    def train(w, batches):
        total = 0.0
        for x in batches:
            w, loss = sgd_step(w, x)
            total += loss.item()  # HIT host-transfer
        return w, total / len(batches)

    return train, (X, BATCHES)


def wait_each_turn():
    def train(w, batches):
        for x in batches:
            w, loss = sgd_step(w, x)
            loss.block_until_ready()  # HIT host-transfer
        return w

    return train, (X, BATCHES)


def formatted_each_turn():
    log = logging.getLogger("train")

    def train(w, batches):
        for x in batches:
            w, loss = sgd_step(w, x)
            log.info(f"loss {loss:.3f}")  # HIT host-transfer
        return w

    return train, (X, BATCHES)


def stop_by_the_loss():
    def train(w, x):
        for _ in range(100):
            w, loss = sgd_step(w, x)
            if loss < 1e-6:  # HIT host-transfer
                break
        return w

    return train, (X, X)


def metrics_as_numpy():
    def evaluate(w, batches):
        losses = []
        for x in batches:
            _, loss = sgd_step(w, x)
            losses.append(np.asarray(loss))  # HIT host-transfer
        return np.mean(losses)

    return evaluate, (X, BATCHES)


def nnx_training():
    model = nnx.Linear(4, 1, rngs=nnx.Rngs(0))

    @nnx.jit
    def step(model, x):
        return jnp.mean(model(x) ** 2)

    def train(batches):
        for x in batches:
            loss = step(model, x)
            print(f"loss {float(loss)}")  # HIT host-transfer

    return train, (BATCHES,)


def equinox_training():
    @eqx.filter_jit
    def step(w, x):
        return w - 0.1 * x, jnp.mean(w * x)

    def train(w, batches):
        best = float("inf")
        for x in batches:
            w, loss = step(w, x)
            best = min(best, float(loss))  # HIT host-transfer
        return w, best

    return train, (X, BATCHES)


def jitted_in_each_epoch():
    def train(w, batches):
        for _ in range(3):
            step = jax.jit(lambda w, x: w - 0.1 * x)  # HIT rejit-in-loop
            for x in batches:
                w = step(w, x)
        return float(w.sum())

    return train, (X, BATCHES)


def donated_and_kept():
    def train(w, batches):
        new = w
        for x in batches:
            new = donating_step(w, x)  # HIT donated-reuse
        return float(new.sum())

    return train, (jnp.zeros(4), BATCHES)


def steps_timed_without_waiting():
    def bench(w, x):
        start = time.perf_counter()
        w, loss = sgd_step(w, x)
        took = time.perf_counter() - start  # HIT async-timing
        print(took)
        return float(loss)

    return bench, (X, X)


def keys_used_again_by_a_driver():
    sample = jax.jit(lambda key: jax.random.normal(key, (3,)))

    def draw(key):
        samples = [sample(key) for _ in range(3)]  # HIT key-reuse
        return float(samples[0].sum())

    return draw, (jax.random.key(0),)


def float_or_zero():
    def scale(x):
        try:
            factor = float(x.sum())  # HIT concretization
        except Exception:
            factor = 1.0
        return x * factor

    return scale, (X,)


def branch_or_default():
    def pick(x):
        try:
            if x[0] > 0:  # HIT concretization
                return x
        except jax.errors.ConcretizationTypeError:
            pass
        return -x

    return pick, (X,)


def suppressed():
    def size(x):
        n = 3
        with contextlib.suppress(Exception):
            n = int(x[0])  # HIT concretization
        return x[:n]

    return size, (X,)


def numpy_or_nothing():
    def norm(x):
        try:
            return x / np.linalg.norm(x)  # HIT concretization
        except Exception:
            return x

    return norm, (X,)


def bare_except():
    def check(x):
        try:
            ok = bool((x > 0).all())  # HIT concretization
        except:  # noqa: E722
            ok = True
        return x if ok else -x

    return check, (X,)


def put_into_a_queue():
    results = queue.Queue()

    def worker(x):
        y = x * 2
        results.put(y)  # HIT leaked-tracer
        return y

    return worker, (X,)


def put_into_a_simple_store():
    store = deque(maxlen=4)

    def worker(x):
        y = jnp.sin(x)
        store.append(y)  # HIT leaked-tracer
        return y

    return worker, (X,)


def put_into_a_priority_queue():
    best = queue.PriorityQueue()

    def worker(x):
        best.put((1, x.sum()))  # HIT leaked-tracer
        return x

    return worker, (X,)


def pushed_on_a_heap():
    heap = []

    def worker(x):
        heapq.heappush(heap, (0, x.max()))  # HIT leaked-tracer
        return x

    return worker, (X,)


def kept_by_a_meter():
    class Meter:
        def __init__(self):
            self.values = []

        def update(self, value):
            self.values.append(value)  # HIT leaked-tracer

    meter = Meter()

    def loss(w):
        value = (w**2).mean()
        meter.update(value)
        return value

    return loss, (X,)


def hooks_with_activations():
    activations = {}

    def forward(x):
        for i in range(2):
            x = jnp.tanh(x)
            activations[f"layer{i}"] = x  # HIT leaked-tracer
        return x

    return forward, (X,)


def print_in_a_scan():
    def total(x):
        def body(carry, each):
            print("carry", carry)  # HIT impure-print
            return carry + each, None

        return jax.lax.scan(body, 0.0, x)[0]

    return total, (X,)


def seed_of_the_clock():
    def noisy(x):
        key = jax.random.key(int(time.time()))  # HIT impure-time
        return x + jax.random.normal(key, x.shape)

    return noisy, (X,)


def numpy_dropout():
    def dropout(x):
        return x * (np.random.rand(4) > 0.5)  # HIT impure-random

    return dropout, (X,)


def python_choice():
    def augment(x):
        return x[::-1] if random.random() < 0.5 else x  # HIT impure-random

    return augment, (X,)


def counted_calls():
    class Layer:
        def __init__(self):
            self.calls = 0

        def __call__(self, x):
            self.calls += 1  # HIT state-write
            return x * 2

    return Layer(), (X,)


def mode_of_the_environment():
    def forward(x):
        return x.astype(jnp.bfloat16) if os.environ.get("FAST") else x  # HIT impure-io

    return forward, (X,)


def next_of_a_counter():
    steps = itertools.count()

    def scheduled(x):
        return x * 0.9 ** next(steps)  # HIT iterator

    return scheduled, (X,)


def branch_on_a_norm():
    def clip(g):
        norm = jnp.linalg.norm(g)
        if norm > 1.0:  # HIT concretization
            g = g / norm
        return g

    return clip, (X,)


def while_on_an_error():
    def solve(x):
        while jnp.abs(x * x - 2).max() > 1e-3:  # HIT concretization
            x = 0.5 * (x + 2 / x)
        return x

    return solve, (X,)


def positives_only():
    def positives(x):
        return x[x > 2]  # HIT boolean-mask

    return positives, (X,)


def distinct_values():
    def distinct(x):
        return jnp.unique(x).sum()  # HIT boolean-mask

    return distinct, (X,)


def one_key_for_weights():
    def init(key):
        w1 = jax.random.normal(key, (3, 3))
        w2 = jax.random.normal(key, (3, 3))  # HIT key-reuse
        return w1, w2

    return init, (jax.random.key(0),)


def parent_key_used_after_split():
    def sample(key):
        first, second = jax.random.split(key)
        a = jax.random.normal(first, (2,)) + jax.random.normal(second, (2,))
        return a + jax.random.uniform(key, (2,))  # HIT key-reuse

    return sample, (jax.random.key(0),)


def table_of_a_megabyte():
    table = jnp.ones((1000, 500))

    def lookup(i):
        return table[i].sum()  # HIT large-constant

    return lookup, (jnp.array(3),)


def many_layers_by_hand():
    def forward(x, w):
        for _ in range(40):  # HIT unrolled-loop
            x = jnp.tanh(x @ w) + x
        return x

    return forward, (jnp.ones((4, 4)), jnp.ones((4, 4)))


def update_in_place():
    def fill(x):
        x[0] = 1.0  # HIT argument-mutation
        return x

    return fill, (X,)


def params_updated_in_place():
    def step(params):
        params["w"] = params["w"] * 0.9  # HIT argument-mutation
        return params["w"].sum()

    return step, ({"w": X},)


def update_of_a_copy_dropped():
    def zero_first(x):
        x.at[0].set(0.0)  # HIT dropped-result
        return x

    return zero_first, (X,)


def formatted_value():
    def named(x):
        label = f"sum={x.sum()}"  # HIT formatted-tracer
        return x * len(label)

    return named, (X,)


def rate_changed_later():
    settings = {"rate": 0.1}

    def step(w):
        return w * settings["rate"]  # HIT stale-closure

    settings["rate"] = 0.01
    return step, (X,)


def optimizer_made_of_numbers():
    def mean(values):  # HIT list-of-scalars
        return sum(values) / len(values)

    return mean, ([float(i) for i in range(32)],)


def weights_from_a_cache():
    @functools.cache
    def window(n):
        return jnp.hanning(n)

    def smooth(x):
        return x * window(4)  # HIT leaked-tracer

    return smooth, (X,)


def optimizer_update_unused():
    tx = optax.sgd(0.1)

    def step(w, state):
        updates, state = tx.update(jax.grad(lambda w: (w**2).sum())(w), state)  # noqa: RUF059  # HIT dropped-result
        return w, state

    return step, (X, tx.init(X))
