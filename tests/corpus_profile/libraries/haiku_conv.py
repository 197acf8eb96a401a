"""Depthwise and pointwise convolutions of haiku, with a normalisation."""

import haiku as hk
import jax
import jax.numpy as jnp


def net(x):
    x = hk.Conv2D(32, 1, name="first")(x)  # without: jnp.repeat(x, 4, -1)
    x = hk.DepthwiseConv2D(1, (5, 5))(x)  # hot; without: x
    x = jax.nn.relu(hk.LayerNorm((1, 2, 3), True, True)(x))  # without: x
    x = hk.Conv2D(128, (3, 3), name="wide")(x)  # without: jnp.tile(x, 4)
    return hk.Linear(10)(x.mean((1, 2)))  # without: x.mean((1, 2))[:, :10]


MODEL = hk.without_apply_rng(hk.transform(net))


def full(params, x):
    return MODEL.apply(params, x)


def arguments():
    x = jax.random.normal(jax.random.key(1), (8, 40, 40, 8))
    return jax.tree.map(lambda a: jnp.full(a.shape, 0.02), jax.eval_shape(MODEL.init, jax.random.key(0), x)), x
