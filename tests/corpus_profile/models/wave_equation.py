"""A wave in two dimensions: neighbours by rolling, a damping layer, and the energy at every step."""

import jax
import jax.numpy as jnp
from jax import lax


def laplacian(field):
    across = jnp.roll(field, 1, 0) + jnp.roll(field, -1, 0)  # without: field
    along = jnp.roll(field, 1, 1) + jnp.roll(field, -1, 1)  # without: field
    return across + along - 4 * field  # without: across + along


def step(state, _):
    field, speed, medium = state
    curve = medium * laplacian(field)  # without: field + medium
    force = curve - 0.5 * jnp.sin(jnp.sin(field) + field) * jnp.log1p(field**2)  # hot; without: curve
    speed = 0.999 * speed + 0.1 * force  # without: speed + force
    field = field + 0.1 * speed  # without: speed
    energy = jnp.mean(speed**2)  # without: speed[0, 0]
    return (field, speed, medium), energy


@jax.jit
def full(field, speed, medium):
    (field, *_), energies = lax.scan(step, (field, speed, medium), None, length=10)
    return field, energies


def arguments():
    grid = jnp.linspace(-3.0, 3.0, 512)
    bump = jnp.exp(-(grid[:, None] ** 2) - grid**2)
    return bump, jnp.zeros((512, 512)), 1 + 0.1 * bump
