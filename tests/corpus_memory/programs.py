"""The programs: of every kind that asks something else of memory. None is run, so their arguments are shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax import ShapeDtypeStruct as Struct
from jax import lax

from tests.examples import training

PROGRAMS: dict[str, Callable[[], Program]] = {}


@dataclass(frozen=True)
class Program:
    """A function with its arguments, and which of them are donated."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    donated: tuple[int, ...] = ()


def program(make: Callable[[], Program]) -> Callable[[], Program]:
    """Enter a program under its function's name."""
    PROGRAMS[make.__name__] = make
    return make


def f32(*shape: int) -> Struct:
    return Struct(shape, jnp.float32)


def i32(*shape: int) -> Struct:
    return Struct(shape, jnp.int32)


SQUARE = f32(256, 256)


# Straight lines -------------------------------------------------------------------------------------------------------


@program
def elementwise_chain() -> Program:
    return Program(lambda x: jnp.cumsum(jnp.exp(jnp.sin(x) * 2) + x, axis=0), (SQUARE,))


@program
def matmul_chain() -> Program:
    return Program(lambda x, y: jnp.tanh(jnp.tanh(x @ y) @ y) @ x, (SQUARE, SQUARE))


@program
def softmax() -> Program:
    return Program(lambda x: jax.nn.softmax(x * 3, axis=-1), (f32(512, 1000),))


@program
def layer_norm() -> Program:
    def norm(x, gain):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + 1e-6) * gain

    return Program(norm, (f32(512, 768), f32(768)))


@program
def several_outputs() -> Program:
    return Program(lambda x: (x.sum(), jnp.sin(x), x @ x, {"t": x.T + 1}), (SQUARE,))


@program
def baked_in_table() -> Program:
    table = np.random.default_rng(0).normal(size=(256, 256)).astype(np.float32)
    return Program(lambda x: jnp.tanh(x @ table) @ table, (SQUARE,))


@program
def mixed_types() -> Program:
    def mixed(x, key):
        low = x.astype(jnp.bfloat16) @ x.astype(jnp.bfloat16).T
        return jnp.where(low > 0, low.astype(jnp.float32), key.astype(jnp.float32)), (low > 1).sum()

    return Program(mixed, (f32(300, 200), Struct((300, 300), jnp.int8)))


@program
def complex_numbers() -> Program:
    return Program(lambda x: jnp.abs(jnp.exp(1j * x) @ jnp.exp(-1j * x)), (SQUARE,))


@program
def convolutions() -> Program:
    def net(x, first, second):
        x = jax.nn.relu(lax.conv(x, first, (1, 1), "SAME"))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        return lax.conv(x, second, (1, 1), "SAME").mean((2, 3))

    return Program(net, (f32(8, 3, 64, 64), f32(16, 3, 3, 3), f32(32, 16, 3, 3)))


@program
def random_numbers() -> Program:
    def draw(key, x):
        first, second = jax.random.split(key)
        return jax.random.normal(first, (256, 256)) @ x + jax.random.bernoulli(second, 0.5, (256, 256))

    return Program(draw, (jax.eval_shape(jax.random.key, 0), SQUARE))


# Sorting and places -------------------------------------------------------------------------------------------------


@program
def sort_keys() -> Program:
    return Program(lambda x: jnp.sort(x * 2, axis=-1) + 1, (f32(512, 1024),))


@program
def sort_pairs() -> Program:
    def pairs(keys, values):
        keys, values, more = lax.sort((keys * 2, values + 1, keys - values), num_keys=1)
        return keys.sum(), values @ values, more

    return Program(pairs, (SQUARE, SQUARE))


@program
def argsort() -> Program:
    return Program(lambda x: jnp.argsort(jnp.sin(x), axis=-1), (f32(256, 512),))


@program
def top_k() -> Program:
    return Program(lambda x: lax.top_k(jnp.sin(x), 32), (f32(256, 1000),))


@program
def median() -> Program:
    return Program(lambda x: jnp.median(x + 1, axis=0), (f32(1000, 100),))


@program
def scatter_add() -> Program:
    return Program(lambda x, i, u: x.at[i].add(u), (f32(1000, 256), i32(100), f32(100, 256)))


@program
def scatter_add_donated() -> Program:
    return Program(lambda x, i, u: x.at[i].add(u), (f32(1000, 256), i32(100), f32(100, 256)), (0,))


@program
def embedding_gradient() -> Program:
    def loss(table, tokens, w):
        return jnp.sum(jnp.tanh(table[tokens] @ w) ** 2)

    return Program(jax.grad(loss, (0, 2)), (f32(5000, 64), i32(32, 50), f32(64, 64)))


@program
def histogram() -> Program:
    return Program(lambda x: jnp.histogram(x, bins=64)[0], (f32(100_000),))


@program
def updates_in_place() -> Program:
    def write(x, u):
        x = lax.dynamic_update_slice(jnp.sin(x), u, (3, 5))
        return x.at[10:20].set(u[:10, :1]).at[:, 7].multiply(2.0)

    return Program(write, (SQUARE, f32(16, 16)))


@program
def cache_donated() -> Program:
    def decode(cache, x, at):
        keys = lax.dynamic_update_slice(cache["k"], x, (0, at, 0))
        values = lax.dynamic_update_slice(cache["v"], x * 2, (0, at, 0))
        weights = jax.nn.softmax(jnp.einsum("bsd,btd->bst", x, keys))
        return {"k": keys, "v": values}, jnp.einsum("bst,btd->bsd", weights, values)

    cache = {"k": f32(4, 512, 64), "v": f32(4, 512, 64)}
    return Program(decode, (cache, f32(4, 1, 64), i32()), (0,))


# Loops and branches ---------------------------------------------------------------------------------------------------


@program
def scan_carry() -> Program:
    def scan(x, w):
        return lax.scan(lambda c, _: (jnp.tanh(c @ w), c.sum()), x, None, length=20)

    return Program(scan, (SQUARE, SQUARE))


@program
def scan_carry_donated() -> Program:
    return Program(scan_carry().function, (SQUARE, SQUARE), (0,))


@program
def scan_stacks() -> Program:
    return Program(lambda x, w: lax.scan(lambda c, r: (jnp.tanh(c @ w + r), c), x[0], x), (f32(64, 128), f32(128, 128)))


@program
def scan_gradient() -> Program:
    def loss(w, x):
        return lax.scan(lambda c, r: (jnp.tanh(c @ w + r), None), jnp.zeros((32, 128)), x)[0].sum()

    return Program(jax.grad(loss), (f32(128, 128), f32(40, 32, 128)))


@program
def scans_nested() -> Program:
    def outer(carry, _):
        inner = lax.scan(lambda d, _: (jnp.sin(d @ carry), None), carry, None, length=3)[0]
        return carry + inner, inner.sum()

    return Program(lambda x: lax.scan(outer, x, None, length=4), (SQUARE,))


@program
def gru() -> Program:
    def step(p, h, x):
        z, r = jax.nn.sigmoid(x @ p["xz"] + h @ p["hz"]), jax.nn.sigmoid(x @ p["xr"] + h @ p["hr"])
        return (1 - z) * h + z * jnp.tanh(x @ p["xh"] + (r * h) @ p["hh"])

    def loss(p, x):
        return (lax.scan(lambda h, x: (step(p, h, x), h), jnp.zeros((16, 96)), x)[1] ** 2).mean()

    weights = {name: f32(64 if name[0] == "x" else 96, 96) for name in ("xz", "hz", "xr", "hr", "xh", "hh")}
    return Program(jax.value_and_grad(loss), (weights, f32(30, 16, 64)))


@program
def while_converges() -> Program:
    def newton(a):
        def body(state):
            x, _ = state
            following = 0.5 * (x @ (3 * jnp.eye(128) - a @ x @ x))
            return following, jnp.abs(following - x).max()

        return lax.while_loop(lambda s: s[1] > 1e-6, body, (jnp.eye(128), jnp.float32(1)))[0]

    return Program(newton, (f32(128, 128),))


@program
def fori_writes() -> Program:
    return Program(lambda x: lax.fori_loop(1, 256, lambda i, a: a.at[i].set(jnp.sin(a[i - 1])), x), (SQUARE,))


@program
def fori_writes_donated() -> Program:
    return Program(fori_writes().function, (SQUARE,), (0,))


@program
def cond_branches() -> Program:
    def branch(p, x):
        return lax.cond(p > 0, lambda x: jnp.sin(x) @ x, lambda x: (x @ x) @ x, x * 2)

    return Program(branch, (i32(), SQUARE))


@program
def switch_branches() -> Program:
    branches = [lambda x: (x, x.sum()), lambda x: (x @ x, x[0, 0]), lambda x: (jnp.sort(x.T), x.max())]
    return Program(lambda i, x: lax.switch(i, branches, jnp.sin(x)), (i32(), SQUARE))


@program
def cond_in_scan() -> Program:
    def body(c, i):
        return lax.cond(i % 2 == 0, lambda c: c @ c, lambda c: jnp.sin(c), c), c[0]

    return Program(lambda x: lax.scan(body, x, jnp.arange(10)), (SQUARE,))


@program
def associative_scan() -> Program:
    return Program(
        lambda a, b: lax.associative_scan(lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (a, b)),
        (f32(512, 64), f32(512, 64)),
    )


# Libraries ----------------------------------------------------------------------------------------------------------


@program
def fft_filter() -> Program:
    return Program(lambda x: jnp.fft.irfft2(jnp.fft.rfft2(x) * 0.5).real, (SQUARE,))


@program
def cholesky_solve() -> Program:
    return Program(lambda a, b: jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(a @ a.T), b), (SQUARE, f32(256)))


@program
def qr() -> Program:
    return Program(lambda a: jnp.linalg.qr(a + 1), (f32(300, 200),))


@program
def svd() -> Program:
    return Program(lambda a: jnp.linalg.svd(a * 2, full_matrices=False), (f32(200, 120),))


@program
def eigenvalues() -> Program:
    return Program(lambda a: jnp.linalg.eigh(a + a.T), (f32(160, 160),))


@program
def lu_solve() -> Program:
    return Program(lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.slogdet(a)), (SQUARE, f32(256, 8)))


# Gradients and training -----------------------------------------------------------------------------------------------


def mlp_loss(weights: list[Any], x: Any) -> Any:
    for w in weights[:-1]:
        x = jnp.tanh(x @ w)
    return jnp.mean((x @ weights[-1]) ** 2)


MLP = [f32(128, 256), f32(256, 256), f32(256, 256), f32(256, 10)]


@program
def mlp_gradient() -> Program:
    return Program(jax.value_and_grad(mlp_loss), (MLP, f32(512, 128)))


@program
def mlp_remat() -> Program:
    def loss(weights, x):
        for w in weights[:-1]:
            x = jax.checkpoint(lambda x, w: jnp.tanh(jnp.tanh(x @ w) * 2))(x, w)
        return jnp.mean((x @ weights[-1]) ** 2)

    return Program(jax.value_and_grad(loss), (MLP, f32(512, 128)))


def optax_step(optimizer: Any, loss: Callable[..., Any], weights: Any, batch: Any, donated: bool) -> Program:
    def step(weights, state, batch):
        value, gradients = jax.value_and_grad(loss)(weights, batch)
        updates, state = optimizer.update(gradients, state, weights)
        return optax.apply_updates(weights, updates), state, value

    return Program(step, (weights, jax.eval_shape(optimizer.init, weights), batch), (0, 1) if donated else ())


@program
def mlp_sgd() -> Program:
    return optax_step(optax.sgd(0.1, momentum=0.9), mlp_loss, MLP, f32(64, 128), donated=False)


@program
def mlp_adam() -> Program:
    return optax_step(optax.adam(1e-3), mlp_loss, MLP, f32(64, 128), donated=False)


@program
def mlp_adamw_donated() -> Program:
    chain = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    return optax_step(chain, mlp_loss, MLP, f32(64, 128), donated=True)


@program
def transformer_step() -> Program:
    state = jax.eval_shape(lambda: training.initial(2))
    return Program(training.step, (state, i32(8, 33)))


@program
def transformer_step_donated() -> Program:
    state = jax.eval_shape(lambda: training.initial(2))
    return Program(training.step, (state, i32(8, 33)), (0,))


@program
def attention_gradient() -> Program:
    def loss(q, k, v):
        scores = jnp.einsum("bhsd,bhtd->bhst", q, k) / 8
        return jnp.einsum("bhst,bhtd->bhsd", jax.nn.softmax(scores), v).sum()

    shape = f32(4, 4, 128, 64)
    return Program(jax.grad(loss, (0, 1, 2)), (shape, shape, shape))


@program
def nnx_conv_net() -> Program:
    class Net(nnx.Module):
        def __init__(self, rngs):
            self.conv = nnx.Conv(3, 16, (3, 3), rngs=rngs)
            self.norm = nnx.BatchNorm(16, rngs=rngs)
            self.head = nnx.Linear(16, 10, rngs=rngs)

        def __call__(self, x):
            return self.head(nnx.relu(self.norm(self.conv(x))).mean((1, 2)))

    graph, state = nnx.split(nnx.eval_shape(lambda: Net(nnx.Rngs(0))))

    def loss(state, x):
        return (nnx.merge(graph, state)(x) ** 2).mean()

    return Program(jax.value_and_grad(loss, allow_int=True), (state, f32(8, 32, 32, 3)))


@program
def equinox_mlp() -> Program:
    net = eqx.filter_eval_shape(lambda: eqx.nn.MLP(64, 10, 128, 3, key=jax.random.key(0)))
    arrays, rest = eqx.partition(net, lambda leaf: isinstance(leaf, Struct))

    def loss(arrays, x):
        return (jax.vmap(eqx.combine(arrays, rest))(x) ** 2).mean()

    return Program(jax.grad(loss), (arrays, f32(256, 64)))


@program
def hamiltonian_steps() -> Program:
    def energy(q):
        return jnp.sum(q @ q.T) / 2 + jnp.sum(jnp.cos(q))

    def leapfrog(state, _):
        q, p = state
        p = p - 0.05 * jax.grad(energy)(q)
        q = q + 0.1 * p
        return (q, p - 0.05 * jax.grad(energy)(q)), energy(q)

    return Program(lambda q, p: lax.scan(leapfrog, (q, p), None, length=10), (f32(64, 200), f32(64, 200)))


@program
def hessian() -> Program:
    return Program(jax.hessian(lambda x: jnp.sum(jnp.sin(x) ** 3 * x.sum())), (f32(200),))


@program
def vmapped_solve() -> Program:
    return Program(jax.vmap(lambda a, b: jnp.linalg.solve(a @ a.T + jnp.eye(16), b)), (f32(64, 16, 16), f32(64, 16)))


# Written after the rules ----------------------------------------------------------------------------------------------


@program
def beam_search() -> Program:
    def step(state, _):
        scores, tokens, w = state
        following = jax.nn.log_softmax(jnp.tanh(tokens @ w)) + scores[:, None]
        best, at = lax.top_k(following.reshape(-1), 16)
        return (best, tokens[at // 512] * 0.5, w), at

    return Program(lambda s, t, w: lax.scan(step, (s, t, w), None, length=12), (f32(16), f32(16, 512), f32(512, 512)))


@program
def kalman_filter() -> Program:
    def step(state, z):
        x, p = state
        x, p = x * 0.9, p * 0.81 + jnp.eye(48)
        gain = jnp.linalg.solve(p + jnp.eye(48), p).T
        return (x + gain @ (z - x), p - gain @ p), x

    return Program(lambda z: lax.scan(step, (jnp.zeros(48), jnp.eye(48)), z), (f32(100, 48),))


@program
def ode_adaptive() -> Program:
    def solve(y, w):
        def field(y):
            return jnp.tanh(y @ w)

        def body(state):
            y, h, t = state
            half = y + h / 2 * field(y)
            full, two = y + h * field(y), half + h / 2 * field(half)
            error = jnp.abs(full - two).max()
            good = error < 1e-3
            return jnp.where(good, two, y), jnp.where(good, h * 1.5, h / 2), jnp.where(good, t + h, t)

        return lax.while_loop(lambda s: s[2] < 1, body, (y, jnp.float32(0.1), jnp.float32(0)))

    return Program(solve, (f32(128, 64), f32(64, 64)))


@program
def image_warp() -> Program:
    def warp(image, x, y):
        low, left = jnp.floor(y).astype(int), jnp.floor(x).astype(int)
        fy, fx = y - low, x - left
        top = image[low, left] * (1 - fx) + image[low, left + 1] * fx
        return top * (1 - fy) + (image[low + 1, left] * (1 - fx) + image[low + 1, left + 1] * fx) * fy

    return Program(jax.value_and_grad(lambda i, x, y: warp(i, x, y).sum()), (f32(128, 128), f32(100, 90), f32(100, 90)))


@program
def graph_messages() -> Program:
    def loss(w, h, senders, receivers):
        for _ in range(3):
            sent = jax.nn.relu(h[senders] @ w)
            h = jax.ops.segment_sum(sent, receivers, 500) + h
        return (h**2).mean()

    return Program(jax.grad(loss), (f32(64, 64), f32(500, 64), i32(3000), i32(3000)))


@program
def mixture_of_experts() -> Program:
    def layer(x, gate, up, down):
        weights, at = lax.top_k(jax.nn.softmax(x @ gate), 2)
        hidden = jax.nn.silu(jnp.einsum("nd,edf->nef", x, up))
        out = jnp.einsum("nef,efd->ned", hidden, down)
        return jnp.einsum("nk,nkd->nd", weights, jnp.take_along_axis(out, at[..., None], 1))

    return Program(layer, (f32(128, 64), f32(64, 8), f32(8, 64, 128), f32(8, 128, 64)))


@program
def conjugate_gradient() -> Program:
    return Program(
        lambda a, b: jax.scipy.sparse.linalg.cg(lambda x: a @ x, b, maxiter=20)[0], (f32(200, 200), f32(200))
    )


@program
def lanczos_donated() -> Program:
    def step(i, state):
        v, basis = state
        basis = basis.at[i].set(v)
        v = jnp.sin(v) - basis.T @ (basis @ v)
        return v / jnp.linalg.norm(v), basis

    return Program(lambda v, b: lax.fori_loop(0, 32, step, (v, b)), (f32(2048), f32(32, 2048)), (1,))


@program
def remat_scan() -> Program:
    def loss(w, x):
        body = jax.checkpoint(lambda c, w: (jnp.tanh(jnp.tanh(c @ w) @ w.T), None))
        return lax.scan(body, x, w)[0].sum()

    return Program(jax.grad(loss), (f32(12, 96, 96), f32(64, 96)))


@program
def adafactor_step() -> Program:
    return optax_step(optax.adafactor(1e-3), mlp_loss, MLP, f32(64, 128), donated=True)


@program
def jacobian_both_ways() -> Program:
    def f(x):
        return jnp.tanh(x @ jnp.sin(x[:, None] * x[None, :]))

    return Program(lambda x: (jax.jacfwd(f)(x), jax.jacrev(f)(x)), (f32(96),))


@program
def unique_and_set() -> Program:
    return Program(lambda x: (jnp.unique(x, size=500), jnp.isin(x, x[:100] + 1)), (i32(5000),))


@program
def polyphase_filter() -> Program:
    def filtered(x, h):
        return jnp.abs(jnp.fft.fft(jnp.stack([jnp.convolve(row, h, "same") for row in x]), axis=0)) ** 2

    return Program(filtered, (f32(4, 4096), f32(33)))


@program
def ring_buffer_donated() -> Program:
    def push(buffer, at, x):
        return lax.dynamic_update_slice(buffer, x[None], (at % 64, 0)), at + 1, buffer.mean(0)

    return Program(push, (f32(64, 1024), i32(), f32(1024)), (0,))
