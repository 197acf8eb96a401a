"""Programs as people write them, from the fields in which JAX is used: simulations, numerics, training, sampling."""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax, random

REAL = []
KEY = random.key(0)


def weights(*shape, seed=2):
    """Return numbers that NumPy draws: JAX would compile a program for each shape as the tests are collected."""
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape, scale=0.3).astype(np.float32))


X, Y = weights(32, 8, seed=0) / 0.3, weights(32, 1, seed=1) / 0.3
LABELS = jnp.arange(32) % 4


def real(*args):
    """A function, and what it is called with."""

    def add(function):
        REAL.append((function, args))
        return function

    return add


def layer(n, m):
    return {"w": weights(n, m), "b": jnp.zeros(m)}


NET = {"inside": weights(8, 16), "out": weights(16, 1)}
LAYERS = [layer(8, 16), layer(16, 4)]


def net(params, x):
    return jnp.tanh(x @ params["inside"]) @ params["out"]


# Training -------------------------------------------------------------------------------------------------------------


def log_probabilities(params, image):
    for one in params[:-1]:
        image = jnp.maximum(0, image @ one["w"] + one["b"])
    logits = image @ params[-1]["w"] + params[-1]["b"]
    return logits - jax.scipy.special.logsumexp(logits)


def encoded(labels, count, dtype=jnp.float32):
    return jnp.array(labels[:, None] == jnp.arange(count), dtype)


@real(LAYERS, X, encoded(LABELS, 4))
def digits(params, images, targets):
    def loss(params):
        return -jnp.mean(jax.vmap(log_probabilities, in_axes=(None, 0))(params, images) * targets)

    grads = jax.grad(loss)(params)
    return [{"w": p["w"] - 0.1 * g["w"], "b": p["b"] - 0.1 * g["b"]} for p, g in zip(params, grads, strict=True)]


@real([(one["w"], one["b"]) for one in LAYERS], X, encoded(LABELS, 4))
def digits_by_pairs(params, x, y):
    def loss(params):
        h = x
        for w, b in params[:-1]:
            h = jnp.tanh(h @ w + b)
        w, b = params[-1]
        return jnp.mean((h @ w + b - y) ** 2)

    return [(w - 0.1 * dw, b - 0.1 * db) for (w, b), (dw, db) in zip(params, jax.grad(loss)(params), strict=True)]


ADAM = optax.adam(1e-2)
SCHEDULED = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.cosine_decay_schedule(0.1, 100)))


@real(NET, ADAM.init(NET), (X, Y))
def adam(params, state, batch):
    x, y = batch
    value, grads = jax.value_and_grad(lambda p, x, y: jnp.mean(optax.l2_loss(net(p, x), y)))(params, x, y)
    updates, state = ADAM.update(grads, state, params)
    params = optax.apply_updates(params, updates)
    return params, state, value


@real(NET, SCHEDULED.init(NET), X, Y)
def a_chain_with_a_schedule(params, state, x, y):
    grads = jax.grad(lambda p: jnp.mean((net(p, x) - y) ** 2))(params)
    updates, state = SCHEDULED.update(grads, state, params)
    return optax.apply_updates(params, updates), state


@real(NET, X, Y)
def metrics(params, x, y):
    def loss(p):
        guess = net(p, x)
        value = jnp.mean((guess - y) ** 2)
        return value, {"loss": value, "guess": jnp.linalg.norm(guess)}

    (_, values), grads = jax.value_and_grad(loss, has_aux=True)(params)
    return {**values, "gradient": sum(jnp.vdot(g, g) for g in jax.tree.leaves(grads))}


class Training(NamedTuple):
    params: dict
    state: tuple
    step: jax.Array


@real(Training(NET, ADAM.init(NET), jnp.zeros((), int)), {"x": X, "y": Y})
def a_state_that_goes_around(training, batch):
    value, grads = jax.value_and_grad(lambda p: jnp.mean((net(p, batch["x"]) - batch["y"]) ** 2))(training.params)
    updates, state = ADAM.update(grads, training.state)
    return Training(optax.apply_updates(training.params, updates), state, training.step + 1), value


class Trainer:
    def __init__(self, rate):
        self.optimizer = optax.sgd(rate, momentum=0.9)

    def loss(self, params, x, y):
        return jnp.mean((net(params, x) - y) ** 2)

    def step(self, params, state, x, y):
        value, grads = jax.value_and_grad(self.loss)(params, x, y)
        updates, state = self.optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value


TRAINER = Trainer(0.1)


@real(NET, TRAINER.optimizer.init(NET), X, Y)
def a_trainer_of_ones_own(params, state, x, y):
    return TRAINER.step(params, state, x, y)


@real(NET, X, Y)
def gradients_of_parts(params, x, y):
    total = None
    for xs, ys in zip(jnp.split(x, 4), jnp.split(y, 4), strict=True):
        grads = jax.grad(lambda p, xs=xs, ys=ys: jnp.mean((net(p, xs) - ys) ** 2))(params)
        total = grads if total is None else jax.tree.map(jnp.add, total, grads)
    return jax.tree.map(lambda t: t / 4, total)


@real(NET, X, Y)
def clipped_by_hand(params, x, y):
    leaves, structure = jax.tree.flatten(jax.grad(lambda p: jnp.mean((net(p, x) - y) ** 2))(params))
    norm = jnp.sqrt(sum(jnp.vdot(one, one) for one in leaves))
    return jax.tree.unflatten(structure, [one * jnp.minimum(1.0, 1.0 / norm) for one in leaves])


@dataclasses.dataclass
class Settings:
    rate: float = 0.1
    clip: float = 1.0
    act: str = "tanh"


SETTINGS = Settings()


@real(NET, X, Y)
def with_settings(params, x, y):
    act = {"tanh": jnp.tanh, "relu": jax.nn.relu}[SETTINGS.act]
    assert x.shape[0] == y.shape[0], f"{x.shape} and {y.shape}"
    if x.ndim != 2:
        raise ValueError(f"of rank {x.ndim}")
    grads = jax.grad(lambda p: jnp.mean((act(x @ p["inside"]) @ p["out"] - y) ** 2))(params)
    clip = SETTINGS.clip
    return {name: value - SETTINGS.rate * jnp.clip(grads[name], -clip, clip) for name, value in params.items()}


@real(KEY, NET, X)
def dropout(key, params, x, rate=0.5, train=True):
    h = jnp.tanh(x @ params["inside"])
    if train:
        h = jnp.where(random.bernoulli(key, 1 - rate, h.shape), h / (1 - rate), 0)
    return h @ params["out"]


MODEL = eqx.nn.MLP(8, 1, 16, 2, activation=jax.nn.relu, key=KEY)


@real(MODEL, X, Y)
def equinox_model(model, x, y):
    @eqx.filter_value_and_grad
    def loss(model):
        return jnp.mean((jax.vmap(model)(x) - y) ** 2)

    return loss(model)[0]


class Scaled(eqx.Module):
    weight: jax.Array
    scale: float = eqx.field(static=True)

    def __call__(self, x):
        return (self.weight @ x) * self.scale


class Stack(eqx.Module):
    layers: list

    def __call__(self, x):
        for one in self.layers:
            x = one(x)
        return x


STACK = Stack([Scaled(weights(16, 8), 0.5), jax.nn.relu, Scaled(weights(2, 16), 2.0)])


@real(X)
def equinox_from_outside(x):
    return jax.vmap(STACK)(x)


@real(Scaled(weights(4, 8), 0.5), X)
def equinox_as_argument(model, x):
    return jax.vmap(model)(x)


# Models ---------------------------------------------------------------------------------------------------------------


def normalized(x, g, b, eps=1e-5):
    mean, variance = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
    return g * (x - mean) / jnp.sqrt(variance + eps) + b


def smooth(x):
    return 0.5 * x * (1 + jnp.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def affine(x, w, b):
    return x @ w + b


def attended(q, k, v, mask):
    scores = q @ k.T / np.sqrt(q.shape[-1]) + mask
    scores = jnp.exp(scores - jnp.max(scores, -1, keepdims=True))
    return scores / jnp.sum(scores, -1, keepdims=True) @ v


def many_heads(x, into, out, heads):
    parts = [jnp.split(part, heads, axis=-1) for part in jnp.split(affine(x, **into), 3, axis=-1)]
    mask = (1 - jnp.tri(x.shape[0], dtype=x.dtype)) * -1e10
    return affine(jnp.hstack([attended(q, k, v, mask) for q, k, v in zip(*parts, strict=True)]), **out)


BLOCK = {
    "heads": {"into": layer(8, 24), "out": layer(8, 8)},
    "wide": {"up": layer(8, 32), "down": layer(32, 8)},
    "first": {"g": jnp.ones(8), "b": jnp.zeros(8)},
    "second": {"g": jnp.ones(8), "b": jnp.zeros(8)},
}


@real(X[:6], BLOCK)
def a_transformer_block(x, block):
    def run(x, heads, wide, first, second):
        x = x + many_heads(normalized(x, **first), **heads, heads=2)
        return x + affine(smooth(affine(normalized(x, **second), **wide["up"])), **wide["down"])

    return run(x, **block)


RNN = {"wx": weights(8, 16), "wh": weights(16, 16), "wy": weights(16, 4), "b": jnp.zeros(16)}


@real(RNN, X[:6])
def a_recurrent_loop(params, xs):
    h, outs = jnp.zeros(16), []
    for x in xs:
        h = jnp.tanh(x @ params["wx"] + h @ params["wh"] + params["b"])
        outs.append(h @ params["wy"])
    return jnp.stack(outs), h


@real(RNN, X[:6])
def a_recurrent_scan(params, xs):
    def cell(h, x):
        h = jnp.tanh(x @ params["wx"] + h @ params["wh"] + params["b"])
        return h, h @ params["wy"]

    return lax.scan(cell, jnp.zeros(16), xs)


@real(jnp.ones((1, 8, 8, 1)), weights(3, 3, 1, 4), weights(64, 10))
def a_convolutional_net(x, kernel, w):
    x = jax.nn.relu(lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return x.reshape((x.shape[0], -1)) @ w


class Node:
    def __init__(self, data, parents=()):
        self.data, self.parents = data, parents

    def __add__(self, other):
        return Node(self.data + other.data, (self, other))

    def __mul__(self, other):
        return Node(self.data * other.data, (self, other))


@real(X, X)
def a_graph_of_ones_own(a, b):
    return (Node(a) * Node(b) + Node(a)).data


# Simulations ----------------------------------------------------------------------------------------------------------


@real(weights(16, 3), weights(16, 3, seed=3), jnp.ones(16))
def stars(place, speed, mass, dt=0.01):
    apart = place[None] - place[:, None]
    inverse = (jnp.sum(apart**2, -1) + 0.01) ** -1.5
    speed = speed + jnp.einsum("ijk,ij,j->ik", apart, inverse, mass) * dt
    return place + speed * dt, speed


@real((random.uniform(KEY, (16, 16)) > 0.5).astype(int))
def life(cells):
    around = sum(jnp.roll(jnp.roll(cells, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    return jnp.where((around == 3) | ((cells == 1) & (around == 2)), 1, 0)


@real(weights(16, 16))
def heat(u, rate=0.1):
    inside = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
    return u.at[1:-1, 1:-1].add(rate * inside)


SHARES = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
EAST = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1])
NORTH = np.array([0, 0, 1, 0, -1, 1, 1, -1, -1])


@real(jnp.ones((8, 8, 9)) + 0.01 * weights(8, 8, 9))
def a_lattice_of_fluid(f):
    for i, (east, north) in enumerate(zip(EAST, NORTH, strict=True)):
        f = f.at[:, :, i].set(jnp.roll(jnp.roll(f[:, :, i], east, 1), north, 0))
    density = f.sum(2)
    x, y = (f * EAST).sum(2) / density, (f * NORTH).sum(2) / density
    rest = []
    for east, north, share in zip(EAST, NORTH, SHARES, strict=True):
        along = east * x + north * y
        rest.append(density * share * (1 + 3 * along + 4.5 * along**2 - 1.5 * (x**2 + y**2)))
    return f - (f - jnp.stack(rest, -1)) / 0.6


def lorenz(state, t, a=10.0, b=8.0 / 3, c=28.0):
    x, y, z = state
    return jnp.array([a * (y - x), x * (c - z) - y, x * y - b * z])


def runge_kutta(f, y, t, dt):
    k1 = f(y, t)
    k2 = f(y + 0.5 * dt * k1, t + 0.5 * dt)
    k3 = f(y + 0.5 * dt * k2, t + 0.5 * dt)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + f(y + dt * k3, t + dt))


@real(jnp.ones(3), 0.0, 0.01)
def weather(y, t, dt):
    return runge_kutta(lorenz, y, t, dt)


@real(jnp.ones(2))
def a_pendulum(state):
    q, p = state[0], state[1]

    def energy(q, p):
        return p**2 / 2 - jnp.cos(q)

    for _ in range(3):
        p = p - 0.05 * jax.grad(energy, 0)(q, p)
        q = q + 0.1 * jax.grad(energy, 1)(q, p)
    return jnp.stack([q, p])


# Numerics -------------------------------------------------------------------------------------------------------------


@real(jnp.ones(4), jnp.eye(4), jnp.ones(2), jnp.eye(4) * 1.1, jnp.eye(2, 4))
def kalman(x, spread, seen, f, h):
    x, spread = f @ x, f @ spread @ f.T + 0.1 * jnp.eye(4)
    gain = spread @ h.T @ jnp.linalg.inv(h @ spread @ h.T + jnp.eye(2))
    return x + gain @ (seen - h @ x), (jnp.eye(spread.shape[0]) - gain @ h) @ spread


@real(X[:4], X)
def k_means(centres, x):
    nearest = jnp.argmin(jnp.linalg.norm(x[:, None] - centres[None], axis=-1), axis=1)
    moved = []
    for k in range(centres.shape[0]):
        mine = (nearest == k)[:, None]
        moved.append(jnp.sum(x * mine, 0) / jnp.maximum(mine.sum(), 1))
    return jnp.stack(moved), nearest


@real(jnp.ones(6) / 6, random.uniform(KEY, (6, 6)))
def page_rank(rank, links, damping=0.85):
    links = links / links.sum(0, keepdims=True)
    for _ in range(10):
        rank = damping * links @ rank + (1 - damping) / rank.shape[0]
    return rank / rank.sum()


@real(jnp.ones(6), random.uniform(KEY, (6, 6)))
def largest_eigenvalue(v, a):
    for _ in range(10):
        v = a @ v
        v = v / jnp.linalg.norm(v)
    return v, v @ a @ v


@real(jnp.eye(5) * 2, jnp.ones(5))
def conjugate_gradients(a, b):
    x, r = jnp.zeros_like(b), b
    p, rs = r, r @ r
    for _ in range(len(b)):
        ap = a @ p
        step = rs / (p @ ap + 1e-12)
        x, r = x + step * p, r - step * ap
        rs, before = r @ r, rs
        p = r + rs / (before + 1e-12) * p
    return x


@real(X, Y[:, 0])
def a_gaussian_process(x, y):
    k = jnp.exp(-0.5 * jnp.sum((x[:, None] - x[None]) ** 2, -1)) + 0.1 * jnp.eye(len(x))
    return jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(k, lower=True), y), jnp.linalg.slogdet(k)[1]


@real(X, Y)
def ridge(x, y, weight=0.1):
    return jnp.linalg.solve(x.T @ x + weight * jnp.eye(x.shape[1]), x.T @ y)


@real(jnp.array(2.0))
def a_root_by_halves(target):
    low, high = jnp.zeros(()), jnp.full((), 3.0)
    for _ in range(10):
        middle = (low + high) / 2
        is_above = middle**2 > target
        low, high = jnp.where(is_above, low, middle), jnp.where(is_above, middle, high)
    return low


@real(jnp.ones(4) / 4, jnp.full((4, 4), 0.25), jnp.full((4, 3), 1 / 3), jnp.array([0, 1, 2]))
def a_hidden_chain(start, moves, shows, seen):
    now = start * shows[:, seen[0]]
    totals = [now.sum()]
    for one in seen[1:]:
        now = (now / totals[-1]) @ moves * shows[:, one]
        totals.append(now.sum())
    return jnp.sum(jnp.log(jnp.array(totals)))


@real([weights(2, 3), weights(3, 4), weights(4, 2)])
def a_product_of_many(matrices):
    return functools.reduce(jnp.matmul, matrices)


@real(jnp.ones(3))
def second_derivatives(v):
    def f(w):
        return -jnp.sum(jnp.log(jax.nn.sigmoid(X[:, :3] @ w)))

    value, back = jax.vjp(f, v)
    return jax.jvp(jax.grad(f), (v,), (jnp.ones(3),))[1], back(jnp.ones_like(value)), jax.hessian(f)(v)


# Sampling -------------------------------------------------------------------------------------------------------------


@real(KEY, jnp.zeros(3))
def metropolis(key, x, log_density=lambda x: -0.5 * jnp.sum(x**2)):
    for _ in range(3):
        key, first, second = random.split(key, 3)
        other = x + 0.5 * random.normal(first, x.shape)
        taken = jnp.log(random.uniform(second)) < log_density(other) - log_density(x)
        x = jnp.where(taken, other, x)
    return key, x


@real(KEY, jnp.zeros(3))
def langevin(key, x, step=0.1):
    slope = jax.grad(lambda x: -0.25 * jnp.sum(x**4))(x)
    return x + step * slope + jnp.sqrt(2 * step) * random.normal(key, x.shape)


@real({"mean": jnp.zeros(3), "spread": jnp.zeros(3)}, KEY)
def a_lower_bound(q, key):
    def once(key):
        scale = jax.nn.softplus(q["spread"])
        z = q["mean"] + scale * random.normal(key, (3,))
        normal = jax.scipy.stats.norm.logpdf
        return normal(z).sum() - normal(z, q["mean"], scale).sum()

    return jnp.mean(jax.vmap(once)(random.split(key, 4)))


@real(X)
def parts_by_name(x):
    parts, kept = {}, {}
    for i, name in enumerate(["a", "b", "c"]):
        parts[name] = x * i
        parts[f"{name}_squared"] = parts[name] ** 2
        kept.setdefault(i % 2, []).append(x + i)
    return parts, [sum(some) for some in kept.values()]


@real(X, 3)
def a_counter_of_its_own(x, n):
    count = 0

    def step(v):
        nonlocal count
        count += 1
        return v + count

    for _ in range(n):
        x = step(x)
    return x
