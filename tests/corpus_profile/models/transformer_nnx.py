"""A transformer block of flax.nnx: its gated perceptron, wider than its attention."""

import jax.numpy as jnp
import numpy as np
from flax import nnx


class Block(nnx.Module):
    def __init__(self, size, heads, wide, rngs):
        self.heads = heads
        self.qkv = nnx.Linear(size, 3 * size, rngs=rngs)
        self.out = nnx.Linear(size, size, rngs=rngs)
        self.up = nnx.Linear(size, wide, rngs=rngs)
        self.gate = nnx.Linear(size, wide, rngs=rngs)
        self.down = nnx.Linear(wide, size, rngs=rngs)
        self.norm = nnx.LayerNorm(size, rngs=rngs)

    def attend(self, x):
        qkv = self.qkv(x)  # without: jnp.concatenate([x, x, x], -1)
        q, k, v = jnp.split(qkv.reshape(*x.shape[:2], self.heads, -1), 3, axis=-1)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k)  # without: jnp.einsum("bqhd,bkhd->bhqk", q[..., :1], k[..., :1])
        weights = nnx.softmax(scores)  # without: scores
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v)  # without: v + weights.sum(-1).swapaxes(1, 2)[..., None]
        return self.out(mixed.reshape(x.shape))  # without: mixed.reshape(x.shape)

    def __call__(self, x):
        x = x + self.attend(self.norm(x))
        h = nnx.gelu(self.gate(x)) * self.up(x)  # hot; without: jnp.tile(x, 16)
        return x + self.down(h)  # without: x + h.reshape(*x.shape, -1).max(-1)


@nnx.jit
def full(block, x):
    return block(x)


def arguments():
    block = Block(128, 4, 2048, nnx.Rngs(0))
    return block, jnp.asarray(np.random.default_rng(0).normal(size=(8, 128, 128)), jnp.float32)
