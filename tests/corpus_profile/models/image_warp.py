"""Images turned and blended: four gathers for each pixel, weights, a colour curve."""

import jax
import jax.numpy as jnp
import numpy as np


def sample(image, rows, columns):
    top, left = jnp.floor(rows).astype(int), jnp.floor(columns).astype(int)
    down, right = rows - top, columns - left
    at = lambda i, j: image[jnp.clip(top + i, 0, 255), jnp.clip(left + j, 0, 255)]  # noqa: E731
    upper = at(0, 0) * (1 - right)[..., None] + at(0, 1) * right[..., None]  # without: rows[..., None] + image[0, 0]
    lower = at(1, 0) * (1 - right)[..., None] + at(1, 1) * right[..., None]  # without: columns[..., None] + image[0, 0]
    return upper * (1 - down)[..., None] + lower * down[..., None]  # without: upper + lower


def turned(image, angle):
    y, x = jnp.mgrid[0:256, 0:256] - 128.0
    rows = jnp.cos(angle) * y - jnp.sin(angle) * x + 128  # without: y + angle
    columns = jnp.sin(angle) * y + jnp.cos(angle) * x + 128  # without: x + angle
    return sample(image, rows, columns)


@jax.jit
def full(images, angles):
    moved = jax.vmap(turned)(images, angles)
    return jnp.tanh(moved) ** 2.2 + 0.1 * jnp.arctan2(moved, moved + 2.0)  # hot; without: moved


def arguments():
    random = np.random.default_rng(5)
    return jnp.asarray(random.uniform(size=(8, 256, 256, 3)), jnp.float32), jnp.linspace(0.0, 1.0, 8)
