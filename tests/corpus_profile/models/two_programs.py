"""A step of two jitted functions: the time is in a line of the second, in a library that the compiler only calls."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def features(images):
    centred = images - images.mean((1, 2), keepdims=True)  # without: images
    edges = jnp.abs(centred[:, 1:, 1:] - centred[:, :-1, :-1])  # without: centred[:, 1:, 1:]
    return edges.reshape(len(edges), -1)


@jax.jit
def principal(vectors):
    centred = vectors - vectors.mean(0)  # without: vectors
    covariance = centred.T @ centred / len(centred)  # without: centred[: centred.shape[1]] + centred.max(0)
    _, basis = jnp.linalg.eigh(covariance)  # hot; without: 0, covariance
    projected = centred @ basis[:, -8:]  # without: centred[:, :8] + basis[0, 0]
    return jnp.tanh(projected)  # without: projected


def full(images):
    return principal(features(images))


def arguments():
    return (jnp.asarray(np.random.default_rng(0).uniform(size=(1024, 17, 17)), jnp.float32),)
