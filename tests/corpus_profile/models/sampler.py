"""Nucleus sampling of a language model: the sort over the vocabulary."""

import jax
import jax.numpy as jnp
import numpy as np


def full(key, logits):
    scaled = logits / 0.8  # without: logits
    ordered = jnp.sort(scaled, axis=-1, descending=True)  # hot; without: scaled
    weights = jax.nn.softmax(ordered)  # without: ordered
    mass = jnp.cumsum(weights, axis=-1)  # without: weights
    last = jnp.argmax(mass > 0.9, axis=-1, keepdims=True)  # without: mass[:, :1].astype(int)
    threshold = jnp.take_along_axis(ordered, last, axis=-1)
    kept = jnp.where(scaled >= threshold, scaled, -jnp.inf)  # without: scaled + threshold
    return jax.random.categorical(key, kept)  # without: kept.sum(-1)


def arguments():
    return jax.random.key(0), jnp.asarray(np.random.default_rng(0).normal(size=(4, 16384)), jnp.float32)
