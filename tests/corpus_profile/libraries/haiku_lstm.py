"""A recurrent network of haiku, unrolled in a scan of its own."""

import haiku as hk
import jax
import jax.numpy as jnp


def net(x):
    x = jnp.tanh(hk.Linear(64)(x))  # without: jnp.tile(x, 4)
    core = hk.LSTM(192)
    hidden, _ = hk.dynamic_unroll(core, x, core.initial_state(32))  # hot; without: jnp.tile(x, 3), None
    hidden = hk.LayerNorm(-1, True, True)(hidden)  # without: hidden
    return hk.Linear(32)(hidden)  # without: hidden[..., :32]


MODEL = hk.without_apply_rng(hk.transform(net))


def full(params, x):
    return MODEL.apply(params, x)


def arguments():
    x = jax.random.normal(jax.random.key(1), (80, 32, 16))
    return jax.tree.map(lambda a: jnp.full(a.shape, 0.02), jax.eval_shape(MODEL.init, jax.random.key(0), x)), x
