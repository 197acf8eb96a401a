"""Layers and losses of flax, equinox and optax, where they are installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.corpus_padding.cases import Case
from tests.corpus_padding.functions.table import table


def _flax() -> list[Case]:
    from flax import linen

    def layer(module: Any, *example: Any, method: Callable[..., Any] | None = None) -> Callable[..., Any]:
        shapes = jax.eval_shape(module.init, {"params": jax.random.key(0), "dropout": jax.random.key(1)}, *example)
        generator = np.random.default_rng(0)
        # Those that must be positive, variances, are drawn like the others.
        variables = jax.tree.map(lambda leaf: abs(generator.normal(size=leaf.shape)).astype(leaf.dtype), shapes)
        return lambda *arrays: module.apply(variables, *arrays, method=method)

    x, image, tokens = jnp.ones((2, 3, 4)), jnp.ones((2, 6, 6, 2)), jnp.ones((2, 3), int)
    layers: dict[str, tuple[Any, Any]] = {
        "dense": (linen.Dense(3), x),
        "dense_general": (linen.DenseGeneral((2, 3)), x),
        "einsum": (linen.Einsum((4, 3), "bsd,df->bsf"), x),
        "flax_layer_norm": (linen.LayerNorm(), x),
        "flax_rms_norm": (linen.RMSNorm(), x),
        "flax_group_norm": (linen.GroupNorm(2), x),
        "instance_norm": (linen.InstanceNorm(), x),
        "flax_batch_norm": (linen.BatchNorm(use_running_average=True), x),
        "embed": (linen.Embed(5, 3), tokens),
        "conv": (linen.Conv(3, (3,)), x),
        "conv_strided": (linen.Conv(3, (3,), strides=2), x),
        "conv_causal": (linen.Conv(3, (3,), padding="CAUSAL"), x),
        "conv_transpose": (linen.ConvTranspose(3, (3,), strides=(2,)), x),
        "conv2": (linen.Conv(3, (3, 3)), image),
        "self_attention": (linen.SelfAttention(2, deterministic=True), x),
        "rnn_layer": (linen.RNN(linen.LSTMCell(3)), x),
        "gru_layer": (linen.RNN(linen.GRUCell(3)), x),
        "bidirectional": (linen.Bidirectional(linen.RNN(linen.GRUCell(3)), linen.RNN(linen.GRUCell(3))), x),
        "weight_norm": (linen.WeightNorm(linen.Dense(3)), x),
        "sequential": (linen.Sequential([linen.Dense(4), linen.relu, linen.Dense(2)]), x),
    }
    names = {name: layer(*pair) for name, pair in layers.items()}
    names["cross_attention"] = layer(linen.MultiHeadDotProductAttention(2, deterministic=True), x, x)
    names["pools"] = lambda v: (linen.max_pool(v, (2,), (1,)), linen.avg_pool(v, (2,), (2,)))
    names["causal_mask"], names["attention_mask"] = linen.make_causal_mask, linen.make_attention_mask
    # Where a state's dtype is the layer's own, the input must have it too.
    kinds = dict.fromkeys(("rnn_layer", "gru_layer", "bidirectional"), "f32[b,s,4]")
    kinds |= {"embed": "below<5[b,s]", "conv2": "f[b,4,s,2]"}
    text = "\n".join(f"{name}(x) : " + kinds.get(name, "f[b,s,4]") for name in layers)
    more = """
    cross_attention(x, y) : f[b,s,4] f[b,t,4]
    pools(x) : f[b,s,2] : s>=2
    causal_mask(x) : below<5[b,s]
    attention_mask(x, y) : m[b,s] m[b,t]
    """
    return table("flax", text + more, **names)


def _equinox() -> list[Case]:
    import equinox as eqx

    key = jax.random.key(0)
    attention = eqx.nn.MultiheadAttention(2, 4, key=key)
    names: dict[str, Any] = {
        "linear": jax.vmap(eqx.nn.Linear(4, 3, key=key)),
        "two_layers": jax.vmap(eqx.nn.MLP(4, 3, 8, 2, key=key)),
        "conv1": jax.vmap(eqx.nn.Conv1d(2, 3, 3, padding=1, key=key)),
        "conv2": jax.vmap(eqx.nn.Conv2d(2, 3, 3, key=key)),
        "max_pool": jax.vmap(eqx.nn.MaxPool1d(2, 1)),
        "average_pool": jax.vmap(eqx.nn.AvgPool1d(2, 2)),
        "eqx_layer_norm": jax.vmap(jax.vmap(eqx.nn.LayerNorm(4))),
        "eqx_rms_norm": jax.vmap(jax.vmap(eqx.nn.RMSNorm(4))),
        "eqx_group_norm": jax.vmap(eqx.nn.GroupNorm(2, 4)),
        "embedding": jax.vmap(jax.vmap(eqx.nn.Embedding(5, 3, key=key))),
        "attention": jax.vmap(lambda v: attention(v, v, v)),
        "masked_attention": jax.vmap(lambda v, m: attention(v, v, v, mask=m)),
        "rope": jax.vmap(eqx.nn.RotaryPositionalEmbedding(4)),
        "prelu": eqx.nn.PReLU(0.2),
    }
    cell, lstm_cell = eqx.nn.GRUCell(4, 3, key=key), eqx.nn.LSTMCell(4, 3, key=key)
    names["gru"] = jax.vmap(lambda v: lax.scan(lambda h, u: (cell(u, h),) * 2, jnp.zeros(3), v)[1])
    names["eqx_lstm"] = jax.vmap(
        lambda v: lax.scan(lambda h, u: (lstm_cell(u, h), None), (jnp.zeros(3), jnp.zeros(3)), v)[0]
    )
    return table(
        "equinox",
        """
        linear(x) : f[b,4]
        two_layers(x) : f[b,4]
        conv1(x) : f32[b,2,s]
        conv2(x) : f32[b,2,s,4] : s>=3
        max_pool(x) : f[b,2,s] : s>=2
        average_pool(x) : f[b,2,s] : s>=2
        eqx_layer_norm(x) : f[b,s,4]
        eqx_rms_norm(x) : f[b,s,4]
        eqx_group_norm(x) : f[b,4,s]
        embedding(x) : below<5[b,s]
        attention(x) : f[b,s,4]
        masked_attention(x, y) : f[b,s,4] m[b,s,s]
        rope(x) : f[b,s,4]
        prelu(x) : f[b,s]
        gru(x) : f[b,s,4]
        eqx_lstm(x) : f[b,s,4]
        """,
        **names,
    )


def _optax() -> list[Case]:
    import optax

    losses = [
        "squared_error(x, y) : f[b,s] f[b,s]",
        "huber_loss(x, y) : f[b,s] f[b,s]",
        "log_cosh(x, y) : f[b,s] f[b,s]",
        "cosine_similarity(x, y) : f[b,s] f[b,s]",
        "sigmoid_binary_cross_entropy(x, y) : f[b,s] m[b,s]",
        "softmax_cross_entropy(x, nn.softmax(y)) : f[b,s] f[b,s]",
        "softmax_cross_entropy_with_integer_labels(x, y) : f[b,4] below<4[b]",
        "softmax_cross_entropy_with_integer_labels(x, y) : f[b,s] below<s[b]",
        "safe_softmax_cross_entropy(x, nn.softmax(y)) : f[b,s] f[b,s]",
        "kl_divergence(x, nn.softmax(y)) : f[b,s] f[b,s]",
        "hinge_loss(x, y) : f[b,s] ties[b,s]",
        "poly_loss_cross_entropy(x, nn.softmax(y)) : f[b,s] f[b,s]",
        "sigmoid_focal_loss(x, y) : f[b,s] unit[b,s]",
        "ctc_loss(x, y, z, w) : f[b,s,4] m[b,s] below<3[b,2] m[b,2]",
        "ranking_softmax_loss(x, y) : f[b,s] positive[b,s]",
        "ntxent(x, y) : f[b,4] below<3[b]",
    ]
    names = {name: getattr(optax.losses, name) for name in dir(optax.losses) if not name.startswith("_")}

    def stepped(w, x, y):
        solver = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(0.1))
        loss, gradient = jax.value_and_grad(lambda w: ((jnp.tanh(x @ w) - y) ** 2).mean())(w)
        updates, _ = solver.update(gradient, solver.init(w), w)
        return optax.apply_updates(w, updates), loss

    steps = "stepped(x, y, z) : f[3] f[b,3] f[b]\nstepped(x, y, z) : f[s] f[b,s] f[b]"
    return table("optax", "\n".join([*losses, steps]), stepped=stepped, **names)


def _installed(name: str, cases: Callable[[], list[Case]]) -> list[Case]:
    return cases() if importlib.util.find_spec(name) else []


CASES = [*_installed("flax", _flax), *_installed("equinox", _equinox), *_installed("optax", _optax)]
