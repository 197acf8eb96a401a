"""An MLP mixer of equinox: it mixes along both axes, with another width for each."""

import equinox as eqx
import jax
import jax.numpy as jnp


class Mixer(eqx.Module):
    patches: eqx.nn.MLP
    channels: eqx.nn.MLP
    norm: eqx.nn.LayerNorm

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.patches = eqx.nn.MLP(64, 64, 64, 1, key=first)
        self.channels = eqx.nn.MLP(96, 96, 512, 1, key=second)
        self.norm = eqx.nn.LayerNorm((64, 96))

    def __call__(self, x):
        x = self.norm(x)  # without: x
        x = x + jax.vmap(self.patches)(x.T).T  # without: x
        return x + jax.vmap(self.channels)(x)  # hot; without: x


@eqx.filter_jit
def full(model, images):
    return jax.vmap(model)(images)


def arguments():
    return Mixer(jax.random.key(0)), jnp.ones((64, 64, 96))
