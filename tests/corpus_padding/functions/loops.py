"""Loops, branches, calls, and traps: sizes as numbers, poison times 0, conditions that read padded values."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from tests.corpus_padding.functions.table import table

_LOOPS = """
lax.scan(lambda c, v: (c + v, c * v), jnp.zeros(x.shape[0]), x.T) : f[b,s]
lax.scan(lambda c, v: (c + v, c * v), 0.0, x) : f[s]
lax.scan(lambda c, v: (c + v, c * v), 0.0, x, reverse=True) : f[s]
lax.scan(lambda c, v: (jnp.tanh(c @ y + v), c), jnp.zeros((x.shape[1], 3)), x)[0] : f[s,b,3] f[3,3]
lax.scan(lambda c, v: (c, v.sum()), 0.0, x)[1] : f[4,s]
lax.scan(lambda c, v: (c + v.sum(), None), 0.0, x)[0] : f[b,s]
lax.scan(lambda c, v: (c + v, c), jnp.zeros(x.shape[1]), x) : f[4,s]
lax.scan(lambda c, _: (c * 0.5 + x, c.sum()), x, None, length=3) : f[b,s]
lax.scan(lambda c, _: (c + 1, c), 0, None, length=x.shape[0]) : f[s]
lax.scan(lambda c, v: (c.at[v].add(1), c[v]), jnp.zeros(5), x) : below<5[s]
lax.scan(lambda c, i: (c + x[i], c), 0.0, jnp.arange(x.shape[0])) : f[s]
lax.fori_loop(0, 3, lambda i, c: c @ y, x) : f[b,s] f[s,s]
lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], 0.0) : f[s]
lax.fori_loop(0, x.shape[0], lambda i, c: c.at[i].set(i * x[i]), x) : f[s]
lax.fori_loop(0, y[0], lambda i, c: c + x.sum(), 0.0) : f[s] i[1]
lax.while_loop(lambda c: c.sum() < 20.0, lambda c: c + jnp.abs(x) + 1.0, x) : f[s]
lax.while_loop(lambda c: jnp.all(c < 5.0), lambda c: c * 2.0 + 1.0, x) : positive[s]
lax.while_loop(lambda c: jnp.any(c > 1e-3), lambda c: c * 0.5, x) : unit[b,s]
lax.while_loop(lambda c: c[0] < x.shape[0], lambda c: (c[0] + 1, c[1] + x[c[0]]), (0, 0.0)) : f[s]
jax.vmap(lambda v: lax.while_loop(lambda c: c < 3.0, lambda c: c * 1.5 + 0.5, v))(x) : positive[s]
jax.vmap(lambda v: lax.while_loop(lambda c: c.sum() < 9.0, lambda c: c + 1.0, v))(x) : f[b,s]
jax.vmap(lambda n: lax.fori_loop(0, n, lambda i, c: c * 2 + i, n))(x) : i[s]
lax.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, x) : f[s]
lax.cond(x[0] > 0, lambda v: v.sum(), lambda v: v.max(), x) : f[s]
lax.switch(y[0], [lambda v: v, lambda v: v.cumsum(), lambda v: v[::-1]], x) : f[s] below<3[1]
jax.vmap(lambda p, v: lax.cond(p, jnp.sin, jnp.cos, v))(x, y) : m[s] f[s]
jax.vmap(lambda p, v: lax.switch(p, [jnp.sin, jnp.cos, jnp.exp], v))(x, y) : i[s] f[s,b]
lax.map(lambda v: v.sum(), x) : f[b,s]
lax.map(lambda v: v * 2, x, batch_size=2) : f[4,s]
jax.checkpoint(lambda v: jnp.sin(v).sum(1))(x) : f[b,s]
jax.jit(lambda v: v - v.mean(0))(x) : f[b,s]
jax.jit(jax.jit(lambda v: v.max()))(x) + x : f[s]
jax.vmap(jax.vmap(lambda v: v * v))(x) : f[b,s]
jax.jacfwd(lambda v: v ** 2)(x) : f[4]
jax.vmap(jax.grad(lambda v: (v ** 3).sum()))(x) : f[b,s]
jax.jvp(lambda v: nn.softmax(v), (x,), (y,)) : f[b,s] f[b,s]
jax.jvp(lambda v: jnp.sort(v), (x,), (y,)) : f[s] f[s]
jax.linearize(jnp.tanh, x)[1](y) : f[s] f[s]
jax.hessian(lambda v: (y @ v) ** 2)(x) : f[3] f[3]
jax.grad(lambda v: jnp.max(v))(x) : ties[s]
jax.value_and_grad(lambda v: nn.logsumexp(v))(x) : f[s]
jax.vmap(lambda v: lax.scan(lambda c, u: (c + u, c), 0.0, v))(x) : f[b,s]
jax.vmap(lambda v: lax.fori_loop(0, 3, lambda i, c: c + v.sum(), 0.0))(x) : f[b,s]
lax.custom_root(lambda v: v ** 3 - x, jnp.ones_like(x), lambda f, v: newton(f, v), lambda g, r: r / g(1.0)) : positive[]
lax.associative_scan(jnp.add, x, axis=1) : f[s,4]
lax.associative_scan(jnp.maximum, x, reverse=True, axis=1) : f[s,5]
"""
_TRAPS = """
jnp.where(x.shape[0] > 2, x, -x) : f[s]
jnp.where(x == x, x, 0.0).sum() : wild[s]
(x * 0).sum() : f[s]
(x - x).sum(0) : f[s,b]
jnp.where(x > 0, x, 0) @ y : f[b,s] f[s,2]
(x * y[:, None]).sum(0) : f[s,2] m[s]
jnp.sum(x, where=y) : wild[b,s] m[b,s]
jnp.mean(x, where=y) : f[s] m[s]
jnp.max(x, initial=0.0) : f[s]
jnp.max(x, initial=-1.0, where=y) : f[s] m[s]
jnp.all(jnp.isfinite(x)) : wild[s]
jnp.any(jnp.isnan(x), 0) : wild[s,b]
jnp.isnan(x).sum() : wild[s]
jnp.argmax(jnp.where(x > 100, x, -jnp.inf)) : f[s]
jnp.argmin(jnp.full(x.shape, jnp.inf)) : f[s]
jnp.argmax(x) : i8[s]
jnp.argmax(jnp.full_like(x, -128)) : i8[s]
jnp.argmax(jnp.full_like(x, -jnp.inf)) : f[s]
jnp.argmax(x, 0) + x.shape[0] : m[s]
jnp.sort(jnp.full_like(x, jnp.nan)).sum() : f[s]
jnp.argsort(jnp.full_like(x, jnp.nan)) : f[s]
jnp.argsort(jnp.full_like(x, jnp.inf)) : f[s]
jnp.argsort(x, descending=True) : wild[s]
jnp.argsort(x) : i8[s]
lax.top_k(jnp.full_like(x, -jnp.inf), 2) : f[s] : s>=2
lax.top_k(x, 2) : i8[s] : s>=2
lax.top_k(x, x.shape[0]) : f[s]
jnp.min(jnp.full_like(x, 255)) : u8[s]
jnp.prod(x + 1) : i8[s]
jnp.sum(x) : i8[s]
jnp.sum(x, dtype=jnp.int8) : i8[s]
jnp.sum(x) : bf16[b,s]
jnp.mean(x, 1) : f16[b,s]
jnp.var(x, 0) : f32[s,b]
jnp.std(x) : f[b,s]
(x - x.mean(0)) / x.std(0) : f[s,b] : s>=2
x / jnp.linalg.norm(x, axis=-1, keepdims=True) : f[b,s]
x.sum(0) / x.shape[0] + x.shape[1] : f[s,b]
x[x.shape[0] - 1] : f[s]
x[x.shape[0] - 2 :] : f[s] : s>=2
x[-3] : f[s] : s>=3
x[::-1][0] : f[s]
x[::-1][::-1] : f[s]
x[::-1].cumsum() : f[s]
jnp.cumsum(x[::-1])[::-1] : f[s,b]
jnp.flip(jnp.sort(x))[:2] : f[s] : s>=2
jnp.roll(x, 1, 0).cumsum(0) : f[s,b]
jnp.roll(x, (1, 2), (0, 1)) : f[b,s]
(jnp.roll(x, 1) - x).sum() : f[s]
jnp.concatenate([x[::-1], x]) : f[s]
jnp.concatenate([x, x[:1]]).cumsum() : f[s]
jnp.concatenate([x, y, x])[-1] : f[b] f[s]
jnp.concatenate([x, y])[::-1].sum() : f[b] f[s]
jnp.concatenate([x, y]).reshape(-1, 2).sum(0) : f[b,2] f[s,2]
jnp.tile(x, 2)[:3] : f[s] : s>=2
jnp.tile(x, 3).reshape(3, -1).mean(1) : f[s]
jnp.repeat(x, 2)[::2] : f[s]
jnp.repeat(x, 2, 0).reshape(-1, 2, 3).sum(1) : f[s,3]
x.reshape(-1)[::-1].reshape(x.shape) : f[b,s]
x.reshape(-1).at[0].set(9.0).reshape(x.shape) : f[b,s]
x.reshape(-1)[y] : f[b,s] below<s[2]
x.reshape(-1)[-1] : f[b,s]
x.reshape(-1).argmax() : ties[b,s]
jnp.unravel_index(jnp.argmax(x), (2, 4)) : f[2,4]
x.T.reshape(-1) : f[b,s]
x.T.reshape(-1).reshape(x.shape) : f[b,s]
x.reshape(x.shape[1], x.shape[0]).sum(0) : f[b,s]
x.transpose(1, 0, 2).reshape(x.shape[1], -1) @ y.reshape(-1, 1) : f[b,s,2] f[b,2]
x.reshape(x.shape[0], -1).mean(1) : f[b,s,2]
(x.reshape(-1, 2) @ jnp.ones((2, 2))).max(0) : f[b,s,2]
x.reshape(-1, 2) + y.reshape(-1, 2) : f[b,s,2] f[b,s,2]
x.reshape(-1) @ y.reshape(-1) : f[b,s] f[b,s]
x.reshape(-1)[:, None] == y.reshape(-1)[None] : ties[b,2] ties[s,2]
x + y : f[b,1] f[1,s]
x + y : f[s] f[b,1]
(x[:, None, :] - y[None]) ** 2 : f[b,3] f[s,3]
((x[:, None] - y[None]) ** 2).sum(-1).argmin(1) : f[b,3] f[s,3]
jnp.broadcast_to(x.sum(0), (x.shape[0],)) : f[s]
jnp.arange(x.shape[0])[::-1] + x : f[s]
jnp.arange(x.shape[0]) == x.shape[0] - 1 : f[s]
jnp.where(jnp.arange(x.shape[0]) == x.shape[0] - 1, x, 0).sum() : f[s]
jnp.tril(jnp.full(x.shape, -jnp.inf), -1) + x : f[s,s]
nn.softmax(jnp.where(jnp.tril(jnp.ones(x.shape, bool)), x, -jnp.inf)) : f[s,s]
nn.softmax(jnp.where(y, x, -jnp.inf)) : f[b,s] m[b,s]
nn.softmax(jnp.full_like(x, -jnp.inf)) : f[s]
nn.softmax(x * 1e3) : f[b,s]
nn.logsumexp(jnp.full_like(x, -jnp.inf)) : f[s]
nn.log_softmax(x).sum(0) : wild[b,s]
jnp.log(x.sum()) + x.max() : positive[s]
jnp.exp(x - x.max()) : f[b,s]
jnp.linalg.norm(x - y) : f[s] f[s]
1 / x.sum() : f[s]
x.prod() / x.min() : positive[s]
jnp.median(x) - jnp.mean(x) : f[s]
x[y].sum() : f[s] signed[b]
x[y][::-1] : f[s] below<s[b]
x[jnp.clip(y, 0, x.shape[0] - 1)] : f[s] signed[b]
x[jnp.argsort(x)][jnp.argsort(jnp.argsort(x))] : ties[s]
x.at[jnp.argsort(x)].set(jnp.arange(x.shape[0])) : ties[s]
x.at[y].add(1.0).sum() : f[s] signed[b]
jnp.zeros(3).at[x].add(y).max() : i[s] f[s]
jnp.zeros(3).at[jnp.zeros(x.shape[0], int)].add(x) : f[s]
jnp.zeros(3).at[x].max(y) : i[s] f[s]
jnp.zeros(3).at[x].set(7.0) : i[s]
jnp.zeros((x.shape[0], 3)).at[:, y].add(x[:, None]) : f[s] below<3[b]
jnp.zeros(x.shape).at[y].set(1.0) : f[s] signed[s]
jnp.zeros(8).at[: x.shape[0]].set(x) : f[s]
jnp.cumsum(x)[-1] : f[s]
jnp.cumsum(x, 0)[jnp.arange(x.shape[1]) % x.shape[0], jnp.arange(x.shape[1])] : f[s,b]
lax.cummax(x[::-1])[::-1] : f[s]
lax.dynamic_slice(x, (x.shape[0] - 1,), (1,)) : f[s]
lax.dynamic_slice(x, (y[0],), (1,)) : f[s] long[1]
lax.dynamic_update_slice(x, jnp.ones(1), (y[0],)) : f[s] long[1]
jnp.maximum(x, 0).mean() / jnp.maximum(x.shape[0] - 1, 1) : f[s]
jnp.float32(x.shape[0]) * x.sum().astype(jnp.float32) : f[s]
jnp.array(x.shape) : f[b,s]
jnp.ones((x.shape[0], x.shape[0])).sum() : f[s]
jnp.eye(x.shape[0])[y] : f[s] below<s[b]
jnp.eye(x.shape[0]).sum() + jnp.eye(x.shape[0], k=1).sum() : f[s]
jax.vmap(lambda v, n: jnp.where(jnp.arange(v.shape[0]) < n, v, 0).sum() / n)(x, y) : f[b,s] u8[b]
(x & y).any() | (x ^ y).all() : m[b,s] m[b,s]
(~x).all(0) : m[s,b]
(x << 1).sum() + (x // 3).max() : i[s]
(x % 3 == 0).sum() : signed[s]
x // y : signed[s] signed[s]
lax.div(x, y) : i32[s] i32[s]
(x / y).sum() : f[s] f[s]
jnp.sqrt(x).sum() + jnp.log(x).prod() : positive[s]
jnp.nan_to_num(x).sum() : wild[s]
jnp.nan_to_num(x / 0.0).max() : f[s]
jnp.nansum(x) + jnp.nanmax(x) : wild[s]
(x.real + x.imag).sum() : c[s]
jnp.prod(x) : c[s]
jnp.sort(x) : c[s]
jnp.vdot(x, x).real : c[s]
jnp.mean(x, 0) : c[s,b]
x.sum() * x.conj() : c[b,s]
jnp.maximum.reduce(x, 0) - jnp.minimum.reduce(x, 0) : f[s,b]
jnp.polyfit(x, y, 1) : f[s] f[s] : s>=3
jnp.polyval(x, 2.0) : f[s]
jnp.hypot(*x) : f[2,s]
sum(x) : f[3,s]
x.at[0].multiply(jnp.nan) : f[s]
jnp.broadcast_to(jnp.nan, x.shape).at[y].set(1.0).sum() : f[s] below<s[1]
lax.reduce_window(x, 0.0, lax.add, (2,), (1,), 'SAME').sum() : f[s]
lax.reduce_window(jnp.pad(x, 1), -jnp.inf, lax.max, (3,), (1,), 'VALID') : f[s]
lax.cumsum(lax.cumsum(x, 0), 0, reverse=True) : f[s]
lax.optimization_barrier(x).sum() : f[s]
jnp.pad(x, (0, 3)).mean() : f[s]
jnp.pad(x, (3, 0))[: 3].sum() : f[s]
jnp.pad(x, (0, 3), constant_values=-jnp.inf).max() : f[s]
jnp.pad(x, ((0, 1), (1, 0))).reshape(-1).sum() : f[b,s]
jnp.pad(x, (1, 1))[1:-1] : f[s]
jnp.dot(jnp.pad(x, (0, 1)), jnp.concatenate([y, jnp.ones(1)])) : f[s] f[s]
"""


def newton(f, start):
    return lax.fori_loop(0, 30, lambda _, v: v - f(v) / jax.grad(f)(v), start)


@jax.custom_vjp
def clipped(x):
    """Whose gradient is clipped."""
    return x * 2


clipped.defvjp(lambda x: (clipped(x), None), lambda _, g: (jnp.clip(g, -0.1, 0.1),))


@jax.custom_jvp
def safe_norm(x):
    return jnp.sqrt((x**2).sum(-1))


@safe_norm.defjvp
def _safe_norm_jvp(primals, tangents):
    norm = safe_norm(*primals)
    return norm, (primals[0] * tangents[0]).sum(-1) / jnp.maximum(norm, 1e-6)


@partial(jax.jit, static_argnames="steps")
def power_iteration(a, steps):
    v = jnp.ones(a.shape[-1])
    for _ in range(steps):
        v = a @ v
        v = v / jnp.linalg.norm(v)
    return v @ a @ v


def sinkhorn(x):
    """Rows and columns normalised in turns."""
    for _ in range(3):
        x = x / x.sum(0, keepdims=True)
        x = x / x.sum(1, keepdims=True)
    return x


def kmeans_step(points, centres):
    nearest = ((points[:, None] - centres[None]) ** 2).sum(-1).argmin(1)
    counts = jnp.zeros(centres.shape[0]).at[nearest].add(1.0)
    sums = jnp.zeros_like(centres).at[nearest].add(points)
    return jnp.where(counts[:, None] > 0, sums / jnp.maximum(counts, 1)[:, None], centres), nearest


def viterbi(emissions, transitions):
    """The best path's score, and back pointers."""

    def step(scores, emission):
        candidates = scores[:, None] + transitions
        return candidates.max(0) + emission, candidates.argmax(0)

    return lax.scan(step, emissions[0], emissions[1:])


def beam_scores(logits, lengths):
    log_probabilities = jax.nn.log_softmax(logits)
    best = log_probabilities.max(-1)
    return jnp.where(jnp.arange(logits.shape[1])[None] < lengths[:, None], best, 0.0).sum(1) / lengths**0.6


def edit_distances(a, b):
    """Of two sequences of tokens, by a scan over one of them."""

    def row(previous, token):
        costs = previous[:-1] + (token != b)

        def cell(left, above):
            diagonal, up = above
            best = jnp.minimum(jnp.minimum(left + 1, up + 1), diagonal)
            return best, best

        first = previous[0] + 1
        _, rest = lax.scan(cell, first, (costs, previous[1:]))
        return jnp.concatenate([first[None], rest]), None

    return lax.scan(row, jnp.arange(b.shape[0] + 1), a)[0][-1]


def conjugate_gradient(a, b):
    matrix = a @ a.T + jnp.eye(a.shape[0])
    return jax.scipy.sparse.linalg.cg(lambda v: matrix @ v, b, maxiter=4)[0]


_ALGORITHMS = """
clipped(x).sum(1) : f[b,s]
safe_norm(x) : f[b,s]
power_iteration(x, 3) : f[s,s]
sinkhorn(x) : positive[b,s]
kmeans_step(x, y) : f[s,2] f[3,2]
kmeans_step(x, y) : f[s,2] f[b,2]
viterbi(x, y) : f[s,3] f[3,3] : s>=2
viterbi(x, y) : f[4,s] f[s,s]
beam_scores(x, y) : f[b,s,4] positive[b]
edit_distances(x, y) : i[4] i[s]
edit_distances(x, y) : i[s] i[b]
conjugate_gradient(x, y) : f[s,s] f[s]
"""

CASES = [
    *table("loops, branches and calls", _LOOPS, newton=newton),
    *table("traps", _TRAPS),
    *table("algorithms", _ALGORITHMS, **{name: value for name, value in globals().items() if callable(value)}),
]
