"""A network over a graph in jraph: an update of each edge, and of each node from what arrives."""

import jax
import jax.numpy as jnp
import jraph

KEYS = jax.random.split(jax.random.key(0), 6)


def full(edge_weights, node_weights, nodes, edges, senders, receivers):
    def of_edges(edges, sent, received, _):
        together = jnp.concatenate([edges, sent, received], -1)  # without: jnp.tile(edges, 3)
        hidden = together @ edge_weights  # hot; without: together[:, :64]
        return jax.nn.relu(hidden)  # without: hidden

    def of_nodes(nodes, sent, received, _):
        return jnp.tanh((nodes + received) @ node_weights)  # without: nodes + received

    count = jnp.asarray([len(nodes)]), jnp.asarray([len(edges)])
    graph = jraph.GraphsTuple(nodes, edges, receivers, senders, None, *count)
    changed = jraph.GraphNetwork(of_edges, of_nodes)(graph)
    return changed.nodes, changed.edges.mean(0)


def arguments():
    ends = [jax.random.randint(key, (30_000,), 0, 2000) for key in KEYS[:2]]
    weights = jax.random.normal(KEYS[2], (192, 64)) / 10, jax.random.normal(KEYS[3], (64, 64)) / 8
    return *weights, jax.random.normal(KEYS[4], (2000, 64)), jax.random.normal(KEYS[5], (30_000, 64)), *ends
