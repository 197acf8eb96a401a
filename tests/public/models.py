"""Training steps of neural networks, each in the style of its library."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def _normal(*shape: int, seed: int = 0) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def equinox_vit() -> tuple[Any, ...]:
    """Train a vision transformer of two blocks with `eqx.filter_jit`."""
    import equinox as eqx
    import optax

    def block(key):
        norms, keys = (eqx.nn.LayerNorm(64), eqx.nn.LayerNorm(64)), jax.random.split(key)
        attention = eqx.nn.MultiheadAttention(4, 64, key=keys[0])
        return norms, attention, eqx.nn.MLP(64, 64, 128, 1, activation=jax.nn.gelu, key=keys[1])

    def forward(model, image):
        patches, places, blocks, head = model
        x = patches(image).reshape(64, -1).T + places
        for norms, attention, mlp in blocks:
            y = jax.vmap(norms[0])(x)
            x = x + attention(y, y, y)
            x = x + jax.vmap(mlp)(jax.vmap(norms[1])(x))
        return head(x.mean(0))

    keys = jax.random.split(jax.random.key(0), 4)
    patches, head = eqx.nn.Conv2d(3, 64, 4, stride=4, key=keys[0]), eqx.nn.Linear(64, 10, key=keys[1])
    model = (patches, _normal(64, 64), [block(key) for key in keys[2:]], head)
    optimizer = optax.adamw(1e-3)

    @eqx.filter_jit
    def step(model, state, images, labels):
        @eqx.filter_value_and_grad
        def loss(model):
            logits = jax.vmap(forward, in_axes=(None, 0))(model, images)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        value, grads = loss(model)
        updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_array))
        return eqx.apply_updates(model, updates), state, value

    state = optimizer.init(eqx.filter(model, eqx.is_array))
    return step, model, state, _normal(8, 3, 32, 32), jnp.arange(8)


def nnx_transformer() -> tuple[Any, ...]:
    """Train a causal language model of two layers with `nnx.jit`."""
    import optax
    from flax import nnx

    class Block(nnx.Module):
        def __init__(self, rngs):
            self.attention = nnx.MultiHeadAttention(4, 64, decode=False, rngs=rngs)
            self.first, self.second = nnx.LayerNorm(64, rngs=rngs), nnx.LayerNorm(64, rngs=rngs)
            self.up, self.down = nnx.Linear(64, 256, rngs=rngs), nnx.Linear(256, 64, rngs=rngs)
            self.dropout = nnx.Dropout(0.1, rngs=rngs)

        def __call__(self, x):
            x = x + self.attention(self.first(x), mask=nnx.make_causal_mask(x[..., 0]))
            return x + self.dropout(self.down(nnx.gelu(self.up(self.second(x)))))

    rngs = nnx.Rngs(0)
    model = nnx.Sequential(nnx.Embed(256, 64, rngs=rngs), Block(rngs), Block(rngs), nnx.Linear(64, 256, rngs=rngs))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer, tokens):
        @nnx.value_and_grad
        def loss(model):
            return optax.softmax_cross_entropy_with_integer_labels(model(tokens[:, :-1]), tokens[:, 1:]).mean()

        value, grads = loss(model)
        optimizer.update(model, grads)
        return value

    return step, model, optimizer, jnp.arange(4 * 33).reshape(4, 33)


def linen_cnn() -> tuple[Any, ...]:
    """Train a convolutional network with batch statistics in a Flax Linen `TrainState`, donated."""
    import optax
    from flax import linen as nn
    from flax.training.train_state import TrainState

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            for features in (16, 32):
                x = nn.relu(nn.BatchNorm(use_running_average=False)(nn.Conv(features, (3, 3), use_bias=False)(x)))
                x = nn.avg_pool(x, (2, 2), (2, 2))
            return nn.Dense(10)(nn.relu(nn.Dense(64)(x.reshape(len(x), -1))))

    class State(TrainState):
        batch_stats: Any

    net, images = Net(), _normal(16, 28, 28, 1)
    tree = net.init(jax.random.key(0), images)
    optimizer = optax.sgd(0.1, momentum=0.9)
    state = State.create(apply_fn=net.apply, params=tree["params"], batch_stats=tree["batch_stats"], tx=optimizer)

    @partial(jax.jit, donate_argnums=0)
    def step(state, images, labels):
        def loss(params):
            variables = {"params": params, "batch_stats": state.batch_stats}
            logits, new = state.apply_fn(variables, images, mutable=["batch_stats"])
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), new

        (value, new), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
        return state.apply_gradients(grads=grads).replace(batch_stats=new["batch_stats"]), value

    return step, state, images, jnp.arange(16) % 10


def haiku_lstm() -> tuple[Any, ...]:
    """Train a character LSTM with Haiku."""
    import haiku as hk
    import optax

    def forward(tokens):
        core = hk.DeepRNN([hk.Embed(64, 64), hk.LSTM(64), jax.nn.relu, hk.LSTM(64), hk.Linear(64)])
        return hk.dynamic_unroll(core, tokens, core.initial_state(tokens.shape[1]))[0]

    network = hk.without_apply_rng(hk.transform(forward))
    tokens = jnp.arange(33 * 8).reshape(33, 8) % 64
    params = network.init(jax.random.PRNGKey(0), tokens)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3))

    @jax.jit
    def step(params, state, tokens):
        def loss(params):
            return optax.softmax_cross_entropy_with_integer_labels(
                network.apply(params, tokens[:-1]), tokens[1:]
            ).mean()

        value, grads = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(params, updates), state, value

    return step, params, optimizer.init(params), tokens


def jraph_network() -> tuple[Any, ...]:
    """Differentiate a graph network of two rounds of messages."""
    import haiku as hk
    import jraph

    def mlp(*inputs):
        return hk.nets.MLP([32, 32])(jnp.concatenate(inputs, -1))

    def forward(graph):
        for _ in range(2):
            graph = jraph.GraphNetwork(update_edge_fn=mlp, update_node_fn=mlp, update_global_fn=mlp)(graph)
        return graph.globals.sum()

    senders, receivers = np.random.default_rng(0).integers(0, 24, (2, 80))
    counts = {"n_node": jnp.array([10, 14]), "n_edge": jnp.array([40, 40])}
    graph = jraph.GraphsTuple(_normal(24, 8), _normal(80, 4), receivers, senders, jnp.ones((2, 4)), **counts)
    network = hk.without_apply_rng(hk.transform(forward))
    return jax.jit(jax.value_and_grad(network.apply)), network.init(jax.random.PRNGKey(0), graph), graph


def e3nn_convolution() -> tuple[Any, ...]:
    """Differentiate an equivariant tensor product with spherical harmonics."""
    import e3nn_jax as e3nn

    def energy(features, positions, weights):
        senders, receivers = jnp.arange(32), jnp.roll(jnp.arange(32), 1)
        vectors = e3nn.IrrepsArray("1o", positions[receivers] - positions[senders])
        harmonics = e3nn.spherical_harmonics([0, 1, 2], vectors, normalize=True)
        irreps = e3nn.Irreps("8x0e + 8x1o")
        messages = e3nn.tensor_product(e3nn.IrrepsArray(irreps, features)[senders], harmonics)
        scalars = e3nn.scatter_sum(messages, dst=receivers, output_size=32).filter("0e").array
        return jnp.sum(jax.nn.silu(scalars @ weights))

    grad = jax.jit(jax.value_and_grad(energy, argnums=(0, 1, 2)))
    return grad, _normal(32, 32), _normal(32, 3, seed=1), _normal(16, 8, seed=2)


def distrax_flow() -> tuple[Any, ...]:
    """Fit a normalizing flow of spline couplings by maximum likelihood."""
    import distrax

    def log_likelihood(params, x):
        layers = []
        for index, (w, b) in enumerate(params):
            mask = jnp.arange(4) % 2 == index % 2

            def conditioner(x, w=w, b=b):
                return (jnp.tanh(x @ w) @ b).reshape(*x.shape, 25)

            def spline(params):
                return distrax.RationalQuadraticSpline(params, range_min=-3.0, range_max=3.0)

            layers.append(distrax.MaskedCoupling(mask, conditioner, spline))
        base = distrax.MultivariateNormalDiag(jnp.zeros(4), jnp.ones(4))
        return distrax.Transformed(base, distrax.Inverse(distrax.Chain(layers))).log_prob(x).mean()

    params = [(_normal(4, 16, seed=i), _normal(16, 100, seed=i + 9) * 0.1) for i in range(2)]
    return jax.jit(jax.value_and_grad(log_likelihood)), params, _normal(64, 4)


def rlax_actor_critic() -> tuple[Any, ...]:
    """Differentiate an actor-critic loss with V-trace."""
    import rlax

    def loss(params, states, actions, rewards, discounts, behaviour):
        hidden = jax.nn.relu(states @ params["in"])
        logits, values = hidden @ params["policy"], (hidden @ params["value"])[..., 0]

        def one(logits, values, actions, rewards, discounts, behaviour):
            rhos = rlax.categorical_importance_sampling_ratios(logits[:-1], behaviour, actions)
            target = rlax.vtrace_td_error_and_advantage(values[:-1], values[1:], rewards, discounts, rhos)
            weights = jnp.ones_like(rewards)
            policy = rlax.policy_gradient_loss(logits[:-1], actions, target.pg_advantage, weights)
            return policy + 0.5 * jnp.mean(target.errors**2) + 0.01 * rlax.entropy_loss(logits[:-1], weights)

        return jax.vmap(one)(logits, values, actions, rewards, discounts, behaviour).mean()

    params = {"in": _normal(8, 64), "policy": _normal(64, 4), "value": _normal(64, 1)}
    actions = jnp.arange(16 * 20).reshape(16, 20) % 4
    rewards, discounts = _normal(16, 20, seed=2), jnp.full((16, 20), 0.99)
    grad = jax.jit(jax.value_and_grad(loss))
    return grad, params, _normal(16, 21, 8, seed=1), actions, rewards, discounts, _normal(16, 20, 4, seed=3)


def ring_attention() -> tuple[Any, ...]:
    """Differentiate attention over a sequence on four devices: keys and values go around a ring (Liu et al., 2023)."""
    mesh = jax.make_mesh((4,), ("seq",))
    spec = jax.sharding.PartitionSpec(None, "seq", None, None)

    def local(q, k, v):
        ring = [(i, (i + 1) % 4) for i in range(4)]

        def hop(carry, _):
            k, v, total, norm, top = carry
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
            peak = jnp.maximum(top, scores.max(-1))
            weights, scale = jnp.exp(scores - peak[..., None]), jnp.exp(top - peak)
            total = total * scale[..., None] + jnp.einsum("bhqk,bkhd->bhqd", weights, v)
            norm = norm * scale + weights.sum(-1)
            k, v = (jax.lax.ppermute(x, "seq", ring) for x in (k, v))
            return (k, v, total, norm, peak), None

        zero = jnp.moveaxis(q * 0, 1, 2)
        start = (k, v, zero, zero[..., 0], zero[..., 0] - 1e9)
        (_, _, total, norm, _), _ = jax.lax.scan(jax.checkpoint(hop), start, None, length=4)
        return jnp.moveaxis(total / norm[..., None], 1, 2)

    attention = jax.shard_map(local, mesh=mesh, in_specs=(spec,) * 3, out_specs=spec)
    grad = jax.jit(jax.grad(lambda q, k, v: (attention(q, k, v) ** 2).sum(), argnums=(0, 1, 2)))
    return grad, *(jax.device_put(_normal(2, 64, 4, 16, seed=i), jax.NamedSharding(mesh, spec)) for i in range(3))


def selective_scan() -> tuple[Any, ...]:
    """Train a selective state space layer by an associative scan (Mamba, Gu and Dao, 2023)."""

    def layer(params, x):
        delta = jax.nn.softplus(x @ params["delta"])
        b, c = x @ params["b"], x @ params["c"]
        decay = jnp.exp(-delta[..., None] * jnp.exp(params["a"]))
        drive = (delta * x)[..., None] * b[:, :, None, :]

        def combine(left, right):
            return left[0] * right[0], right[0] * left[1] + right[1]

        _, states = jax.lax.associative_scan(combine, (decay, drive), axis=1)
        return x + jnp.einsum("ltdn,ltn->ltd", states, c) * jax.nn.silu(x @ params["gate"])

    def loss(layers, x):
        for params in layers:
            x = layer(params, x)
        return jnp.mean((x[:, 1:] - jnp.roll(x, 1, 1)[:, 1:]) ** 2)

    shapes = {"delta": (32, 32), "b": (32, 8), "c": (32, 8), "a": (32, 8), "gate": (32, 32)}
    layers = [{name: _normal(*shape, seed=i) * 0.1 for name, shape in shapes.items()} for i in range(2)]

    @partial(jax.jit, donate_argnums=0)
    def step(layers, x):
        value, grads = jax.value_and_grad(loss)(layers, x)
        return jax.tree.map(lambda p, g: p - 0.1 * g, layers, grads), value

    return step, layers, _normal(4, 64, 32)
