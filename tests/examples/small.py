"""A small function, in a file that is as short as a cell."""

import jax.numpy as jnp


def normalise(x):
    return (x - x.mean()) / x.std()


def two_steps(x):
    return jnp.tanh(normalise(x)) + normalise(x * 2)
