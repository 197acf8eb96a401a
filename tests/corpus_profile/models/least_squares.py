"""Features of a signal, whitened by a QR, and a ridge on top."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def features(times, values):
    waves = jnp.sin(times[:, None] * jnp.arange(1, 193))  # without: jnp.broadcast_to(times[:, None], (4096, 192))
    return waves * values[:, None]  # without: waves


@jax.jit
def full(times, values):
    design = features(times, values) + 0.01 * jnp.eye(4096, 192)
    basis, triangle = jnp.linalg.qr(design)  # hot; without: design, design[:192]
    projected = basis.T @ values  # without: basis[0] + values[0]
    ridge = triangle.T @ triangle + jnp.eye(192)  # without: triangle
    solved = jnp.linalg.solve(ridge, projected)  # without: projected + ridge[0]
    return design @ solved  # without: design[:, 0] + solved[0]


def arguments():
    random = np.random.default_rng(8)
    return jnp.linspace(0.0, 20.0, 4096), jnp.asarray(random.normal(size=4096), jnp.float32)
