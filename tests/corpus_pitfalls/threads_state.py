"""Public issue threads retold: what is written, kept and read outside. A line with a pitfall ends in `# HIT rule`."""

import functools
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

X = jnp.arange(1.0, 5.0)
latest = None
stream = jax.random.key(3)
memory = []


def thread_jax_3086():
    def step(y):
        global latest
        latest = y  # HIT leaked-tracer
        return y + 2

    return step, (7,)


def thread_jax_5492():
    kept = []

    def step(x):
        kept.append(x)  # HIT leaked-tracer
        return x

    return jax.jit(step), (3.0,)


def thread_jax_4312():
    def start():
        global stream
        stream, subkey = jax.random.split(stream)  # HIT leaked-tracer
        return jax.random.normal(subkey, ())

    return start, ()


def thread_jax_13022():
    class Store:
        def __init__(self, table):
            self.table = table

    store = Store({})

    def sketch(x):
        store.table["hi"] = [x * 2]  # HIT leaked-tracer
        return x

    return jax.vmap(sketch), (jnp.arange(3),)


def thread_jax_38460():
    pending = []

    def step(x):
        pending.append(x)  # HIT leaked-tracer
        return jnp.concatenate([x, x])

    return step, (jnp.ones(1),)


def thread_jaxley_74():
    class Network:
        def __init__(self):
            self.inputs = jnp.zeros(3)

        def simulate(self, image):
            self.inputs = self.inputs + image  # HIT leaked-tracer
            return self.inputs.sum()

    return Network().simulate, (jnp.ones(3),)


def thread_haiku_214():
    parameters = {}

    def linear(x):
        if "w" not in parameters:
            parameters["w"] = jnp.ones((4, 4)) * x.mean()  # HIT leaked-tracer
        return x @ parameters["w"]

    def forward(xs):
        return lax.scan(lambda carry, x: (carry, linear(x)), 0, xs)

    return forward, (jnp.ones((2, 4)),)


def thread_distrax_64():
    class Normal:
        def __init__(self, scale):
            self.scale = scale
            self.log_scale = None

        def log_prob(self, x):
            if self.log_scale is None:
                self.log_scale = jnp.log(self.scale) + 0 * x  # HIT leaked-tracer
            return -(x**2) - self.log_scale

    normal = Normal(2.0)
    return (lambda xs: lax.scan(lambda c, x: (c, normal.log_prob(x)), 0, xs)), (X,)


def thread_numpyro_2000():
    @functools.lru_cache
    def grid(n):
        return jnp.linspace(0.0, 1.0, n)

    def integrate(x):
        return (x * grid(4)).sum()  # HIT leaked-tracer

    return integrate, (X,)


def thread_jax_2884():
    @functools.cache
    def basis(size):
        return jnp.eye(size) * 2

    def project(x):
        return basis(x.shape[0]) @ x  # HIT leaked-tracer

    return project, (X,)


def thread_jax_20082():
    class Source:
        def __init__(self, key):
            self.key = key

        def draw(self):
            self.key, subkey = jax.random.split(self.key)  # HIT leaked-tracer
            return jax.random.normal(subkey)

    return Source(jax.random.key(0)).draw, ()


def thread_jax_1708():
    counts = [0]

    def body(value):
        counts[0] += 1  # HIT state-write
        return value + 1

    return (lambda x: lax.while_loop(lambda j: j < 10, body, x)), (0,)


def thread_jax_27315():
    calls = 0

    def outer(x):
        @jax.jit
        def inner(y):
            nonlocal calls
            calls += 1  # HIT state-write
            return y * 2

        return inner(x)

    return outer, (X,)


def thread_jax_20732():
    class Counter:
        def __init__(self):
            self.n = 0

        def count(self):
            self.n += 1  # HIT state-write
            return jnp.float32(self.n)

    return Counter().count, ()


def thread_jax_1426():
    a = 10

    def loss(value):
        return jnp.sum(value**2) * a  # HIT stale-closure

    def later():
        nonlocal a
        a = 20

    del later
    return jax.jit(jax.grad(loss)), (X,)


def thread_desc_310():
    class Objective:
        def __init__(self):
            self.weight = 1.0

        def update(self, weight):
            self.weight = weight

        def compute(self, x):
            return jnp.sum(x**2) * self.weight  # HIT stale-closure

    return Objective().compute, (X,)


def thread_diffuco_13():
    class Model:
        def __init__(self):
            self.a = 2.0

        @partial(jax.jit, static_argnums=0)  # HIT jit-on-method
        def scaled(self, x):
            return self.a * x  # HIT stale-closure

        def grow(self):
            self.a += 1

    return Model().scaled, (X,)


def thread_jax_17074():
    class Solver:
        def __init__(self, lu):
            self.lu = lu

        @partial(jax.jit, static_argnums=(0,))  # HIT jit-on-method
        def solve(self, rhs):
            return jax.scipy.linalg.lu_solve(self.lu, rhs)

    return Solver(jax.scipy.linalg.lu_factor(jnp.eye(3))).solve, (jnp.ones(3),)


def thread_jax_3567():
    batches = iter([1.0, 2.0, 3.0])

    def epoch(x):
        def body(_, x):
            return x + next(batches)  # HIT iterator

        return lax.fori_loop(0, 3, body, x)

    return epoch, (0.0,)
