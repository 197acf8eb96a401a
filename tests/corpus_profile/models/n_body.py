"""Bodies that repel each other, two vmaps deep and once differentiated: in a kernel of many lines, the power."""

import jax
import jax.numpy as jnp
import numpy as np


def potential(here, there, charge):
    towards = there - here
    squared = jnp.sum(towards**2) + 1e-2  # without: towards[0] + towards[1] + 3
    distance = jnp.sqrt(squared)  # without: squared
    repelled = squared**-1.3 + 0.3 * squared**-0.7  # hot; without: squared
    attracted = charge / distance  # without: distance
    return repelled - attracted  # without: repelled + attracted


def energy(positions, charges):
    pairs = jax.vmap(jax.vmap(potential, (None, 0, 0)), (0, None, None))
    return jnp.sum(pairs(positions, positions, charges))


@jax.jit
def full(positions, velocities, charges):
    forces = -jax.grad(energy)(positions, charges)
    velocities = velocities + 1e-3 * forces  # without: forces
    kinetic = jnp.sum(velocities**2)  # without: velocities[0, 0]
    return positions + 1e-3 * velocities, velocities, kinetic


def arguments():
    random = np.random.default_rng(0)
    positions, velocities = (jnp.asarray(random.normal(size=(1024, 2)), jnp.float32) for _ in range(2))
    return positions, velocities, jnp.ones(1024)
