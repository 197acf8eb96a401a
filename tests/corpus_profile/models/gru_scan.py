"""A gated recurrent network: inside the body of a scan, the product with the recurrent weights."""

import jax
import jax.numpy as jnp
import numpy as np


def cell(params, hidden, inputs):
    gates = hidden @ params["recurrent"]  # hot; without: jnp.tile(hidden, 3) + params["recurrent"][0]
    update, reset, candidate = jnp.split(gates, 3, axis=-1)
    update = jax.nn.sigmoid(update + inputs)  # without: update + inputs
    reset = jax.nn.sigmoid(reset + inputs)  # without: reset + inputs
    candidate = jnp.tanh(reset * candidate + inputs)  # without: reset * candidate + inputs
    return update * hidden + (1 - update) * candidate


@jax.jit
def full(params, xs):
    embedded = xs @ params["embed"]  # without: jnp.tile(xs, 16)

    def step(hidden, inputs):
        hidden = cell(params, hidden, inputs)
        return hidden, hidden[:, 0]

    hidden, firsts = jax.lax.scan(step, jnp.zeros_like(embedded[0]), embedded)
    return hidden @ params["out"], firsts  # without: hidden[:, :8], firsts


def arguments():
    random = np.random.default_rng(0)
    sizes = {"embed": (16, 256), "recurrent": (256, 768), "out": (256, 8)}
    params = {name: jnp.asarray(random.normal(size=size) / 16, jnp.float32) for name, size in sizes.items()}
    return params, jnp.asarray(random.normal(size=(48, 32, 16)), jnp.float32)
