"""Public issue threads retold: output, random numbers, clocks, transfers. A line with a pitfall ends in `# HIT`."""

import random
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from flax import linen

X = jnp.arange(1.0, 5.0)
latest = None
stream = jax.random.key(3)
memory = []


def thread_jax_196():
    def update(i, weights):
        print("weights", weights)  # HIT impure-print
        return weights - 0.1 * i

    return update, (0, X)


def thread_jax_4615():
    def energy(x):
        total = jnp.sum(x**2)
        print("JUtotal: ", total)  # HIT impure-print
        return total

    return jax.grad(energy), (X,)


def thread_jax_4618():
    def show(x):
        print(x)  # HIT impure-print
        print(repr(x))  # HIT impure-print, formatted-tracer
        return x

    return jax.grad(show), (3.14,)


def thread_jax_2591():
    def squares(x):
        y = x**2
        print(y)  # HIT impure-print
        return y

    return jax.vmap(squares), (jnp.arange(4),)


def thread_flax_743():
    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.Dense(3)(x)
            print("hidden:", x.mean())  # HIT impure-print
            return x

    net = Net()
    return net.apply, (net.init(jax.random.key(0), jnp.ones((2, 4))), jnp.ones((2, 4)))


def thread_sparsenerf_16():
    def loss(depth):
        message = "depth is %s" % depth  # noqa: UP031  # HIT formatted-tracer
        return depth.mean() * len(message)

    return loss, (X,)


def thread_jax_11770():
    def step(x):
        jax.debug.print(f"{x}")  # HIT formatted-tracer
        return x + 1

    return step, (X,)


def thread_jax_26296():
    def step(x):
        y = x.sum()
        jax.debug.print(f"loss: {y}")  # HIT formatted-tracer
        return y

    return step, (X,)


def thread_autoray_27():
    key = jax.random.key(42)

    def sampler():
        return jax.random.normal(key)  # HIT key-reuse

    return sampler, ()


def thread_jax_170():
    def dropout(x):
        keep = jax.random.bernoulli(jax.random.PRNGKey(0), 0.6, x.shape)  # HIT key-reuse
        return jnp.where(keep, x / 0.6, 0)

    return dropout, (X,)


def thread_equinox_498():
    class Block(eqx.Module):
        drop: eqx.nn.Dropout
        key: jax.Array

        def __call__(self, x):
            return self.drop(x, key=self.key) + self.drop(2 * x, key=self.key)  # HIT key-reuse

    return eqx.filter_jit(Block(eqx.nn.Dropout(0.5), jax.random.key(0))), (X,)


def thread_equinox_181():
    def attend(xs, key):
        drop = eqx.nn.Dropout(0.5)
        return jax.vmap(lambda x: drop(x, key=key))(xs)  # HIT key-reuse

    return attend, (jnp.ones((3, 4)), jax.random.key(0))


def thread_flax_4973():
    def noisy(key, xs):
        def one(x):
            return x + jax.random.normal(key, x.shape)  # HIT key-reuse

        return jax.vmap(one)(xs)

    return noisy, (jax.random.key(0), jnp.ones((3, 4)))


def thread_levanter_226():
    drop = linen.Dropout(0.5, deterministic=False)

    def forward(x, key):
        first = drop.apply({}, x, rngs={"dropout": key})
        return first + drop.apply({}, 2 * x, rngs={"dropout": key})  # HIT key-reuse

    return forward, (X, jax.random.key(0))


def thread_autoeis_46():
    def chains(seed, x):
        key = jax.random.key(seed)
        starts = [x + jax.random.normal(key, x.shape) for _ in range(3)]  # HIT key-reuse
        return jnp.stack(starts)

    return chains, (0, X)


def thread_jax_2793():
    def sampled(x):
        return x + np.random.randn(4)  # HIT impure-random

    return sampled, (X,)


def thread_jumpy_29():
    def reset(x):
        seed = random.randint(0, 100)  # HIT impure-random
        return x * seed

    return reset, (X,)


def thread_objax_210():
    generator = np.random.RandomState(0)

    def augment(x):
        return x * generator.uniform(0.9, 1.1)  # HIT impure-random

    return augment, (X,)


def thread_jax_899():
    source = np.array([42.0, 1, 2])

    def scaled(x):
        shared = jnp.asarray(source)  # HIT argument-mutation
        return x * shared

    return scaled, (3.0,)


def thread_jax_37830():
    buffer = np.arange(100, dtype=np.float32)

    def total(x):
        return x + jax.device_put(buffer).sum()  # HIT argument-mutation

    return total, (1.0,)


def thread_jax_1219():
    multiply = jax.jit(jnp.multiply)

    def bench(a, b):
        start = time.time()
        multiply(a, b)
        return time.time() - start  # HIT async-timing

    return bench, (X, X)


def thread_jax_802():
    work = jax.jit(lambda x: (x @ x.T).sum())

    def measured(x):
        begin = time.perf_counter()
        factors = work(x)
        elapsed = time.perf_counter() - begin  # HIT async-timing
        return factors, elapsed

    return measured, (jnp.ones((4, 4)),)


def thread_jax_998():
    product = jax.jit(jnp.dot)

    def compare(x):
        t0 = time.time()
        for _ in range(10):
            product(x, x)
        t1 = time.time()  # HIT async-timing
        return (t1 - t0) / 10

    return compare, (jnp.ones((4, 4)),)


def thread_jaxsim_344():
    step = jax.jit(lambda s: s * 0.99)

    def benchmark(state):
        times = []
        for _ in range(3):
            before = time.perf_counter_ns()
            state = step(state)
            times.append(time.perf_counter_ns() - before)  # HIT async-timing
        return times

    return benchmark, (X,)


def thread_jasmine_47():
    train = jax.jit(lambda p: p - 0.1 * p)

    def steps(p):
        start = time.monotonic()
        p = train(p)
        seconds = time.monotonic() - start  # HIT async-timing
        return p, seconds

    return steps, (X,)


def thread_jasmine_158():
    update = jax.jit(lambda w: (w * 0.9, (w**2).sum()))

    def train(w):
        history = []
        for _ in range(3):
            w, loss = update(w)
            history.append(float(loss))  # HIT host-transfer
        return w, history

    return train, (X,)


def thread_lanfactory_120():
    update = jax.jit(lambda w: w * 0.9)

    def train(w):
        total = 0.0
        for _ in range(3):
            w = update(w)
            total += np.asarray(w).sum()  # HIT host-transfer
        return total

    return train, (X,)


def thread_torchtune_522():
    update = jax.jit(lambda w: (w * 0.9, (w**2).sum()))

    def train(w):
        for _ in range(3):
            w, loss = update(w)
            value = jax.device_get(loss)  # HIT host-transfer
        return w, value

    return train, (X,)
