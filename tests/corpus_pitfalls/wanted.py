"""Mistakes that lint was asked to find, each in several shapes. A line with a pitfall ends in `# HIT rule`."""

import functools
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen

X = jnp.arange(1.0, 5.0)
optimizer = optax.sgd(0.1)


def update_dropped_after_another():
    def filled(x):
        x = x.at[0].set(1.0)
        x.at[1].add(2.0)  # HIT dropped-result
        return x

    return filled, (X,)


def update_named_and_forgotten():
    def filled(x):
        changed = x.at[0].set(1.0)  # noqa: F841  # HIT dropped-result
        return x

    return filled, (X,)


def optax_updates_not_applied():
    def step(params, state):
        gradients = jax.grad(lambda p: (p**2).sum())(params)
        updates, state = optimizer.update(gradients, state)  # noqa: RUF059  # HIT dropped-result
        return params, state

    return step, (X, optimizer.init(X))


def optax_apply_dropped():
    def step(params, state):
        gradients = jax.grad(lambda p: (p**2).sum())(params)
        updates, state = optimizer.update(gradients, state)
        optax.apply_updates(params, updates)  # HIT dropped-result
        return params, state

    return step, (X, optimizer.init(X))


def fold_in_dropped():
    def noise(key, i):
        jax.random.fold_in(key, i)  # HIT dropped-result
        return jax.random.normal(key, (3,))

    return noise, (jax.random.key(0), 1)


def tree_map_dropped():
    def clipped(gradients):
        jax.tree.map(lambda g: jnp.clip(g, -1, 1), gradients)  # HIT dropped-result
        return gradients

    return clipped, ({"w": X},)


def tree_at_dropped():
    model = eqx.nn.Linear(2, 2, key=jax.random.key(0))

    def frozen(model, x):
        eqx.tree_at(lambda m: m.bias, model, jnp.zeros(2))  # HIT dropped-result
        return model(x)

    return eqx.filter_jit(frozen), (model, jnp.ones(2))


def cached_constant():
    @functools.lru_cache(maxsize=8)
    def frequencies(size):
        return 1.0 / 10_000 ** (jnp.arange(size) / size)

    def encode(x):
        return x * frequencies(4)  # HIT leaked-tracer

    return encode, (X,)


def cached_property_of_a_model():
    class Kernel:
        def __init__(self, scale):
            self.scale = scale

        @functools.cached_property
        def table(self):
            return jnp.exp(-jnp.arange(4.0) / self.scale)

        def __call__(self, x):
            return x * self.table  # HIT leaked-tracer

    return Kernel(2.0), (X,)


def cached_method():
    class Rope:
        @functools.cache  # noqa: B019
        def angles(self, n):
            return jnp.arange(n) * 0.1

        def __call__(self, x):
            return x * self.angles(4)  # HIT leaked-tracer

    return Rope().__call__, (X,)


def one_dropout_key_for_two_layers():
    class Net(linen.Module):
        @linen.compact
        def __call__(self, x, train):
            return linen.Dropout(0.5, deterministic=not train)(linen.Dense(4)(x))

    net = Net()
    params = net.init(jax.random.key(0), X, False)

    def consistency(params, x, key):
        one = net.apply(params, x, True, rngs={"dropout": key})
        two = net.apply(params, x, True, rngs={"dropout": key})  # HIT key-reuse
        return jnp.mean((one - two) ** 2)

    return consistency, (params, X, jax.random.key(1))


def one_equinox_key_for_two_layers():
    def forward(x, key):
        drop = eqx.nn.Dropout(0.5)
        x = drop(x, key=key)
        return drop(x * 2, key=key)  # HIT key-reuse

    return forward, (X, jax.random.key(1))


def key_closed_over_in_vmap():
    def augment(images, key):
        return jax.vmap(lambda image: image + jax.random.normal(key, image.shape))(images)  # HIT key-reuse

    return augment, (jnp.ones((5, 3)), jax.random.key(0))


def key_with_no_axis_in_vmap():
    def noisy(key, x):
        return x + jax.random.uniform(key, x.shape)  # HIT key-reuse

    return jax.vmap(noisy, in_axes=(None, 0)), (jax.random.key(0), jnp.ones((5, 3)))


def numpy_scalar_out_of_range():
    def later(x):
        return x + np.int64(3e9)  # HIT truncation

    return later, (jnp.arange(3),)


def unsigned_scalar_out_of_range():
    def mixed(x):
        return x ^ np.uint64(0x9E3779B97F4A7C15)  # HIT truncation

    return mixed, (jnp.arange(3, dtype=jnp.uint32),)


def numpy_array_out_of_range():
    def later(x):
        return x + np.array([1, 5_000_000_000])  # HIT truncation

    return later, (jnp.arange(2),)


def cast_out_of_range():
    def small(x):
        return x + jnp.full((3,), 300).astype(jnp.uint8)  # HIT truncation

    return small, (jnp.zeros(3, jnp.uint8),)


def negative_to_unsigned():
    def small(x):
        return x + jnp.array([-1, 2, 3]).astype(jnp.uint32)  # HIT truncation

    return small, (jnp.zeros(3, jnp.uint32),)


def numpy_argument_decayed():
    def decay(stats, x):
        stats *= 0.9  # HIT argument-mutation
        return x - stats.mean()

    return decay, (np.ones(4, np.float32), X)


def numpy_argument_accumulated():
    def accumulate(total, x):
        total += x  # HIT argument-mutation
        return x * 2

    return accumulate, (np.zeros(4, np.float32), X)


def numpy_leaf_decayed():
    def decay(state, x):
        state["mean"] *= 0.9  # HIT argument-mutation
        return x - state["mean"]

    return decay, ({"mean": np.ones(4, np.float32)}, X)


def transfer_in_a_loop():
    norm = jax.jit(jnp.linalg.norm)

    def until_small(x):
        norms = []
        for _ in range(4):
            size = norm(x)
            x = x / 2
            norms.append(np.array(size))  # HIT host-transfer
        return norms

    return until_small, (X,)


def transfer_in_a_while():
    norm = jax.jit(jnp.linalg.norm)

    def until_small(x):
        size = 10.0
        while size > 1:
            x = x / 2
            size = norm(x).item()  # HIT host-transfer
        return x

    return until_small, (X,)


def transfer_without_a_name():
    step = jax.jit(lambda x: x * 2)

    def run(x):
        out = []
        for _ in range(3):
            out.append(float(step(x).sum()))  # HIT host-transfer
        return out

    return run, (X,)


def timed_without_waiting():
    step = jax.jit(lambda x: x @ x)

    def bench(x):
        start = time.perf_counter()
        x = step(x)
        print(time.perf_counter() - start)  # HIT async-timing, impure-print
        return x

    return bench, (jnp.eye(3),)


def timed_with_waiting():
    step = jax.jit(lambda x: x @ x)

    def bench(x):
        start = time.perf_counter()
        x = jax.block_until_ready(step(x))
        return x, time.perf_counter() - start

    return bench, (jnp.eye(3),)


def key_as_a_default_argument():
    def noisy(x, key=jax.random.key(0)):  # noqa: B008
        return x + jax.random.normal(key, x.shape)  # HIT key-reuse

    return noisy, (X,)


def inner_name_shadows_a_global():
    scale = 2.0

    def outer(x):
        def inner(scale):
            scale = scale * 2
            return scale * x

        return inner(x) * scale

    return outer, (X,)


def comprehension_shadows_a_global():
    rates = [1.0, 2.0]

    def weighted(x):
        return sum(x * rate for rate in (0.1, 0.2)) + sum(x * r for r in rates)  # HIT stale-closure

    def change(rate):
        rates.append(rate)

    del change
    return weighted, (X,)
