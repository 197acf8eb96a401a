"""A Kalman filter for many tracks, one scan over time: small matrices in a batch, in the body of a loop."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def update(carry, seen):
    mean, spread, motion, noise = carry
    moved = jnp.einsum("ij,bj->bi", motion, mean)  # without: mean
    spreads = jnp.einsum("ij,bjk,lk->bil", motion, spread, motion) + noise  # hot; without: spread + noise
    size = jnp.trace(spreads[:, :2, :2], axis1=1, axis2=2)  # without: spreads[:, 0, 0]
    gain = spreads[:, :, :2] / (size[:, None, None] + 1.0)  # without: spreads[:, :, :2]
    mean = moved + jnp.einsum("bij,bj->bi", gain, seen - moved[:, :2])  # without: moved + gain[:, :, 0]
    spread = spreads - jnp.einsum("bij,bjk->bik", gain, spreads[:, :2, :])  # without: spreads + gain[:, :, :1]
    return (mean, spread, motion, noise), mean[:, 0]


@jax.jit
def full(mean, spread, motion, noise, observations):
    (mean, *_), track = lax.scan(update, (mean, spread, motion, noise), observations)
    return mean, track


def arguments():
    random = np.random.default_rng(4)
    motion = jnp.eye(8) + jnp.eye(8, k=4) * 0.1
    observations = jnp.asarray(random.normal(size=(20, 512, 2)), jnp.float32)
    return jnp.zeros((512, 8)), jnp.tile(jnp.eye(8), (512, 1, 1)), motion, 0.1 * jnp.eye(8), observations
