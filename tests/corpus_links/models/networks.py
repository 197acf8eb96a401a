"""Networks of the libraries that people use, forward and trained."""

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax import nnx


def nnx_transformer():
    class Block(nnx.Module):
        def __init__(self, size, rngs):
            self.before, self.after = nnx.LayerNorm(size, rngs=rngs), nnx.LayerNorm(size, rngs=rngs)
            self.attention = nnx.MultiHeadAttention(2, size, decode=False, rngs=rngs)
            self.wide, self.narrow = nnx.Linear(size, 3 * size, rngs=rngs), nnx.Linear(3 * size, size, rngs=rngs)

        def __call__(self, x):
            x = x + self.attention(self.before(x))
            return x + self.narrow(nnx.gelu(self.wide(self.after(x))))

    class Transformer(nnx.Module):
        def __init__(self, rngs):
            self.embed = nnx.Embed(37, 16, rngs=rngs)
            self.blocks = nnx.List([Block(16, rngs) for _ in range(2)])
            self.head = nnx.Linear(16, 37, rngs=rngs)

        def __call__(self, tokens):
            x = self.embed(tokens)
            for block in self.blocks:
                x = block(x)
            return self.head(x)

    graph, state = nnx.split(Transformer(nnx.Rngs(0)))

    def step(state, tokens):
        def loss(state):
            logits = nnx.merge(graph, state)(tokens[:, :-1])
            return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

        value, grads = jax.value_and_grad(loss)(state)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, state, grads)

    return step, state, jnp.ones((3, 9), jnp.int32)


def nnx_conv_net():
    class ConvNet(nnx.Module):
        def __init__(self, rngs):
            self.first, self.second = nnx.Conv(3, 8, (3, 3), rngs=rngs), nnx.Conv(8, 8, (3, 3), rngs=rngs)
            self.norm = nnx.BatchNorm(8, rngs=rngs)
            self.dropout = nnx.Dropout(0.3, rngs=rngs)
            self.head = nnx.Linear(8 * 4 * 4, 5, rngs=rngs)

        def __call__(self, x):
            x = nnx.max_pool(nnx.relu(self.norm(self.first(x))), (2, 2), (2, 2))
            x = nnx.avg_pool(nnx.relu(self.second(x)), (2, 2), (2, 2))
            return self.head(self.dropout(x.reshape(len(x), -1)))

    graph, state = nnx.split(ConvNet(nnx.Rngs(0)))

    def step(state, images, labels):
        def loss(state):
            model = nnx.merge(graph, state)
            return optax.softmax_cross_entropy_with_integer_labels(model(images), labels).mean(), nnx.state(model)

        (value, after), grads = jax.value_and_grad(loss, has_aux=True, allow_int=True)(state)
        return value, after, grads

    return step, state, jnp.ones((4, 16, 16, 3)), jnp.arange(4)


def linen_conv_net():
    class ConvNet(nn.Module):
        @nn.compact
        def __call__(self, x, train=True):
            x = nn.relu(nn.BatchNorm(use_running_average=not train)(nn.Conv(8, (3, 3))(x)))
            x = nn.max_pool(x, (2, 2), strides=(2, 2))
            x = nn.relu(nn.GroupNorm(2)(nn.Conv(12, (3, 3), strides=2)(x)))
            x = nn.Dropout(0.4, deterministic=not train)(x.mean((1, 2)))
            return nn.Dense(5)(x)

    model = ConvNet()
    images, labels = jnp.ones((4, 12, 12, 3)), jnp.arange(4)
    variables = model.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, images)
    optimizer = optax.adamw(1e-3)

    def step(variables, state, images, labels, key):
        def loss(params):
            logits, new = model.apply(
                {**variables, "params": params}, images, rngs={"dropout": key}, mutable=["batch_stats"]
            )
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), new

        (value, new), grads = jax.value_and_grad(loss, has_aux=True)(variables["params"])
        updates, state = optimizer.update(grads, state, variables["params"])
        return value, {**new, "params": optax.apply_updates(variables["params"], updates)}, state

    return step, variables, optimizer.init(variables["params"]), images, labels, jax.random.key(2)


def linen_lstm():
    class Tagger(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            x = nn.Embed(31, 8)(tokens)
            x = nn.Bidirectional(nn.RNN(nn.OptimizedLSTMCell(6)), nn.RNN(nn.GRUCell(6)))(x)
            return nn.log_softmax(nn.Dense(4)(x))

    model, tokens = Tagger(), jnp.ones((2, 7), jnp.int32)
    params = model.init(jax.random.key(0), tokens)
    return jax.value_and_grad(lambda params, tokens: -model.apply(params, tokens)[..., 1].mean()), params, tokens


def equinox_mlp():
    model = eqx.nn.MLP(6, 3, 12, 2, activation=jax.nn.silu, key=jax.random.key(0))
    params, static = eqx.partition(model, eqx.is_array)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(optax.cosine_decay_schedule(1e-2, 100)))

    def step(params, state, x, y):
        def loss(params):
            return jnp.mean((jax.vmap(eqx.combine(params, static))(x) - y) ** 2)

        value, grads = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(grads, state, params)
        return eqx.apply_updates(params, updates), state, value

    return step, params, optimizer.init(params), jnp.ones((5, 6)), jnp.ones((5, 3))


def equinox_attention():
    class Block(eqx.Module):
        attention: eqx.nn.MultiheadAttention
        norm: eqx.nn.RMSNorm
        rope: eqx.nn.RotaryPositionalEmbedding
        mlp: eqx.nn.MLP

        def __init__(self, key):
            first, second = jax.random.split(key)
            self.attention = eqx.nn.MultiheadAttention(2, 16, key=first)
            self.norm, self.rope = eqx.nn.RMSNorm(16), eqx.nn.RotaryPositionalEmbedding(8)
            self.mlp = eqx.nn.MLP(16, 16, 24, 1, key=second)

        def __call__(self, x):
            def rotate(query, key, value):
                return jax.vmap(self.rope, 1, 1)(query), jax.vmap(self.rope, 1, 1)(key), value

            mask = jnp.tril(jnp.ones((len(x), len(x)), bool))
            h = jax.vmap(self.norm)(x)
            x = x + self.attention(h, h, h, mask, process_heads=rotate)
            return x + jax.vmap(self.mlp)(x)

    blocks = [Block(key) for key in jax.random.split(jax.random.key(0), 2)]
    params, static = eqx.partition(blocks, eqx.is_array)

    def loss(params, x):
        for block in eqx.combine(params, static):
            x = jax.vmap(block)(x)
        return jnp.mean(x**2)

    return jax.value_and_grad(loss), params, jnp.ones((2, 7, 16))


def equinox_gru():
    cell, head = eqx.nn.GRUCell(4, 8, key=jax.random.key(0)), eqx.nn.Linear(8, 1, key=jax.random.key(1))
    params, static = eqx.partition((cell, head), eqx.is_array)

    def loss(params, x, y):
        cell, head = eqx.combine(params, static)

        def one(sequence):
            hidden, _ = jax.lax.scan(lambda h, row: (cell(row, h), None), jnp.zeros(8), sequence)
            return jax.nn.sigmoid(head(hidden))[0]

        predicted = jax.vmap(one)(x)
        return -jnp.mean(y * jnp.log(predicted) + (1 - y) * jnp.log(1 - predicted))

    return jax.value_and_grad(loss), params, jnp.ones((3, 6, 4)), jnp.ones(3)


def mixture_of_experts():
    def layer(params, x):
        scores = jax.nn.softmax(x @ params["gate"])
        best, chosen = jax.lax.top_k(scores, 2)
        weights = jnp.zeros_like(scores).at[jnp.arange(len(x))[:, None], chosen].set(best / best.sum(-1, keepdims=True))
        hidden = jax.nn.gelu(jnp.einsum("td,edh->teh", x, params["up"]))
        balance = (scores.mean(0) * (weights > 0).mean(0)).sum() * scores.shape[-1]
        return jnp.einsum("teh,ehd,te->td", hidden, params["down"], weights), balance

    def loss(params, x):
        balances = []
        for layer_params in params:
            y, balance = layer(layer_params, x)
            x = x + y
            balances.append(balance)
        return jnp.mean(x**2) + 0.01 * sum(balances)

    one = {"gate": jnp.ones((8, 4)), "up": jnp.ones((4, 8, 12)), "down": jnp.ones((4, 12, 8))}
    return jax.value_and_grad(loss), [one, one], jnp.ones((10, 8))


def llama_block():
    def rms(x, gain):
        return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * gain

    def rotate(x, positions):
        angles = positions[:, None] / 10_000 ** (jnp.arange(0, x.shape[-1], 2) / x.shape[-1])
        first, second = jnp.split(x, 2, -1)
        sine, cosine = jnp.sin(angles)[:, None], jnp.cos(angles)[:, None]
        return jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)

    def block(params, x):
        positions = jnp.arange(len(x))
        h = rms(x, params["norm"])
        q, k, v = (jnp.einsum("td,dhk->thk", h, params[name]) for name in "qkv")
        q, k = rotate(q, positions), rotate(k, positions)
        scores = jnp.einsum("qhd,khd->hqk", q, k) / q.shape[-1] ** 0.5
        scores = jnp.where(positions[:, None] >= positions, scores, -jnp.inf)
        x = x + jnp.einsum("hqk,khd,hde->qe", jax.nn.softmax(scores), v, params["o"])
        h = rms(x, params["norm"])
        return x + (jax.nn.silu(h @ params["gate"]) * (h @ params["up"])) @ params["down"]

    def loss(params, x):
        x, _ = jax.lax.scan(lambda x, layer: (block(layer, x), None), x, params)
        return jnp.sum(x * x)

    sizes = {name: (2, 16, 2, 8) for name in "qkv"} | {"o": (2, 2, 8, 16), "norm": (2, 16)}
    sizes |= {"gate": (2, 16, 24), "up": (2, 16, 24), "down": (2, 24, 16)}
    return jax.value_and_grad(loss), {name: jnp.ones(size) for name, size in sizes.items()}, jnp.ones((9, 16))


def u_net():
    layout = ("NHWC", "HWIO", "NHWC")

    def conv(x, kernel, stride=1):
        return jax.lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=layout)

    def group_norm(x):
        groups = x.reshape(*x.shape[:3], 2, -1)
        return ((groups - groups.mean((1, 2, 4), keepdims=True)) / groups.std((1, 2, 4), keepdims=True)).reshape(
            x.shape
        )

    def loss(params, x, time):
        h = jax.nn.silu(group_norm(conv(x, params["in"]))) + (time @ params["time"])[:, None, None]
        down = jax.nn.silu(group_norm(conv(h, params["down"], 2)))
        up = jax.image.resize(down, h.shape, "bilinear")
        out = conv(jnp.concatenate([h, up], -1), params["out"])
        return jnp.mean((out - x) ** 2)

    sizes = {"in": (3, 3, 2, 8), "time": (6, 8), "down": (3, 3, 8, 8), "out": (3, 3, 16, 2)}
    params = {name: jnp.ones(size) for name, size in sizes.items()}
    return jax.value_and_grad(loss), params, jnp.ones((2, 8, 8, 2)), jnp.ones((2, 6))
