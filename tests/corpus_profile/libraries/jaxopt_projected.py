"""Projected gradients of jaxopt onto a simplex, row by row: the projection sorts."""

import jax
from jaxopt import projection


def full(weights, features, targets):
    for _ in range(3):
        error = features @ weights - targets  # without: features[:, :1] + weights[:1] - targets
        gradient = features.T @ error  # without: weights * error[0]
        moved = weights - 1e-3 * gradient  # without: gradient
        weights = jax.vmap(projection.projection_simplex)(moved)  # hot; without: moved
    return weights


def arguments():
    keys = jax.random.split(jax.random.key(0), 3)
    return (
        jax.nn.softmax(jax.random.normal(keys[0], (256, 128))),
        jax.random.normal(keys[1], (1000, 256)),
        jax.random.normal(keys[2], (1000, 128)),
    )
