"""Snippets about arrays: shapes, indices, types, gradients, keys. A line with a pitfall ends in `# HIT rule`."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np


def python_if():
    def relu(x):
        if x > 0:  # HIT concretization
            return x
        return 0.0

    return relu, (1.0,)


def python_while():
    def collatz(n):
        steps = 0
        while n != 1:  # HIT concretization
            n = jnp.where(n % 2 == 0, n // 2, 3 * n + 1)
            steps += 1
        return steps

    return collatz, (27,)


def python_float():
    def scaled(x):
        return x * float(jnp.max(x))  # HIT concretization

    return scaled, (jnp.ones(3),)


def python_range():
    def repeated(x, n):
        for _ in range(n):  # HIT concretization
            x = x * 2
        return x

    return repeated, (jnp.ones(3), 4)


def numpy_function():
    def f(x):
        return np.sin(x)  # HIT concretization

    return f, (jnp.ones(3),)


def python_assert():
    def checked(x):
        assert jnp.all(x > 0)  # HIT concretization
        return jnp.log(x)

    return checked, (jnp.ones(3),)


def bool_in_a_helper():
    def is_small(x):
        return bool(jnp.linalg.norm(x) < 1)  # HIT concretization

    def step(x):
        return x * 2 if is_small(x) else x

    return step, (jnp.ones(3),)


def mask():
    def positive(x):
        return x[x > 0]  # HIT boolean-mask

    return positive, (jnp.arange(4.0),)


def nonzero():
    def indices(x):
        return jnp.nonzero(x)[0]  # HIT boolean-mask

    return indices, (jnp.arange(4.0),)


def where_with_one_argument():
    def indices(x):
        (where,) = jnp.where(x > 1)  # HIT boolean-mask
        return x[where]

    return indices, (jnp.arange(4.0),)


def unique():
    def kinds(x):
        return jnp.unique(x).size  # HIT boolean-mask

    return kinds, (jnp.arange(4),)


def unrolled_steps():
    def simulate(x):
        for _ in range(100):  # HIT unrolled-loop
            x = x + 0.01 * jnp.sin(x) - 0.001 * x**2
        return x

    return simulate, (jnp.ones(8),)


def unrolled_with_a_list():
    def rollout(x, controls):
        states = []
        for i in range(64):  # HIT unrolled-loop
            x = jnp.tanh(x + controls[i])
            states.append(x)
        return jnp.stack(states)

    return rollout, (jnp.ones(8), jnp.ones((64, 8)))


def asks_for_float64():
    def f(x):
        return x.astype(jnp.float64) * 2  # HIT truncation

    return f, (jnp.ones(3),)


def asks_for_int64():
    def f(x):
        return x + jnp.zeros(3, dtype="int64")  # HIT truncation

    return f, (jnp.arange(3),)


def float64_argument():
    def f(x):  # HIT truncation
        return x * 2

    return f, (np.array([1e-300, 1.0]),)


def weak_carry():
    def step(state, x):  # HIT weak-type
        return state + x.mean(), x * state

    return step, (0.0, jnp.ones(3))


def weak_counter():
    def update(carry):  # HIT weak-type
        count, total = carry
        return jnp.asarray(count + 1, jnp.int32), total * 2

    return update, ((0, jnp.ones(3)),)


def index_past_the_end():
    def last(x):
        return x[10]  # HIT out-of-bounds

    return last, (jnp.arange(10.0),)


def write_past_the_end():
    def f(x):
        return x.at[5].set(1.0)  # HIT out-of-bounds

    return f, (jnp.zeros(5),)


def take_past_the_end():
    def f(x):
        return jnp.take(x, jnp.array([0, 7]))  # HIT out-of-bounds

    return f, (jnp.zeros(5),)


def where_around_log():
    def safe_log(x):
        return jnp.where(x > 0, jnp.log(x), 0.0).sum()  # HIT nan-gradient

    return jax.grad(safe_log), (jnp.array([0.0, 1.0]),)


def where_around_sqrt():
    def safe_norm(x):
        s = jnp.sum(x**2)
        return jnp.where(s > 0, jnp.sqrt(s), 0.0)  # HIT nan-gradient

    return jax.value_and_grad(safe_norm), (jnp.zeros(3),)


def where_around_division():
    def ratio(x, y):
        return jnp.where(y != 0, x / y, 0.0).sum()  # HIT nan-gradient

    return jax.grad(ratio, argnums=1), (jnp.ones(3), jnp.zeros(3))


def key_used_twice():
    def sample(key):
        a = jax.random.normal(key, (3,))
        b = jax.random.uniform(key, (3,))  # HIT key-reuse
        return a + b

    return sample, (jax.random.key(0),)


def raw_key_used_twice():
    def sample(key):
        a = jax.random.normal(key, (3,))
        b = jax.random.normal(key, (3,))  # HIT key-reuse
        return a - b

    return sample, (jax.random.PRNGKey(0),)


def key_used_after_split():
    def sample(key):
        left, _ = jax.random.split(key)
        return jax.random.normal(key, (3,)) + jax.random.normal(left, (3,))  # HIT key-reuse

    return sample, (jax.random.key(0),)


def key_made_inside():
    def dropout(x):
        key = jax.random.key(0)  # HIT key-reuse
        return x * jax.random.bernoulli(key, 0.5, x.shape)

    return dropout, (jnp.ones(3),)


def key_constant_in_a_loop():
    def walk(key, x):
        def body(x, _):
            return x + jax.random.normal(key, x.shape), None  # HIT key-reuse

        return jax.lax.scan(body, x, length=5)[0]

    return walk, (jax.random.key(0), jnp.ones(3))


def donated_without_use():
    @partial(jax.jit, donate_argnums=0)
    def mean(x):  # HIT unusable-donation
        return x.mean()

    return mean, (jnp.ones((8, 8)),)


def donated_with_another_type():
    @partial(jax.jit, donate_argnames="x")
    def to_int(x):  # HIT unusable-donation
        return x.astype(jnp.int8)

    return to_int, (jnp.ones((8, 8)),)


def donated_twice():
    @partial(jax.jit, donate_argnums=0)
    def add(x, y):  # HIT donated-reuse
        return x + y

    x = jnp.ones(8)
    return add, (x, x)


def donated_and_captured():
    buffer = jnp.ones(8)

    @partial(jax.jit, donate_argnums=0)
    def add(x):  # HIT donated-reuse
        return x + buffer

    return add, (buffer,)


def unused_argument():
    def f(x, mask):  # HIT dead-code
        return x * 2

    return f, (jnp.ones(3), jnp.ones(3))


def unused_result():
    def f(x, w):
        logits = x @ w  # noqa: F841  # HIT dead-code
        return x * 2, w.sum()

    return f, (jnp.ones((64, 64)), jnp.ones((64, 64)))


def ten_scalars():
    def total(xs):  # HIT list-of-scalars
        return sum(xs)

    return total, ([float(i) for i in range(40)],)


def nested_scalars():
    def matrix(rows):  # HIT list-of-scalars
        return jnp.array(rows).sum()

    return matrix, ([[float(i + j) for i in range(8)] for j in range(8)],)


def symbolic_size_compared():
    from explorer import InputInfo, NamedDimension

    def squeeze(x):
        if x.shape[0] == 1:  # HIT symbolic-equality
            return x[0]
        return x.sum(0)

    return squeeze, (InputInfo((NamedDimension("batch", 1, 8, 64), 4), jnp.float32),)


def symbolic_sizes_compared():
    from explorer import InputInfo, NamedDimension

    def join(x, y):
        if x.shape[0] == y.shape[0]:  # HIT symbolic-equality
            return x + y
        return jnp.concatenate([x, y])

    a, b = (InputInfo((NamedDimension(name, 1, 8, 64),), jnp.float32) for name in ("a", "b"))
    return join, (a, b)
