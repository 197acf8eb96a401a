"""What other pages of JAX's documentation warn of, retold: errors, questions, jit, state. Marked with `# HIT rule`."""

import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

X = jnp.arange(1.0, 5.0)
offset = 0.0
registry = []


def errors_axis_is_traced():
    def smallest(x, axis):
        return jnp.min(x, axis)  # HIT concretization

    return smallest, (jnp.ones((2, 2)), 0)


def errors_shape_from_values():
    def positives(x):
        (where,) = jnp.nonzero(x > 0)  # HIT boolean-mask
        return x[where]

    return positives, (X,)


def errors_numpy_function():
    def wave(x):
        return np.sin(x)  # HIT concretization

    return wave, (X,)


def errors_numpy_array_indexed():
    table = np.arange(10)

    def looked_up(i):
        return table[i]  # HIT concretization

    return looked_up, (5,)


def errors_boolean_of_an_array():
    def larger(x, y):
        return max(x, y)  # HIT concretization

    return larger, (1.0, 2.0)


def errors_and_of_arrays():
    def both(x):
        return jnp.where((x > 1) and (x < 3), x, 0.0)  # HIT concretization

    return both, (2.0,)


def errors_list_indexed():
    def at(i):
        return [1, 2, 3][i]  # HIT concretization

    return at, (0,)


def errors_numpy_split_axis():
    def halves(x, axis):
        return np.split(np.arange(4), 2, axis)[0] + x  # HIT concretization

    return halves, (1, 0)


def errors_key_reused():
    def draws(key):
        values = jax.random.normal(key, (5,))
        mask = jax.random.bernoulli(key, shape=(5,))  # HIT key-reuse
        return jnp.where(mask, values, 0)

    return draws, (jax.random.key(0),)


def errors_leak_into_a_list():
    def forward(x):
        registry.append(x + 1)  # HIT leaked-tracer
        return x

    return forward, (1,)


def errors_leak_out_of_a_loop():
    seen = {}

    def walk(x):
        def body(carry, _):
            seen["last"] = carry  # HIT leaked-tracer
            return carry + 1, None

        return lax.scan(body, x, None, length=3)[0]

    return walk, (0.0,)


def faq_jit_changes_behaviour():
    y = 0.0

    def impure(x):
        return x + y  # HIT stale-closure

    def later():
        nonlocal y
        y = 1.0

    del later
    return impure, (2.0,)


def faq_slow_compile():
    def looped(x):
        for i in range(500):  # HIT unrolled-loop
            x = jnp.sin(x) * i
        return x

    return looped, (X,)


def faq_method():
    class Custom:
        def __init__(self, x, mul):
            self.x, self.mul = x, mul

        @jax.jit  # HIT jit-on-method
        def calc(self, y):
            return self.x * y if self.mul else y

    return Custom(2, True).calc, (3,)


def faq_method_static_self():
    class Custom:
        def __init__(self, x, mul):
            self.x, self.mul = x, mul

        @partial(jax.jit, static_argnums=0)  # HIT jit-on-method
        def calc(self, y):
            return self.x * y if self.mul else y

    return Custom(2, True).calc, (3,)


def faq_benchmark():
    product = jax.jit(lambda a: a @ a.T)

    def benchmark(a):
        start = time.perf_counter()
        product(a)
        end = time.perf_counter()  # HIT async-timing
        return end - start

    return benchmark, (jnp.ones((4, 4)),)


def faq_donated_and_used():
    @partial(jax.jit, donate_argnums=1)
    def add(x, y):  # HIT donated-reuse
        return x + y

    return add, (X, X)


def faq_donated_in_vain():
    @partial(jax.jit, donate_argnums=(1, 2))
    def step(data, weights, mask):  # HIT unusable-donation
        return weights * data.mean() * mask.sum()

    return step, (X, 2 * X, jnp.ones((3, 3)))


def faq_where_and_nan():
    def safe_log(x):
        return jnp.where(x > 0.0, jnp.log(x), 0.0)  # HIT nan-gradient

    return jax.grad(safe_log), (0.0,)


def faq_zero_gradient():
    def rank_sum(x):  # HIT dead-code
        return jnp.argsort(jnp.argsort(x)).astype(float) @ jnp.arange(4.0)

    return jax.grad(rank_sum), (X,)


def jit_page_log2():
    seen = []

    def log2(x):
        seen.append(x)  # HIT leaked-tracer
        return jnp.log(x) / jnp.log(2.0)

    return log2, (3.0,)


def jit_page_while():
    def g(x, n):
        i = 0
        while i < n:  # HIT concretization
            i += 1
        return x + i

    return g, (10, 20)


def jit_page_partial_in_a_loop():
    def body(step, i):
        return i + step

    def poorly(x):
        for _ in range(5):
            x = jax.jit(partial(body, 1))(x)  # HIT rejit-in-loop
        return x

    return poorly, (10,)


def thinking_page_reshape():
    def flat(x):
        return x.reshape(jnp.array(x.shape).prod())  # HIT concretization

    return flat, (jnp.ones((2, 3)),)


def random_page_global_state():
    np.random.seed(0)

    def total():
        a, b = np.random.normal(), np.random.normal()  # HIT impure-random
        return jnp.float32(a + b)

    return total, ()


def random_page_split_dropped():
    def draws(key):
        jax.random.split(key)  # HIT dropped-result
        return jax.random.normal(key)

    return draws, (jax.random.key(42),)


def state_page_counter():
    class Counter:
        def __init__(self):
            self.n = 0

        def count(self):
            self.n += 1  # HIT state-write
            return self.n * jnp.ones(())

    return Counter().count, ()


def callbacks_page_in_a_loop():
    def walk(x):
        def body(_, x):
            return jax.pure_callback(np.sin, jax.ShapeDtypeStruct((), np.float32), x)  # HIT host-transfer

        return lax.fori_loop(0, 10, body, x)

    return walk, (1.0,)


def callbacks_page_debug_print():
    def log(x):
        jax.debug.print("x = {}", x)  # HIT slow-path-effect
        return x * 2

    return log, (X,)


def dispatch_page_transfer():
    step = jax.jit(lambda x: x @ x)

    def loop(x):
        for _ in range(4):
            x = step(x)
            x.block_until_ready()  # HIT host-transfer
        return x

    return loop, (jnp.eye(3),)


def default_dtypes_page_integers():
    def counted(x):
        return x + np.int64(3_000_000_000)  # HIT truncation

    return counted, (jnp.arange(3),)


def default_dtypes_page_python_integer():
    def counted(x):
        return jnp.int8(1) * x + jnp.array(300).astype(jnp.int8)  # HIT truncation

    return counted, (jnp.ones(3, jnp.int8),)


def promotion_page_weak_type():
    def decayed(rate, x):  # HIT weak-type
        return rate * x.mean(), x * rate

    return decayed, (0.5, X)


def pytrees_page_argument_changed():
    def trained(params):
        params["b"] = params["b"] + 1  # HIT argument-mutation
        return params["w"] * 2

    return trained, ({"w": X, "b": X},)


def internals_page_constants():
    table = jnp.ones((1024, 512))

    def looked_up(i):
        return table[i]  # HIT large-constant

    return looked_up, (3,)
