"""Layers and whole small networks."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from tests.corpus_padding.functions.losses import cross_entropy
from tests.corpus_padding.functions.table import table


def weights(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed + sum(shape)).normal(size=shape) * 0.5


def dense(x, width, seed=0):
    return x @ weights(x.shape[-1], width, seed=seed) + weights(width, seed=seed + 1)


def mlp(x):
    return dense(nn.gelu(dense(x, 8)), 3, 2)


def layer_norm(x, axis=-1):
    mean = x.mean(axis, keepdims=True)
    return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(axis, keepdims=True) + 1e-6)


def rms_norm(x):
    return x * lax.rsqrt((x**2).mean(-1, keepdims=True) + 1e-6)


def batch_norm(x):
    axes = tuple(range(x.ndim - 1))
    return (x - x.mean(axes)) / jnp.sqrt(x.var(axes) + 1e-5)


def group_norm(x):
    """Of two groups of channels, over the positions too."""
    grouped = x.reshape(*x.shape[:-1], 2, -1)
    axes = (*range(1, x.ndim - 1), x.ndim)
    mean, variance = grouped.mean(axes, keepdims=True), grouped.var(axes, keepdims=True)
    return ((grouped - mean) / jnp.sqrt(variance + 1e-5)).reshape(x.shape)


def attend(q, k, v, mask=None):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
    scores = scores if mask is None else jnp.where(mask, scores, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores), v)


def causal(q, k, v):
    positions = jnp.arange(q.shape[1])
    return attend(q, k, v, positions[:, None] >= positions[None])


def windowed(q, k, v):
    distance = jnp.arange(q.shape[1])[:, None] - jnp.arange(q.shape[1])[None]
    return attend(q, k, v, (distance >= 0) & (distance < 2))


def by_lengths(q, k, v, lengths):
    return attend(q, k, v, (jnp.arange(k.shape[1])[None] < lengths[:, None])[:, None, None])


def additive_mask(q, k, v, mask):
    scores = jnp.einsum("bqd,bkd->bqk", q, k) + (1.0 - mask.astype(q.dtype))[:, None] * -1e9
    return nn.softmax(scores) @ v


def linear_attention(q, k, v):
    q, k = nn.elu(q) + 1, nn.elu(k) + 1
    return jnp.einsum("bsd,bde->bse", q, jnp.einsum("bsd,bse->bde", k, v)) / (q @ k.sum(1)[..., None])


def rotary(x):
    """Rotated by its position, with the size as the length of a table."""
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None] / 10.0 ** jnp.arange(half)
    first, second = x[..., :half], x[..., half:]
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    return jnp.concatenate([first * cos - second * sin, first * sin + second * cos], -1)


def alibi(q, k, v):
    bias = -jnp.abs(jnp.arange(q.shape[1])[:, None] - jnp.arange(k.shape[1])[None])
    return nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k) + bias) @ v


def multi_head(x):
    q, k, v = (dense(x, 8, seed).reshape(*x.shape[:2], 2, 4) for seed in (1, 2, 3))
    return dense(causal(q, k, v).reshape(*x.shape[:2], 8), x.shape[-1], 4)


def transformer_block(x):
    x = x + multi_head(layer_norm(x))
    return x + mlp_like(layer_norm(x))


def mlp_like(x):
    return dense(nn.silu(dense(x, 8, 5)), x.shape[-1], 6)


def embedded(tokens):
    return jnp.asarray(weights(5, 4))[tokens] + jnp.asarray(weights(8, 4))[jnp.arange(tokens.shape[1])]


def language_model(tokens):
    x = transformer_block(embedded(tokens))
    return layer_norm(x) @ weights(5, 4).T


def language_model_loss(tokens):
    logits = language_model(tokens)
    losses = -jnp.take_along_axis(nn.log_softmax(logits), tokens[..., None], -1)[..., 0]
    return jnp.where(tokens != 0, losses, 0).sum() / jnp.maximum((tokens != 0).sum(), 1)


def encoder_pooled(x, mask):
    scores = jnp.where(mask[:, None, :], x @ x.mT, -1e30)
    x = layer_norm(x + nn.softmax(scores) @ x)
    return (x * mask[..., None]).sum(1) / jnp.maximum(mask.sum(1), 1)[:, None]


def rnn(x):
    def step(state, value):
        state = jnp.tanh(state @ weights(4, 4) + value @ weights(3, 4))
        return state, state

    return lax.scan(step, jnp.zeros((x.shape[0], 4)), jnp.swapaxes(x, 0, 1))


def lstm(x):
    def step(state, value):
        hidden, cell = state
        i, f, g, o = jnp.split(jnp.concatenate([hidden, value], -1) @ weights(7, 16), 4, -1)
        cell = nn.sigmoid(f) * cell + nn.sigmoid(i) * jnp.tanh(g)
        hidden = nn.sigmoid(o) * jnp.tanh(cell)
        return (hidden, cell), hidden

    zeros = jnp.zeros((x.shape[0], 4))
    return lax.scan(step, (zeros, zeros), jnp.swapaxes(x, 0, 1))[1]


def gru_backwards(x):
    def step(state, value):
        both = jnp.concatenate([state, value], -1)
        z, r = jnp.split(nn.sigmoid(both @ weights(7, 8)), 2, -1)
        new = jnp.tanh(jnp.concatenate([r * state, value], -1) @ weights(7, 4))
        state = (1 - z) * state + z * new
        return state, state

    return lax.scan(step, jnp.zeros((x.shape[0], 4)), jnp.swapaxes(x, 0, 1), reverse=True)[1]


def masked_rnn(x, lengths):
    def step(carry, value):
        state, at = carry
        new = jnp.tanh(state @ weights(3, 3) + value)
        return (jnp.where((at < lengths)[:, None], new, state), at + 1), None

    return lax.scan(step, (jnp.zeros((x.shape[0], 3)), 0), jnp.swapaxes(x, 0, 1))[0][0]


def state_space(x):
    decay = nn.sigmoid(weights(x.shape[-1]))
    return lax.scan(
        lambda h, u: ((h := h * decay + u), h), jnp.zeros((x.shape[0], x.shape[-1])), jnp.swapaxes(x, 0, 1)
    )[1]


def convolve(x, width=3, stride=1, padding="SAME", seed=0):
    kernel = weights(*(3,) * (x.ndim - 2), x.shape[-1], width, seed=seed)
    letters = "HWD"[: x.ndim - 2]
    numbers = (f"N{letters}C", f"{letters}IO", f"N{letters}C")
    return lax.conv_general_dilated(x, kernel, (stride,) * (x.ndim - 2), padding, dimension_numbers=numbers)


def conv_net(x):
    x = nn.relu(convolve(x, 4))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return dense(nn.relu(convolve(x, 3, seed=1)).mean((1, 2)), 2)


def conv_flat(x):
    return dense(nn.relu(convolve(x, 2)).reshape(x.shape[0], -1), 3)


def residual(x):
    return nn.relu(x + batch_norm(convolve(nn.relu(convolve(x, x.shape[-1])), x.shape[-1], seed=1)))


def text_conv(x):
    return jnp.concatenate([nn.relu(convolve(x, 3, seed=seed)).max(1) for seed in (0, 1)], -1)


def causal_conv(x):
    return convolve(jnp.pad(x, ((0, 0), (2, 0), (0, 0))), padding="VALID")


def unet(x):
    down = nn.relu(convolve(x, 4, stride=2, padding=((1, 1),)))
    return x.sum() + down.mean()


def mixture_of_experts(x):
    gates = nn.softmax(x @ weights(4, 3))
    return jnp.einsum("bse,besd->bsd", gates, jnp.einsum("bsd,edf->besf", x, weights(3, 4, 4)))


def top_expert(x):
    gates = nn.softmax(x @ weights(4, 3))
    value, index = lax.top_k(gates, 1)
    return value * jnp.einsum("sd,sdf->sf", x, jnp.asarray(weights(3, 4, 4))[index[:, 0]])


def graph_convolution(features, senders, receivers):
    messages = features[senders] @ weights(3, 3)
    sums = jax.ops.segment_sum(messages, receivers, features.shape[0])
    degrees = jax.ops.segment_sum(jnp.ones(senders.shape[0]), receivers, features.shape[0])
    return nn.relu(sums / jnp.maximum(degrees, 1)[:, None] + features)


def adjacency_convolution(features, adjacency):
    degrees = adjacency.sum(1)
    return (adjacency @ features) / jnp.maximum(degrees, 1.0)[:, None]


def deep_sets(x, mask):
    return dense(jnp.where(mask[..., None], nn.relu(dense(x, 4)), 0).sum(1), 2, 3)


def gaussian_process(x, y, new):
    def kernel(a, b):
        return jnp.exp(-((a[:, None] - b[None]) ** 2))

    covariance = kernel(x, x) + 0.1 * jnp.eye(x.shape[0])
    return kernel(new, x) @ jnp.linalg.solve(covariance, y)


def sgd_step(w, x, y):
    loss, gradient = jax.value_and_grad(lambda w: ((jnp.tanh(x @ w) - y) ** 2).mean())(w)
    return w - 0.1 * gradient, loss


def adam_steps(w, x, y):
    def step(state, _):
        w, m, v = state
        g = jax.grad(lambda w: cross_entropy(x @ w, y))(w)
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
        return (w - 0.1 * m / (jnp.sqrt(v) + 1e-8), m, v), None

    return lax.scan(step, (w, w * 0, w * 0), None, length=3)[0]


def per_example_gradients(w, x, y):
    gradients = jax.vmap(jax.grad(lambda w, x, y: (jnp.tanh(x @ w) - y) ** 2), (None, 0, 0))(w, x, y)
    norms = jnp.linalg.norm(gradients, axis=-1, keepdims=True)
    return (gradients / jnp.maximum(norms, 1.0)).mean(0)


def variational(x, key):
    mean, log_scale = jnp.split(dense(x, 4), 2, -1)
    z = mean + jnp.exp(log_scale) * jax.random.normal(key, mean.shape)
    return ((dense(z, x.shape[-1]) - x) ** 2).sum(-1).mean() + (mean**2 - log_scale).sum(-1).mean()


def dropout(x, key):
    return jnp.where(jax.random.bernoulli(key, 0.8, x.shape), x / 0.8, 0)


_NETWORKS = """
mlp(x) : f[b,4]
mlp(x) : f[b,s,4]
layer_norm(x) : f[b,s]
layer_norm(x, 0) : f[s,b]
layer_norm(x) : f[b,s,4]
rms_norm(x) : f[b,s]
batch_norm(x) : f[b,s,4]
batch_norm(x) : f[b,4,s,2]
group_norm(x) : f[b,s,4]
group_norm(x) : f[b,2,s,4]
attend(x, y, z) : f[b,s,2,4] f[b,t,2,4] f[b,t,2,4]
attend(x, y, z, w) : f[b,3,2,4] f[b,t,2,4] f[b,t,2,4] m[b,1,3,t]
causal(x, y, z) : f[b,s,2,4] f[b,s,2,4] f[b,s,2,4]
windowed(x, y, z) : f[b,s,2,4] f[b,s,2,4] f[b,s,2,4]
by_lengths(x, y, z, w) : f[b,s,2,4] f[b,t,2,4] f[b,t,2,4] i[b]
additive_mask(x, y, z, w) : f[b,s,4] f[b,t,4] f[b,t,4] m[b,t]
linear_attention(x, y, z) : f[b,s,4] f[b,s,4] f[b,s,4]
rotary(x) : f[b,s,4]
alibi(x, y, z) : f[b,s,4] f[b,t,4] f[b,t,4]
multi_head(x) : f[b,s,8]
transformer_block(x) : f[b,s,8]
embedded(x) : below<5[b,s]
language_model(x) : below<5[b,s]
language_model_loss(x) : below<5[b,s]
encoder_pooled(x, y) : f[b,s,4] m[b,s]
rnn(x) : f[b,s,3]
lstm(x) : f[b,s,3]
gru_backwards(x) : f[b,s,3]
masked_rnn(x, y) : f[b,s,3] i[b]
state_space(x) : f[b,s,3]
conv_net(x) : f[b,6,6,2]
conv_net(x) : f[2,n,6,2] : n>=4
conv_flat(x) : f[b,4,4,2]
residual(x) : f[b,4,4,2]
residual(x) : f[b,s,s,2] : s<=4
residual(x) : f[b,s,3]
text_conv(x) : f[b,s,4]
causal_conv(x) : f[b,s,2]
unet(x) : f[b,s,2]
convolve(x, stride=2) : f[b,6,2]
convolve(x, padding='VALID') : f[b,s,2] : s>=3
convolve(x, stride=2, padding='VALID') : f[b,s,2] : s>=3
mixture_of_experts(x) : f[b,s,4]
top_expert(x) : f[s,4]
graph_convolution(x, y, z) : f[s,3] below<s[n] below<s[n]
graph_convolution(x, y, z) : f[4,3] below<4[n] below<4[n]
adjacency_convolution(x, y) : f[s,3] positive[s,s]
deep_sets(x, y) : f[b,s,4] m[b,s]
gaussian_process(x, y, z) : f[4] f[4] f[s]
gaussian_process(x, y, z) : f[s] f[s] f[3]
sgd_step(x, y, z) : f[3] f[b,3] f[b]
sgd_step(x, y, z) : f[s] f[b,s] f[b]
adam_steps(x, y, z) : f[3,4] f[b,3] below<4[b]
per_example_gradients(x, y, z) : f[3] f[b,3] f[b]
variational(x, y) : f[b,4] key[]
dropout(x, y) : f[b,4] key[]
dropout(x, y) : f[4,s] key[]
"""
CASES = table("networks", _NETWORKS, **{name: value for name, value in globals().items() if callable(value)})
