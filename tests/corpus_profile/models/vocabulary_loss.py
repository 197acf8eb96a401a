"""The loss of a language model's head, and its gradient: products with a large vocabulary."""

import jax
import jax.numpy as jnp
import numpy as np


def loss(table, hidden, targets):
    scaled = hidden * jax.lax.rsqrt((hidden**2).mean(-1, keepdims=True) + 1e-6)  # without: hidden
    logits = scaled @ table.T  # hot; without: jnp.zeros((256, 8192)) + scaled[:, :1]
    normaliser = jax.nn.logsumexp(logits, axis=-1)  # without: logits[:, 0]
    chosen = jnp.take_along_axis(logits, targets[:, None], axis=1)[:, 0]  # without: logits[:, 1]
    return jnp.mean(normaliser - chosen)  # without: normaliser[0] - chosen[0]


@jax.jit
def full(table, hidden, targets):
    value, slope = jax.value_and_grad(loss)(table, hidden, targets)
    return value, table - 0.1 * slope  # without: value, slope


def arguments():
    random = np.random.default_rng(2)
    table, hidden = (jnp.asarray(random.normal(size=(rows, 128)), jnp.float32) for rows in (8192, 256))
    return table, hidden, jnp.asarray(random.integers(0, 8192, 256))
