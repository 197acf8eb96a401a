"""A training step of flax.nnx with optax: the wide layer, forwards and backwards."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(64, 512, rngs=rngs)
        self.second = nnx.Linear(512, 512, rngs=rngs)
        self.last = nnx.Linear(512, 10, rngs=rngs)

    def __call__(self, x):
        x = jnp.tanh(self.first(x))  # without: jnp.tile(x, 8)
        x = self.second(x)  # hot; without: x
        x = jax.nn.silu(x)  # without: x
        return self.last(x)  # without: x[:, :10]


def full(state, batch, labels):
    def loss(params):
        logits = nnx.merge(GRAPH, params)(batch)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    grads = jax.grad(loss)(state)
    updates, _ = optax.sgd(0.1).update(grads, optax.sgd(0.1).init(state), state)
    return optax.apply_updates(state, updates)


GRAPH, STATE = nnx.split(Net(nnx.Rngs(0)), nnx.Param)


def arguments():
    return STATE, jax.random.normal(jax.random.key(1), (1024, 64)), jnp.arange(1024) % 10
