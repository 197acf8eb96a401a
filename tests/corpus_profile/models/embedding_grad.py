"""Word vectors: cheap to look up, dear to learn, for the gradient adds rows up where they came from."""

import jax
import jax.numpy as jnp
import numpy as np


def loss(params, tokens, targets):
    vectors = params["table"][tokens]  # hot; without: jnp.broadcast_to(params["table"][:1, None], (*tokens.shape, 64))
    h = jnp.tanh(vectors.mean(1) @ params["hidden"])  # without: vectors.mean(1)
    logits = h @ params["out"]  # without: h.reshape(len(h), 16, -1).max(-1)
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), targets[:, None], 1)  # without: logits
    return -chosen.mean()


@jax.jit
def full(params, tokens, targets):
    grads = jax.grad(loss)(params, tokens, targets)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)  # without: grads


def arguments():
    random = np.random.default_rng(0)
    sizes = {"table": (20_000, 64), "hidden": (64, 64), "out": (64, 16)}
    params = {name: jnp.asarray(random.normal(size=size) / 8, jnp.float32) for name, size in sizes.items()}
    tokens = jnp.asarray(random.integers(0, 20_000, (2048, 32)), jnp.int32)
    return params, tokens, jnp.asarray(random.integers(0, 16, 2048), jnp.int32)
