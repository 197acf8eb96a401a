"""Public issue threads retold: compiles that repeat or take long, donation, constants. Marked with `# HIT rule`."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

X = jnp.arange(1.0, 5.0)


def thread_jax_2777():
    def sample(ra, rb, gates):
        for i in range(64):  # HIT unrolled-loop
            new_a = 0.5 * (ra + gates[i] * ra + (1 - gates[i]) * rb)
            rb = 0.5 * (rb + gates[i] * ra + (1 - gates[i]) * rb)
            ra = new_a
        return ra

    return sample, (X, X, jnp.ones((64, 4)))


def thread_jax_1223():
    def image(x, w):
        for i in range(192):  # HIT unrolled-loop
            x = x.at[i].set(jnp.tanh(x @ w[i]))
        return x

    return image, (jnp.ones(192), jnp.ones((192, 192)))


def thread_jax_16611():
    def rollout(state, actions):
        rewards = []
        for action in range(100):  # HIT unrolled-loop
            state = jnp.tanh(state + actions[action])
            rewards.append(state.sum())
        return jnp.stack(rewards)

    return rollout, (X, jnp.ones((100, 4)))


def thread_jax_810():
    def to_go(rewards, discount):
        total, out = 0.0, []
        for reward in rewards[::-1]:  # HIT unrolled-loop
            total = reward + discount * total
            out.append(total)
        return jnp.stack(out)

    return to_go, (jnp.ones(100), 0.9)


def thread_scoremd_7():
    def langevin(x, key):
        for _ in range(50):  # HIT unrolled-loop
            key, subkey = jax.random.split(key)
            x = x - 0.01 * x + 0.1 * jax.random.normal(subkey, x.shape)
        return x

    return langevin, (X, jax.random.key(0))


def thread_jax_1399():
    variables = jnp.ones(10)

    def ratio(arguments):
        total = 0.0
        for i in range(200):  # HIT unrolled-loop
            term = arguments[i] * variables
            total = total + jnp.sum((jnp.sin(term) + jnp.cos(term)) ** 2)
        return jnp.log(total)

    return jax.jit(jax.grad(ratio)), (jnp.ones(200),)


def thread_jax_2515():
    def likelihood(s, m, w):
        total = 0.0
        for x in w:  # HIT unrolled-loop
            total += -jnp.log(jnp.exp(-(((x - m) / s) ** 2) / 2) / s)  # HIT nan-value
        return total

    return likelihood, (5.0, 100.0, jnp.ones(100))


def thread_jax_1832():
    def fibonacci(x):
        f = jnp.zeros(100)
        for i in range(1, 100):  # HIT unrolled-loop
            f = f.at[i].set(f[i - 1] + x[i])
        return f.sum()

    return fibonacci, (jnp.ones(100),)


def thread_jax_9288():
    def body(i):
        return i + 1

    def poorly(x):
        for _ in range(3):
            x = jax.jit(lambda y: body(y))(x)  # HIT rejit-in-loop
        return x

    return poorly, (X,)


def thread_equinox_1141():
    def train(x):
        for _ in range(4):
            update = jax.jit(lambda y: y * 0.9)  # HIT rejit-in-loop
            x = update(x)
        return x

    return train, (X,)


def thread_optax_1171():
    def search(w):
        for scale in (1.0, 0.5, 0.25):
            w = w - scale * jax.jit(jax.grad(lambda v: (v**2).sum()))(w)  # HIT rejit-in-loop
        return w

    return search, (X,)


def thread_jax_9237():
    @partial(jax.jit, donate_argnums=0)
    def pooled(images):  # HIT unusable-donation
        return images.mean(axis=(1, 2))

    return pooled, (jnp.ones((2, 16, 16, 3)),)


def thread_jax_9675():
    @partial(jax.jit, donate_argnums=(0,))
    def quantized(weights):  # HIT unusable-donation
        return (weights * 127).astype(jnp.int8)

    return quantized, (X,)


def thread_jax_9635():
    @partial(jax.jit, donate_argnums=(0,))
    def add(x, y):  # HIT donated-reuse
        return x + y

    return add, (X, X)


def thread_jax_2936():
    @partial(jax.jit, donate_argnums=(0, 1))
    def both(x, y):  # HIT donated-reuse
        return x + 1, y + 2

    return both, (X, X)


def thread_jax_10596():
    kernel = jnp.ones((512, 1024))

    def convolved(x):
        return jnp.fft.ifft(jnp.fft.fft(x) * jnp.fft.fft(kernel)).real  # HIT large-constant

    return convolved, (jnp.ones(1024),)


def thread_jax_21300():
    values = jnp.ones((4000, 10, 10))

    def sums(x):
        return x + jax.vmap(jax.vmap(jnp.sum))(values)  # HIT large-constant

    return sums, (jnp.ones((4000, 10)),)


def thread_jax_14655():
    def build():
        indices = np.stack([np.arange(400_000, dtype=np.int32)] * 2)

        def product(x):
            return x[indices[0]] * x[indices[1]]  # HIT large-constant

        return product

    return build(), (jnp.ones(400_000),)


def thread_jax_10585():
    class Field:
        def __init__(self):
            self.mesh = jnp.ones((700, 700))

        def at(self, x):
            return x @ self.mesh  # HIT large-constant

    return Field().at, (jnp.ones(700),)


def thread_jax_4274():
    def decay(rate):  # HIT weak-type
        return rate + np.float32(0.0)

    return decay, (0.0,)


def thread_jax_3163():
    def accumulate(x, i):  # HIT weak-type
        return x + jnp.sum(i)

    return accumulate, (0, jnp.arange(3))


def thread_numpyro_463():
    def sample(state):  # HIT weak-type
        step, position = state
        return step * jnp.float32(0.9), position + step

    return sample, ((0.1, X),)


def thread_jaxopt_451():
    def update(params, state):  # HIT weak-type
        gradient = 2 * params
        return params - state["stepsize"] * gradient, {"stepsize": jnp.minimum(state["stepsize"], gradient.max())}

    return update, (X, {"stepsize": 1.0})


def thread_jax_653():
    def triples(rows):  # HIT list-of-scalars
        return jnp.array(rows).sum()

    return triples, ([0, 0, 1, 0, 0, 2, 0, 0, 3, 0, 0, 4] * 8,)


def thread_jax_2919():
    def converted(values):  # HIT list-of-scalars
        return jnp.array(values) * 2

    return converted, ([0.0] * 200,)


def thread_jax_5684():
    def added(x, indices, y):  # HIT list-of-scalars
        return x.at[jnp.array(indices)].add(y)

    return added, (jnp.ones(1000), list(range(300)), jnp.ones(300))


def thread_jax_19500():
    def as_array(numbers):  # HIT list-of-scalars
        return jnp.asarray(numbers).mean()

    return as_array, ([float(i) for i in range(100)],)


def thread_jax_10662():
    def table(rows):  # HIT list-of-scalars
        return jnp.array(rows)

    return table, ([list(range(20)) for _ in range(20)],)


def thread_jax_4667():
    def energy(tree):  # HIT list-of-scalars
        return sum(jnp.sin(leaf) for leaf in tree["nodes"])  # HIT unrolled-loop

    return energy, ({"nodes": [float(i) for i in range(100)]},)
