"""A block of a transformer in flax.linen over short sequences: its wide layers."""

import flax.linen as nn
import jax


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        y = nn.LayerNorm()(x)  # without: x
        y = nn.MultiHeadDotProductAttention(4)(y)  # without: y
        x = x + y  # without: y
        y = nn.Dense(1024)(x)  # without: x.repeat(8, -1)
        y = nn.gelu(y)  # without: y
        return x + nn.Dense(128)(y)  # hot; without: x + y[..., :128]


def full(params, x):
    return Block().apply(params, x)


def arguments():
    x = jax.random.normal(jax.random.key(1), (32, 64, 128))
    return Block().init(jax.random.key(0), x), x
