"""Public issue threads that were labelled before lint saw them: what it finds where no rule was written for it.

A line with a pitfall ends in `# HIT rule`; where a thread has the cure as well, it is the clean snippet behind it.
"""

import dataclasses
import functools
import time
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax import lax, random

X = jnp.arange(1.0, 5.0)


def held_out_jax_15817():
    @jax.tree_util.register_pytree_node_class
    class System:
        def __init__(self, x):
            self.x = x

        def tree_flatten(self):
            return (self.x,), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    def set_part(system, index, part):
        system.x = system.x.at[index].set(part.x)  # HIT argument-mutation

    return jax.jit(set_part), (System(jnp.zeros(3)), jnp.arange(2), System(jnp.ones(2)))


def held_out_jax_12773():
    total = [jnp.zeros(4)]

    @jax.jit
    def add(x):
        total[0] = total[0] + x  # HIT leaked-tracer
        return total[0]

    return add, (X,)


def held_out_jax_1567():
    class World:
        def __init__(self, p, v):
            self.p, self.v = p, v

        def step(self, dt):
            a = -9.8
            self.v = self.v + a * dt  # HIT leaked-tracer
            self.p = self.p + self.v * dt  # HIT leaked-tracer

    return World(jnp.zeros(2), jnp.ones(2)).step, (0.01,)


def held_out_jax_3133():
    table = np.eye(3)

    def row(i):
        return table[i, :]  # HIT concretization

    return row, (jnp.array([1, 2]),)


def held_out_brax_321():
    def rotation(angle):
        c, s = jnp.cos(angle), jnp.sin(angle)
        return jnp.ones(2) @ np.stack([np.array([1.0, 0.0]), c * jnp.array([0.0, 1.0]) + s])  # HIT concretization

    return rotation, (0.3,)


def held_out_tutorials_4():
    def augment(key, images):
        for _ in range(2):
            key, _ = random.split(key)  # HIT key-reuse
            turned = random.bernoulli(key, 0.5, (images.shape[0],))
            images = jnp.where(turned[:, None], images[:, ::-1], images)
        return images

    return augment, (random.key(0), jnp.ones((4, 3)))


def held_out_rwmetropolis_1():
    def walk(key, position):
        def step(position, _):
            proposal = position + random.normal(key, position.shape)  # HIT key-reuse
            return proposal, proposal

        return lax.scan(step, position, None, length=10)[1]

    return walk, (random.key(1), jnp.zeros(3))


def held_out_rwmetropolis_1_cured():
    def walk(key, position):
        def step(position, key):
            proposal = position + random.normal(key, position.shape)
            return proposal, proposal

        return lax.scan(step, position, random.split(key, 10))[1]

    return walk, (random.key(1), jnp.zeros(3))


def held_out_flax_1218():
    def epoch(params, batches):
        for batch in batches:
            grads = jax.jit(jax.grad(lambda w: ((batch @ w) ** 2).sum()))(params)  # noqa: B023 # HIT rejit-in-loop
            params = params - 0.1 * grads
        return params

    return epoch, (jnp.ones(3), [jnp.ones((2, 3))] * 3)


def held_out_jax_15761():
    def placed(vec, indices):
        out = jnp.zeros(len(indices))
        for at, j in enumerate(indices):  # HIT unrolled-loop
            out = out.at[at].set(vec[j])  # HIT out-of-bounds
        return out

    return placed, (jnp.ones(20), jnp.arange(80))


def held_out_pcax_3():
    class Fit(NamedTuple):
        components: jax.Array

    @partial(jax.jit, static_argnames="n_components")
    def fit(x, n_components):
        return Fit(x[:, : n_components[0]])

    return lambda x: fit(x, n_components=[2]), (jnp.ones((4, 3)),)  # HIT unhashable-static


def held_out_jax_883():
    @partial(jax.jit, static_argnums=(1,))  # HIT unhashable-static
    def f(x, v):
        return x

    return f, (jnp.ones((10, 10)), jnp.array([1, 2, 3]))


def held_out_jax_6853():
    @partial(jax.jit, static_argnums=1)  # HIT unhashable-static
    def cut(x, d):
        return x[: d["num"]] + d["val"]

    return cut, (jnp.arange(10), {"num": 5, "val": np.arange(5)})


def held_out_jax_6853_without():
    def cut(x, d):
        return x[: d["num"]] + d["val"]  # HIT concretization

    return cut, (jnp.arange(10), {"num": 5, "val": np.arange(5)})


def held_out_jax_7826():
    @struct.dataclass
    class Model:
        c: np.ndarray = struct.field(pytree_node=False)

    def f(model):  # HIT unhashable-static
        return 1.0

    return f, (Model(np.ones(10)),)


def held_out_jax_648():
    def sample(count, key):
        return random.randint(key, (count,), 0, 10)  # HIT concretization

    return sample, (5, random.key(0))


def held_out_jax_1141():
    def noisy(x):
        key = random.PRNGKey(int(time.time()))  # HIT impure-time, key-reuse
        return x + random.normal(key, x.shape)

    return noisy, (X,)


def held_out_jax_13992():
    class Setting:
        def __init__(self, value):
            self.value = value

        def __hash__(self):
            return hash(self.value)

        def __eq__(self, other):
            return isinstance(other, Setting) and self.value == other.value

    @partial(jax.jit, static_argnums=0)
    def add(setting, y):
        return y + setting.value

    return add, (Setting(100), X)


def held_out_reservoirpy_235():
    class Reservoir:
        def __init__(self):
            self.a, self.b = jnp.ones(3), jnp.zeros(3)

        @partial(jax.jit, static_argnums=0)  # HIT jit-on-method
        def step(self, x):
            return jnp.tanh(self.a * x + self.b)

    return Reservoir().step, (jnp.ones(3),)


def held_out_jax_9046():
    def carry(start, xs):
        return lax.scan(lambda c, x: ([c[0] + x, c[1] + c[0]], None), start, xs)[0]

    return carry, ([0.0, 0.0], jnp.ones(5, "float16"))


def held_out_jaxsim_319():
    def safe_norm(array):
        is_zero = jnp.allclose(array, 0.0)
        norm = jnp.linalg.norm(jnp.where(is_zero, jnp.ones_like(array), array))
        return jnp.where(is_zero, 0.0, norm)

    return jax.grad(safe_norm), (jnp.zeros(3),)


def held_out_jaxsim_319_branch():
    def safe_norm(array):
        if jnp.allclose(array, 0.0):  # HIT concretization
            return 0.0
        return jnp.linalg.norm(array)

    return safe_norm, (jnp.ones(3),)


def held_out_jax_3412():
    update = jax.jit(lambda array: array.at[0].set(77), donate_argnums=0)

    def twice(x):
        new = update(x)
        return new, x + 1  # HIT donated-reuse

    return twice, (jnp.array([0.0, 1.0]),)


def held_out_liesel_272():
    @partial(jax.jit, donate_argnums=(0, 1))
    def advance(model, kernel):
        return jax.tree.map(lambda a, b: a + b, model, kernel)

    def both(state):
        return advance(state, state)  # HIT donated-reuse

    return both, ({"w": jnp.ones(3)},)


def held_out_diffuco_jit_attribute():
    class Sampler:
        def __init__(self):
            self.calls = 0

        def draw(self, key):
            self.calls += 1  # HIT state-write
            return random.normal(key, (3,))

    return jax.jit(Sampler().draw), (random.key(0),)


def held_out_equinox_897_timed():
    step = jax.jit(lambda x: x @ x)

    def timed(x):
        start = time.time()
        y = step(x)
        return y, time.time() - start  # HIT async-timing

    return timed, (jnp.ones((64, 64)),)


def held_out_blackjax_656():
    def walk(key):
        found = []
        for step in range(4):
            subkey = random.fold_in(key, step)
            found.append(random.normal(subkey, (3, 5)))
        return jnp.stack(found)

    return walk, (random.key(42),)


def held_out_jax_457():
    @dataclasses.dataclass
    class Counter:
        traces: int = 0

    counter = Counter()

    @functools.wraps(jnp.sin)
    def counted(x):
        counter.traces += 1  # HIT state-write
        return jnp.sin(x)

    return jax.jit(counted), (X,)


def held_out_jax_5905():
    kept = []

    @jax.jit
    def log2(x):
        kept.append(x)  # HIT leaked-tracer
        return jnp.log(x) / jnp.log(2.0)

    return log2, (3.0,)


def held_out_jax_20819():
    shown = []

    def f(x):
        shown.append(repr(x))  # HIT formatted-tracer, state-write
        return x.sum()

    return f, (jnp.ones((3, 3)),)
