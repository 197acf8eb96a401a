"""Fifty small programs of the kinds that people compile: models, linear algebra, FFT, sort, random numbers, loops."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax


class Program(NamedTuple):
    """A function with shapes of its arguments."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]


def f32(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def bf16(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16)


def i32(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.int32)


# Models --------------------------------------------------------------------------------------------------------------


def dense(first, second, x):
    return jax.nn.relu(x @ first) @ second


def squared_error(first, second, x, y):
    return jnp.mean((dense(first, second, x) - y) ** 2)


def descend(first, second, x, y):
    slopes = jax.grad(squared_error, (0, 1))(first, second, x, y)
    return first - 0.01 * slopes[0], second - 0.01 * slopes[1]


def softmax_attention(q, k, v):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(q.shape[-1] * 1.0).astype(q.dtype)
    mask = jnp.tril(jnp.ones((q.shape[1], k.shape[1]), bool))
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(mask, scores, -1e9)), v)


def gated(gate, up, down, x):
    return (jax.nn.silu(x @ gate) * (x @ up)) @ down


def root_mean_square(scale, x):
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


def standardised(scale, shift, x):
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-6) * scale + shift


def rotated(x):
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None] / 10000.0 ** (jnp.arange(half) / half)
    left, right = x[..., :half], x[..., half:]
    turn, other = jnp.cos(angle)[None, :, None], jnp.sin(angle)[None, :, None]
    return jnp.concatenate([left * turn - right * other, left * other + right * turn], -1)


def token_loss(table, tokens):
    logits = table[tokens[:, :-1]] @ table.T
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], -1).mean()


def experts(router, weights, x):
    chosen = jax.nn.softmax(x @ router)
    weight, index = lax.top_k(chosen, 2)
    mixed = jnp.einsum("td,edh->teh", x, weights)
    return (jnp.take_along_axis(mixed, index[..., None], 1) * weight[..., None]).sum(1)


def recurrent(inner, outer, xs):
    def cell(state, x):
        state = jnp.tanh(state @ inner + x @ outer)
        return state, state

    return lax.scan(cell, jnp.zeros((xs.shape[1], inner.shape[0])), xs)


def long_memory(weights, xs):
    def cell(carry, x):
        hidden, kept = carry
        i, f, g, o = jnp.split(jnp.concatenate([x, hidden], -1) @ weights, 4, -1)
        kept = jax.nn.sigmoid(f) * kept + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(kept)
        return (hidden, kept), hidden

    zero = jnp.zeros((xs.shape[1], weights.shape[1] // 4))
    return lax.scan(cell, (zero, zero), xs)[1]


def image_block(kernel, x):
    made = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jax.nn.relu(made) + x


def pooled(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def message_passing(features, senders, receivers):
    return jax.ops.segment_sum(features[senders], receivers, features.shape[0])


def state_space(decay, x):
    def combine(left, right):
        return left[0] * right[0], right[0] * left[1] + right[1]

    return lax.associative_scan(combine, (jnp.broadcast_to(decay, x.shape), x))[1]


def denoise(weights, x, key):
    noise = jax.random.normal(key, x.shape)
    return jnp.mean((jnp.tanh((x + noise) @ weights) - noise) ** 2)


def adam_moments(parameter, gradient, first, second):
    first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
    return parameter - 1e-3 * first / (jnp.sqrt(second) + 1e-8), first, second


# Remat, loops, control ------------------------------------------------------------------------------------------------


def deep(weights, x):
    layer = jax.checkpoint(lambda x, w: (jnp.sin(x @ w), None))
    return lax.scan(layer, x, weights)[0].sum()


def newton(x):
    return lax.fori_loop(0, 10, lambda _, y: 0.5 * (y + x / y), x)


def collatz(x):
    return lax.while_loop(
        lambda s: (s[0] > 1).any(), lambda s: (jnp.where(s[0] % 2, 3 * s[0] + 1, s[0] // 2), s[1] + 1), (x, 0)
    )


def either(flag, x):
    return lax.cond(flag > 0, jnp.sin, lambda x: x @ x, x)


def branches(index, x):
    return lax.switch(index, [jnp.sin, jnp.cos, lambda x: x * 2], x)


def integrate(x):
    def slope(y):
        return jnp.stack([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])

    def step(y, _):
        a = slope(y)
        b = slope(y + 0.005 * a)
        return y + 0.01 * b, y

    return lax.scan(step, x, None, length=50)


# Numbers --------------------------------------------------------------------------------------------------------------


def positive(x):
    return x @ x.T + x.shape[0] * jnp.eye(x.shape[0])


def spectral_filter(x):
    return jnp.fft.irfft(jnp.fft.rfft(x) * jnp.exp(-jnp.arange(x.shape[-1] // 2 + 1) / 8.0), x.shape[-1])


def nearest(points, queries):
    return lax.top_k(-((points[None] - queries[:, None]) ** 2).sum(-1), 3)


def histogram(x):
    return jnp.zeros(32).at[jnp.clip((x * 32).astype(int), 0, 31)].add(1.0)


def shuffled(key, x):
    return jax.random.permutation(key, x)


def metropolis(key, x):
    def step(x, key):
        first, second = jax.random.split(key)
        proposal = x + jax.random.normal(first, x.shape)
        accept = jnp.log(jax.random.uniform(second, x.shape[:1])) < (x**2 - proposal**2).sum(-1) / 2
        return jnp.where(accept[:, None], proposal, x), None

    return lax.scan(step, x, jax.random.split(key, 20))[0]


def banded(x):
    return jnp.convolve(x, jnp.ones(5) / 5, mode="same")


KEY = jax.eval_shape(lambda: jax.random.key(0))
HEADS = bf16(2, 64, 4, 32)

PROGRAMS = (
    Program("dense layers", dense, (bf16(128, 256), bf16(256, 128), bf16(64, 128))),
    Program("gradient of dense layers", jax.grad(squared_error), (f32(64, 128), f32(128, 8), f32(32, 64), f32(32, 8))),
    Program("a descent step", descend, (f32(64, 128), f32(128, 8), f32(32, 64), f32(32, 8))),
    Program("attention", softmax_attention, (HEADS, HEADS, HEADS)),
    Program("gradient of attention", jax.grad(lambda *a: softmax_attention(*a).sum()), (HEADS, HEADS, HEADS)),
    Program("jax.nn attention", jax.nn.dot_product_attention, (HEADS, HEADS, HEADS)),
    Program("gated layers", gated, (bf16(128, 256), bf16(128, 256), bf16(256, 128), bf16(64, 128))),
    Program("root mean square norm", root_mean_square, (bf16(256), bf16(64, 256))),
    Program("layer norm", standardised, (f32(256), f32(256), f32(64, 256))),
    Program(
        "gradient of layer norm", jax.grad(lambda *a: standardised(*a).sum(), 2), (f32(256), f32(256), f32(64, 256))
    ),
    Program("rotary positions", rotated, (f32(2, 64, 4, 32),)),
    Program("token loss", token_loss, (f32(512, 64), i32(4, 33))),
    Program("gradient of a token loss", jax.grad(token_loss), (f32(512, 64), i32(4, 33))),
    Program("experts, top two", experts, (f32(64, 8), f32(8, 64, 64), f32(128, 64))),
    Program("recurrent scan", recurrent, (f32(64, 64), f32(32, 64), f32(16, 8, 32))),
    Program("long short-term memory", long_memory, (f32(96, 256), f32(16, 8, 32))),
    Program("residual convolution", image_block, (f32(3, 3, 16, 16), f32(2, 16, 16, 16))),
    Program(
        "gradient of a convolution",
        jax.grad(lambda k, x: image_block(k, x).sum()),
        (f32(3, 3, 8, 8), f32(2, 16, 16, 8)),
    ),
    Program("max pooling", pooled, (f32(2, 16, 16, 8),)),
    Program("gradient of max pooling", jax.grad(lambda x: pooled(x).sum()), (f32(2, 16, 16, 8),)),
    Program("messages on a graph", message_passing, (f32(100, 16), i32(400), i32(400))),
    Program("state space scan", state_space, (f32(64), f32(128, 64))),
    Program("denoising loss", denoise, (f32(64, 64), f32(32, 64), KEY)),
    Program("Adam", adam_moments, (f32(64, 64),) * 4),
    Program("remat in a scan", jax.grad(deep), (f32(6, 64, 64), f32(16, 64))),
    Program(
        "vmapped gradient", jax.vmap(jax.grad(lambda w, x: jnp.tanh(x @ w).sum()), (None, 0)), (f32(32), f32(16, 8, 32))
    ),
    Program("Hessian", jax.hessian(lambda x: jnp.sin(x).prod()), (f32(8),)),
    Program("Newton's square root", newton, (f32(1000),)),
    Program("while loop", collatz, (i32(64),)),
    Program("cond", either, (i32(), f32(32, 32))),
    Program("switch", branches, (i32(), f32(100))),
    Program("Lorenz", integrate, (f32(3),)),
    Program("Cholesky", lambda x: jnp.linalg.cholesky(positive(x)), (f32(32, 32),)),
    Program("QR", jnp.linalg.qr, (f32(32, 16),)),
    Program("singular values", partial(jnp.linalg.svd, compute_uv=False), (f32(16, 16),)),
    Program("symmetric eigenvalues", jnp.linalg.eigh, (f32(16, 16),)),
    Program("linear system", jnp.linalg.solve, (f32(16, 16), f32(16))),
    Program(
        "triangular system", lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True), (f32(32, 32), f32(32, 4))
    ),
    Program("log determinant", lambda x: jnp.linalg.slogdet(positive(x)), (f32(16, 16),)),
    Program("FFT filter", spectral_filter, (f32(8, 256),)),
    Program("FFT in two dimensions", lambda x: jnp.abs(jnp.fft.fft2(x)), (f32(4, 32, 32),)),
    Program("sort", jnp.sort, (f32(8, 1000),)),
    Program("argsort and gather", lambda x: x[jnp.argsort(x)], (f32(1000),)),
    Program("nearest neighbours", nearest, (f32(200, 8), f32(20, 8))),
    Program("histogram", histogram, (f32(1000),)),
    Program("cumulative sums", lambda x: jnp.cumsum(x, 1) / jnp.arange(1, 129), (f32(16, 128),)),
    Program("random normals", lambda key: jax.random.normal(key, (64, 64)), (KEY,)),
    Program("permutation", shuffled, (KEY, f32(256))),
    Program("Metropolis", metropolis, (KEY, f32(64, 2))),
    Program("moving average", banded, (f32(512),)),
)
