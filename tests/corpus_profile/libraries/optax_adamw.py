"""An update of optax over many parameters: clipping and Adam move them all, the loss hardly any."""

import jax
import jax.numpy as jnp
import optax

OPTIMISER = optax.adamw(1e-3)


def full(params, moments, batch):
    grads = jax.tree.map(lambda p: p * batch.mean(), params)  # without: params
    norm = optax.tree.norm(grads)  # hot; without: grads[0][0, 0]
    grads = jax.tree.map(lambda g: g / jnp.maximum(norm, 1.0), grads)  # without: grads
    updates, moments = OPTIMISER.update(grads, moments, params)  # without: grads, moments
    params = optax.apply_updates(params, updates)  # without: updates
    return params, moments


def arguments():
    params = [jnp.full((1000, 1000), 0.1 * (i + 1)) for i in range(3)]
    return params, OPTIMISER.init(params), jnp.ones(64)
