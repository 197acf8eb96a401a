"""Snippets that use jit itself in a way that costs. A line with a pitfall ends in `# HIT rule`."""

from functools import partial

import jax
import jax.numpy as jnp


def list_as_a_static():
    @partial(jax.jit, static_argnames="sizes")  # HIT unhashable-static
    def f(x, sizes):
        return [x * size for size in sizes]

    return f, (jnp.ones(3), [1, 2])


def dict_as_a_static():
    @partial(jax.jit, static_argnums=1)  # HIT unhashable-static
    def f(x, config):
        return x * config["scale"]

    return f, (jnp.ones(3), {"scale": 2.0})


def object_as_a_static():
    class Config:
        def __init__(self, scale):
            self.scale = scale

    @partial(jax.jit, static_argnames="config")  # HIT unhashable-static
    def f(x, config):
        return x * config.scale

    return f, (jnp.ones(3), Config(2.0))


def lambda_in_a_loop():
    def train(x):
        for _ in range(3):
            x = jax.jit(lambda y: y * 2)(x)  # HIT rejit-in-loop
        return x

    return train, (jnp.ones(3),)


def partial_in_a_loop():
    def scale(factor, y):
        return y * factor

    def train(x):
        for factor in (1.0, 2.0, 3.0):
            x = jax.jit(partial(scale, factor))(x)  # HIT rejit-in-loop
        return x

    return train, (jnp.ones(3),)


def grad_in_a_loop():
    def loss(w):
        return (w**2).sum()

    def train(w):
        for _ in range(3):
            w = w - 0.1 * jax.jit(jax.grad(loss))(w)  # HIT rejit-in-loop
        return w

    return train, (jnp.ones(3),)


def decorated_method():
    class Layer:
        def __init__(self):
            self.w = jnp.ones((3, 3))

        @jax.jit  # HIT jit-on-method
        def forward(self, x):
            return x @ self.w

    return Layer().forward, (jnp.ones(3),)


def method_with_static_self():
    class Layer:
        def __init__(self):
            self.w = jnp.ones((3, 3))

        @partial(jax.jit, static_argnums=0)  # HIT jit-on-method
        def forward(self, x):
            return x @ self.w

    return Layer().forward, (jnp.ones(3),)
