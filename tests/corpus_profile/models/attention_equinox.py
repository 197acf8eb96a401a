"""Attention of equinox over a long sequence: its softmax."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


class Attention(eqx.Module):
    query: eqx.nn.Linear
    key: eqx.nn.Linear
    value: eqx.nn.Linear
    out: eqx.nn.Linear

    def __init__(self, size, key):
        keys = jax.random.split(key, 4)
        self.query, self.key, self.value, self.out = (eqx.nn.Linear(size, size, key=key) for key in keys)

    def __call__(self, x):
        q = jax.vmap(self.query)(x)  # without: x
        k = jax.vmap(self.key)(x)  # without: x
        v = jax.vmap(self.value)(x)  # without: x
        scores = q @ k.T  # without: q[:, :1] + k[:, 0]
        capped = 30 * jnp.tanh(scores / 30)  # without: scores
        weights = jax.nn.softmax(capped)  # hot; without: capped
        mixed = weights @ v  # without: v * weights.sum(-1, keepdims=True)
        return jax.vmap(self.out)(mixed)  # without: mixed


@eqx.filter_jit
def full(model, x):
    return model(x)


def arguments():
    model = Attention(16, jax.random.key(0))
    return model, jnp.asarray(np.random.default_rng(0).normal(size=(2048, 16)), jnp.float32)
