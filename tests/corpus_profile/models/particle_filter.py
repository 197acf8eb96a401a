"""A particle filter: weights, their running sum, and the search for who survives."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def full(key, particles, observation):
    key, noisy = jax.random.split(key)
    noise = jax.random.normal(noisy, particles.shape)  # without: particles
    moved = particles + 0.1 * noise  # without: noise
    errors = jnp.sum((moved - observation) ** 2, axis=-1)  # without: moved[:, 0]
    weights = jax.nn.softmax(-errors)  # without: errors
    edges = jnp.cumsum(weights)  # without: weights
    positions = (jnp.arange(len(edges)) + jax.random.uniform(key)) / len(edges)
    survivors = jnp.searchsorted(edges, positions)  # hot; without: (edges + positions).astype(int)
    return moved[survivors], jnp.sum(weights**2)


def arguments():
    particles = np.random.default_rng(0).normal(size=(200_000, 2))
    return jax.random.key(0), jnp.asarray(particles, jnp.float32), jnp.asarray([0.3, -0.2])
