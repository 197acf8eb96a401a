"""A recurrent language model of flax.linen: its cell runs in a scan, its output layer once."""

import flax.linen as nn
import jax


class Model(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(4000, 96)(tokens)  # without: jax.numpy.broadcast_to(tokens[..., None] * 1e-3, (*tokens.shape, 96))
        h = nn.RNN(nn.LSTMCell(96))(x)  # without: x
        h = nn.LayerNorm()(h)  # without: h
        logits = nn.Dense(4000)(h)  # hot; without: jax.numpy.tile(h, 42)[..., :4000]
        return logits.max(-1)  # without: logits[..., 0]


def full(params, tokens):
    return Model().apply(params, tokens)


def arguments():
    tokens = jax.random.randint(jax.random.key(1), (16, 64), 0, 4000)
    return Model().init(jax.random.key(0), tokens), tokens
