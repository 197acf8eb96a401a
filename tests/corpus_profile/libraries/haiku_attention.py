"""Attention of haiku over a long sequence."""

import haiku as hk
import jax
import jax.numpy as jnp


def net(x):
    h = hk.LayerNorm(-1, True, True)(x)  # without: x
    init = hk.initializers.VarianceScaling(1.0)
    h = hk.MultiHeadAttention(4, 16, w_init=init)(h, h, h)  # hot; without: h
    h = x + h  # without: h
    h = jax.nn.gelu(hk.Linear(256)(h))  # without: jnp.tile(h, 4)
    return hk.Linear(64)(h)  # without: h[..., :64]


MODEL = hk.without_apply_rng(hk.transform(net))


def full(params, x):
    return MODEL.apply(params, x)


def arguments():
    x = jax.random.normal(jax.random.key(1), (2, 768, 64))
    return jax.tree.map(lambda a: jnp.full(a.shape, 0.02), jax.eval_shape(MODEL.init, jax.random.key(0), x)), x
