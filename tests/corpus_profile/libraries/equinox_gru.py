"""A recurrent network of equinox in a scan, and what is read from all its states."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax


class Reader(eqx.Module):
    cell: eqx.nn.GRUCell
    head: eqx.nn.Linear

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.cell, self.head = eqx.nn.GRUCell(32, 256, key=first), eqx.nn.Linear(256, 8, key=second)


@eqx.filter_jit
def full(model, sequences):
    def step(hidden, x):
        hidden = jax.vmap(model.cell)(x, hidden)  # hot; without: hidden + x.sum(-1, keepdims=True)
        return hidden, jax.vmap(model.head)(hidden)  # without: hidden, hidden[:, :8]

    _, outputs = lax.scan(step, jnp.zeros((64, 256)), sequences)
    return jax.nn.softmax(outputs)  # without: outputs


def arguments():
    return Reader(jax.random.key(0)), jax.random.normal(jax.random.key(1), (48, 64, 32))
