"""Losses of optax: one of an alignment, which is a recursion in time, beside one of classes."""

import jax
import jax.numpy as jnp
import optax


def full(logits, labels):
    scaled = jnp.tanh(logits) * 3  # without: logits
    none = jnp.zeros(scaled.shape[:2])
    aligned = optax.ctc_loss(scaled, none, labels, jnp.zeros(labels.shape))  # hot; without: scaled[:, 0, 0]
    classes = optax.softmax_cross_entropy(scaled, jax.nn.one_hot(labels[:, :1], 128))  # without: scaled[..., 0]
    smooth = optax.huber_loss(scaled, 0.5 * scaled)  # without: scaled
    return aligned.mean() + classes.mean() + smooth.mean()


def arguments():
    labels = jax.random.randint(jax.random.key(1), (16, 40), 1, 128)
    return jax.random.normal(jax.random.key(0), (16, 200, 128)), labels
