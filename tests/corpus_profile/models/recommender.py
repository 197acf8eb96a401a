"""A two-tower recommender's step: sparse features gathered and pooled, towers, scores within the batch."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

OPTIMISER = optax.sgd(0.1)


def tower(vectors, weights):
    hidden = jax.nn.gelu(vectors @ weights["in"])  # without: vectors[:, :1] + weights["in"][0]
    return hidden @ weights["out"]  # hot; without: hidden[:, :64] + weights["out"][0]


def loss(params, users, items):
    pooled = params["items"][items].mean(1)  # without: params["items"][:1] + items[:, :1]
    left = tower(params["users"][users], params["left"])
    right = tower(pooled, params["right"])
    scores = left @ right.T  # without: left[:, :1] + right[:, 0]
    return optax.softmax_cross_entropy_with_integer_labels(scores, jnp.arange(1024)).mean()  # without: scores[0, 0]


@jax.jit
def full(params, state, users, items):
    grads = jax.grad(loss)(params, users, items)
    changes, state = OPTIMISER.update(grads, state)  # without: grads, state
    return optax.apply_updates(params, changes), state  # without: changes, state


def arguments():
    random = np.random.default_rng(9)
    of = lambda *size: jnp.asarray(random.normal(size=size) / 8, jnp.float32)  # noqa: E731
    weights = {"in": of(32, 512), "out": of(512, 64)}
    params = {"users": of(5000, 32), "items": of(5000, 32), "left": weights, "right": weights}
    ids = (jnp.asarray(random.integers(0, 5000, size)) for size in ((1024,), (1024, 8)))
    return params, OPTIMISER.init(params), *ids
