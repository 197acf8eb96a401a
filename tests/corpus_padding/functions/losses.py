"""Losses, metrics and samplers."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax, nn

from tests.corpus_padding.functions.table import table


def cross_entropy(logits, labels):
    return -jnp.take_along_axis(nn.log_softmax(logits), labels[:, None], 1).mean()


def smoothed_cross_entropy(logits, labels):
    soft = nn.one_hot(labels, logits.shape[-1]) * 0.9 + 0.1 / logits.shape[-1]
    return -(soft * nn.log_softmax(logits)).sum(-1).mean()


def focal(logits, labels):
    p = jnp.where(labels, nn.sigmoid(logits), 1 - nn.sigmoid(logits))
    return (-((1 - p) ** 2) * jnp.log(p)).mean()


def contrastive(a, b):
    a, b = (v / jnp.linalg.norm(v, axis=-1, keepdims=True) for v in (a, b))
    logits = a @ b.T / 0.1
    here = jnp.arange(a.shape[0])
    return (cross_entropy(logits, here) + cross_entropy(logits.T, here)) / 2


def triplet(a, p, n):
    return nn.relu(((a - p) ** 2).sum(-1) - ((a - n) ** 2).sum(-1) + 1).mean()


def kl(p, q):
    return (nn.softmax(p) * (nn.log_softmax(p) - nn.log_softmax(q))).sum(-1).mean()


def huber(x, y):
    d = jnp.abs(x - y)
    return jnp.where(d < 1, 0.5 * d**2, d - 0.5).mean()


def dice(p, t):
    p = nn.sigmoid(p)
    return 1 - 2 * (p * t).sum() / (p.sum() + t.sum() + 1e-6)


def pearson(x, y):
    x, y = x - x.mean(), y - y.mean()
    return (x * y).sum() / jnp.sqrt((x**2).sum() * (y**2).sum())


def r_squared(x, y):
    return 1 - ((x - y) ** 2).sum() / ((y - y.mean()) ** 2).sum()


def accuracy(logits, labels):
    return (logits.argmax(-1) == labels).mean()


def ranks(x):
    return jnp.argsort(jnp.argsort(x)) / x.shape[0]


def ndcg(scores, relevance):
    order = jnp.argsort(-scores)
    discounts = 1 / jnp.log2(jnp.arange(scores.shape[0]) + 2)
    return (relevance[order] * discounts).sum() / (jnp.sort(relevance)[::-1] * discounts).sum()


def area_under_curve(scores, labels):
    order = jnp.argsort(scores)
    positions = jnp.zeros(scores.shape[0]).at[order].set(jnp.arange(1, scores.shape[0] + 1))
    positive = labels.sum()
    negative = labels.shape[0] - positive
    return (jnp.where(labels, positions, 0).sum() - positive * (positive + 1) / 2) / jnp.maximum(positive * negative, 1)


def returns(rewards, discounts):
    return lax.scan(lambda g, rd: ((g := rd[0] + rd[1] * g), g), 0.0, (rewards, discounts), reverse=True)[1]


def nucleus(logits):
    order = jnp.argsort(-logits)
    kept = jnp.cumsum(nn.softmax(jnp.take_along_axis(logits, order, -1)), -1) < 0.8
    return jnp.where(kept, jnp.take_along_axis(logits, order, -1), -jnp.inf)


_LOSSES = """
cross_entropy(x, y) : f[b,4] below<4[b]
cross_entropy(x, y) : f[b,s] below<s[b]
smoothed_cross_entropy(x, y) : f[b,4] below<4[b]
smoothed_cross_entropy(x, y) : f[b,s] below<s[b]
focal(x, y) : f[b,s] m[b,s]
contrastive(x, y) : f[b,4] f[b,4]
triplet(x, y, z) : f[b,s] f[b,s] f[b,s]
kl(x, y) : f[b,s] f[b,s]
huber(x, y) : f[b,s] f[b,s]
dice(x, y) : f[b,s] m[b,s]
pearson(x, y) : f[s] f[s] : s>=3
r_squared(x, y) : f[s] f[s] : s>=3
accuracy(x, y) : ties[b,4] below<4[b]
accuracy(x, y) : ties[b,s] below<s[b]
ranks(x) : f[s]
ndcg(x, y) : f[s] positive[s]
area_under_curve(x, y) : f[s] m[s]
returns(x, y) : f[s] unit[s]
returns(x, y) : f[s] unit[s]
nucleus(x) : f[b,s]
((x - y) ** 2).mean() : f[b,s] f[b,s]
jnp.abs(x - y).sum() / x.shape[0] : f[b,s] f[b,s]
nn.softplus(-x * y).mean() : f[s] ties[s]
jnp.maximum(0, 1 - x * y).sum() : f[s] ties[s]
-(x / jnp.linalg.norm(x, axis=-1, keepdims=True) * y).sum(-1).mean() : f[b,s] f[b,s]
jnp.log(jnp.cosh(x - y)).mean() : f[s] f[s]
(x.sum(-1) == 0).mean() : ties[b,s]
jnp.sqrt(((x - y) ** 2).mean()) : f[s] f[s]
"""


CASES = table("losses", _LOSSES, **{name: value for name, value in globals().items() if callable(value)})
