"""Messages along the edges of a graph: adding them up where they arrive, a row for each edge."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def full(params, nodes, edges, senders, receivers):
    h = jnp.tanh(nodes @ params["embed"])  # without: nodes
    scores = h @ params["score"]  # without: h[:, 0]
    received = jax.ops.segment_sum(edges, receivers, 8192)  # hot; without: edges[:8192]
    gates = jax.nn.sigmoid(scores[senders] + scores[receivers])  # without: scores[senders]
    weights = jax.ops.segment_sum(gates, receivers, 8192)  # without: jax.lax.optimization_barrier(gates)[:8192]
    received = received * weights[:, None]  # without: received
    mixed = jnp.concatenate([h, received], -1) @ params["mix"]  # without: received + h
    norm = jnp.sqrt(jnp.sum(mixed**2, -1, keepdims=True) + 1e-6)  # without: mixed[:, :1]
    return mixed / norm  # without: mixed


def arguments():
    random = np.random.default_rng(0)
    sizes = {"embed": (32, 32), "score": (32,), "mix": (64, 32)}
    params = {name: jnp.asarray(random.normal(size=size) / 6, jnp.float32) for name, size in sizes.items()}
    nodes, edges = (jnp.asarray(random.normal(size=(count, 32)), jnp.float32) for count in (8192, 8192 * 16))
    ends = (jnp.asarray(random.integers(0, 8192, 8192 * 16), jnp.int32) for _ in range(2))
    return params, nodes, edges, *ends
