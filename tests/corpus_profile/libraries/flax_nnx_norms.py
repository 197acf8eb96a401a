"""Layers of flax.nnx that move much and compute little: a normalisation over groups before a convolution of 1×1."""

import jax
from flax import nnx


class Block(nnx.Module):
    def __init__(self, rngs):
        self.norm = nnx.GroupNorm(32, num_groups=8, rngs=rngs)
        self.wide = nnx.Conv(32, 32, (3, 3), rngs=rngs)
        self.narrow = nnx.Conv(32, 32, (1, 1), rngs=rngs)

    def __call__(self, x):
        y = self.norm(x)  # without: x
        y = jax.nn.silu(y)  # without: y
        y = self.wide(y)  # hot; without: y
        y = self.narrow(y)  # without: y
        return x + y  # without: y


GRAPH, STATE = nnx.split(Block(nnx.Rngs(0)))


def full(state, x):
    return nnx.merge(GRAPH, state)(x)


def arguments():
    return STATE, jax.random.normal(jax.random.key(1), (8, 48, 48, 32))
