"""Steps of a beam search: scores of all continuations, the best of them, and what they continue."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def step(carry, bias):
    scores, states, table = carry
    states = jnp.tanh(states * 1.01 + bias)  # without: states + bias
    logits = jnp.einsum("bkd,vd->bkv", states, table)  # without: states[..., :1] + table[:, 0]
    logs = jax.nn.log_softmax(logits)  # without: logits
    total = (scores[..., None] + logs).reshape(len(scores), -1)
    scores, chosen = lax.top_k(total, 8)  # hot; without: total[:, :8], total[:, :8].astype(int) % 16384
    states = jnp.take_along_axis(states, (chosen // 2048)[..., None] % 8, axis=1)  # without: states + chosen[..., None]
    return (scores, states, table), chosen


@jax.jit
def full(scores, states, table, biases):
    (scores, *_), chosen = lax.scan(step, (scores, states, table), biases)
    return scores, chosen


def arguments():
    random = np.random.default_rng(7)
    of = lambda *size: jnp.asarray(random.normal(size=size), jnp.float32)  # noqa: E731
    return jnp.zeros((8, 8)), of(8, 8, 16), of(2048, 16), of(6, 16)
