"""A helper that is called from two places: its line has the time of both."""

import jax
import jax.numpy as jnp
import numpy as np


def activate(x):
    squashed = jnp.sinh(0.1 * x) / jnp.cosh(x)  # hot; without: x
    return squashed + 0.01 * x  # without: squashed


@jax.jit
def full(params, x):
    h = activate(x @ params["first"])  # without: activate(jnp.tile(x, 32))
    centred = h - h.mean(-1, keepdims=True)  # without: h
    y = activate(centred * params["scale"])
    return y @ params["last"]  # without: y.reshape(len(y), 8, -1).max(-1)


def arguments():
    random = np.random.default_rng(0)
    sizes = {"first": (32, 1024), "scale": (1024,), "last": (1024, 8)}
    params = {name: jnp.asarray(random.normal(size=size) / 6, jnp.float32) for name, size in sizes.items()}
    return params, jnp.asarray(random.normal(size=(2048, 32)), jnp.float32)
