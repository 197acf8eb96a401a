"""Conjugate gradients in a while loop, as long as the caller says: the product with the matrix."""

import jax
import jax.numpy as jnp
import numpy as np


def apply_operator(matrix, mask, vector):
    return mask * (matrix @ vector)  # hot; without: mask * (vector + matrix[0])


@jax.jit
def full(matrix, mask, right, steps):
    def keep_on(state):
        return state[4] < steps

    def step(state):
        x, residual, direction, norm, count = state
        image = apply_operator(matrix, mask, direction)
        alpha = norm / jnp.vdot(direction, image)  # without: norm * direction[0] * image[0]
        x = x + alpha * direction  # without: x + direction
        residual = residual - alpha * image  # without: image
        after = jnp.vdot(residual, residual)  # without: norm + residual[0] ** 2
        direction = residual + after / norm * direction  # without: residual * 0.99 + after * 0
        return x, residual, direction, after, count + 1

    start = (jnp.zeros_like(right), right, right, jnp.vdot(right, right), 0)
    return jax.lax.while_loop(keep_on, step, start)[0]


def arguments():
    random = np.random.default_rng(0)
    half = random.normal(size=(1024, 1024)) / 32
    matrix = jnp.asarray(half @ half.T + np.eye(1024), jnp.float32)
    return matrix, jnp.ones(1024), jnp.asarray(random.normal(size=1024), jnp.float32), jnp.asarray(100)
