"""Public issue threads retold: indices, types, updates, statics, NaN. A line with a pitfall ends in `# HIT rule`."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

X = jnp.arange(1.0, 5.0)


def thread_jax_4383():
    def row(table):
        return table[10, :]  # HIT out-of-bounds

    return row, (jnp.ones((10, 10)),)


def thread_jax_278():
    def thirteenth(x):
        return x[jnp.array([13])]  # HIT out-of-bounds

    return thirteenth, (jnp.arange(10),)


def thread_jax_11277():
    def tenth(r):
        return r[10]  # HIT out-of-bounds

    return tenth, (jnp.ones(3),)


def thread_jax_3774():
    def embedded(vectors):
        return vectors.take(jnp.array([4]), axis=0)  # HIT out-of-bounds

    return embedded, (jnp.ones((3, 3)),)


def thread_jax_14193():
    def taken(x):
        return jnp.take(x, 10)  # HIT out-of-bounds

    return taken, (jnp.arange(5),)


def thread_jax_9839():
    def corner(board):
        return board.at[3, 8].get() + board[8, 3]  # HIT out-of-bounds

    return corner, (jnp.ones((8, 8)),)


def thread_jax_652():
    def matrix():
        return jnp.array([[0, 1], [1, 0]], dtype=np.float64)  # HIT truncation

    return matrix, ()


def thread_jax_1333():
    def ones(x):
        return x + jnp.ones((2, 2), dtype=np.float64)  # HIT truncation

    return ones, (jnp.ones((2, 2)),)


def thread_jax_470():
    def draws(key):
        return jax.random.uniform(key, (4,), dtype="float64")  # HIT truncation

    return draws, (jax.random.key(0),)


def thread_jaxmd_132():
    def exact_sum(x):
        return jnp.sum(x, dtype=jnp.float64)  # HIT truncation

    return exact_sum, (X,)


def thread_jax_8604():
    def powers(x):
        return x / 256 ** np.arange(1, 6)  # HIT truncation, nan-value

    return powers, (jnp.ones(5, jnp.int32),)


def thread_jax_5952():
    def shifted(x):
        return x + (1 << 33)  # HIT truncation

    return shifted, (jnp.arange(3),)


def thread_jax_22688():
    table = np.array([1.0, 2.0**24 + 1])

    def scaled(x):
        return x * table  # HIT truncation

    return scaled, (jnp.ones(2),)


def thread_jax_24315():
    def cleared(x):
        x[0] = 1.0  # HIT argument-mutation
        return x

    return cleared, (X,)


def thread_objax_59():
    def bumped(v):
        v[2:4] += 1  # HIT argument-mutation
        return v

    return bumped, (jnp.arange(10),)


def thread_jax_101():
    def filled(data):
        batch = jnp.zeros((4, 2))
        batch[0:2, :] = data  # HIT argument-mutation
        return batch

    return filled, (jnp.ones((2, 2)),)


def thread_jax_7032():
    def warped(boxes, matrix):
        corners = jnp.ones((8, 3))
        corners[:, :2] = boxes  # HIT argument-mutation
        return corners @ matrix.T

    return warped, (jnp.ones((8, 2)), jnp.eye(3))


def thread_nemos_214():
    def centred(x):
        x -= np.nanmean(x, axis=0)  # HIT concretization
        return x

    return centred, (jnp.ones((4, 2)),)


def thread_jax_7437():
    def grid(x):
        rows, columns = np.indices((3, 3))
        rows += 1
        return jnp.asarray(rows[columns[x]])  # HIT concretization

    return grid, (jnp.array(1),)


def thread_jax_2287():
    def trajectory(x):
        table = jnp.zeros(10)
        for i in range(3):
            x = x * 0.9
            table.at[i].set(x)  # HIT dropped-result
        return table

    return trajectory, (jnp.float32(1.0),)


def thread_jax_7783():
    def overwritten(a, b):
        a.at[jnp.array([1, 2])].set(b)  # HIT dropped-result
        return a

    return overwritten, (jnp.ones(4), -1.0)


def thread_timemachine_672():
    def scaled(params):
        params.at[:, 0].multiply(0.5)  # HIT dropped-result
        params.at[:, 2].multiply(0.5)  # HIT dropped-result
        return params

    return scaled, (jnp.ones((3, 4)),)


def thread_genjax_1179():
    @partial(jax.jit, static_argnums=0)  # HIT unhashable-static
    def first(values, x):
        return values[0] + x

    return first, ([2], 1.0)


def thread_flax_587():
    @partial(jax.jit, static_argnums=(1,))  # HIT unhashable-static
    def create(key, settings):
        return jax.random.normal(key, (settings["width"],))

    return create, (jax.random.key(0), {"width": 8})


def thread_jax_7561():
    @partial(jax.jit, static_argnames=("limits",))  # HIT unhashable-static
    def mesh(x, limits):
        return x * jnp.linspace(*limits, 4)

    return mesh, (X, [-2, 2])


def thread_jax_3701():
    from dataclasses import dataclass

    @dataclass
    class Config:
        width: int

    @partial(jax.jit, static_argnums=1)  # HIT unhashable-static
    def work(x, config):
        return x * config.width

    return work, (X, Config(2))


def thread_flax_2410():
    @partial(jax.jit, static_argnums=1)  # HIT unhashable-static
    def step(x, key):
        return x + 1

    return step, (X, jnp.array([0, 42]))


def thread_jax_2813():
    @partial(jax.jit, static_argnums=(1,))  # HIT unhashable-static
    def scaled(x, table):
        return x * table[0]

    return scaled, (X, np.array([2.0, 3.0]))


def thread_jax_347():
    def total(x):
        length = jnp.sqrt(jnp.sum(x**2, axis=1))
        return jnp.sum(jnp.where(length > 0.5, length, 1.0))  # HIT nan-gradient

    return jax.grad(total), (jnp.array([[1.0, 2], [3, 4], [0, 0]]),)


def thread_jax_5798():
    def root(x):
        return jnp.where(x < 1.0, x, jnp.sqrt(x))  # HIT nan-gradient

    return jax.grad(root), (0.0,)


def thread_jax_1052():
    def angle(a, inside):
        return jnp.sum(jnp.where(inside, 0.0, jnp.arctan2(a, a)))  # HIT nan-gradient

    return jax.grad(angle), (jnp.array([3.0, 0, -5]), jnp.array([False, True, False]))


def thread_jax_654():
    def energy(charge, distance):
        keep = 1 - jnp.eye(3)
        return jnp.sum(jnp.where(keep, charge / distance, 0.0))  # HIT nan-gradient

    return jax.grad(energy, argnums=1), (jnp.ones((3, 3)), jnp.ones((3, 3)) - jnp.eye(3))


def thread_autograd_802():
    def piecewise(x):
        return jnp.where(x >= 0, x, jnp.sqrt(-x))  # HIT nan-gradient

    return jax.grad(piecewise), (1.0,)


def thread_jax_11716():
    def spread(x):
        return jnp.std(x)  # HIT nan-gradient

    return jax.grad(spread), (jnp.array([1.0, 1.0]),)


def thread_jax_21723():
    def squared(x):
        return jnp.linalg.norm(x) ** 2  # HIT nan-gradient

    return jax.grad(squared), (jnp.zeros(2),)


def thread_jax_26248():
    def distance(a, x):
        return jnp.linalg.norm(a * x)  # HIT nan-gradient

    return jax.grad(distance), (1.3, jnp.zeros(2))
