"""Fresh clean programs: lint should say nothing of them but notes. Written before lint saw them."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import optax

X = jnp.arange(1.0, 5.0)
IMAGES = jax.random.normal(jax.random.key(1), (2, 8, 8, 3))
TOKENS = jnp.array([[1, 4, 2, 0], [3, 3, 0, 0]])


def attention_with_a_causal_mask():
    def attend(q, k, v):
        scores = q @ k.T / math.sqrt(q.shape[-1])
        mask = jnp.tril(jnp.ones(scores.shape, bool))
        return jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), axis=-1) @ v

    q = jax.random.normal(jax.random.key(0), (4, 8))
    return attend, (q, q + 1, q * 2)


def layer_norm():
    def norm(x, scale, bias):
        mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(var + 1e-6) * scale + bias

    return norm, (jnp.ones((3, 4)), jnp.ones(4), jnp.zeros(4))


def zero_initialized_network():
    def loss(params, x, y):
        h = jax.nn.relu(x @ params["w1"] + params["b1"])
        return jnp.mean((h @ params["w2"] - y) ** 2)

    params = {"w1": jnp.zeros((4, 8)), "b1": jnp.zeros(8), "w2": jnp.zeros((8, 1))}
    return jax.value_and_grad(loss), (params, jnp.ones((5, 4)), jnp.ones((5, 1)))


def cross_entropy():
    def loss(logits, labels):
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1).mean()

    return loss, (jnp.array([[100.0, -100.0], [0.0, 3.0]]), jnp.array([0, 1]))


def stable_binary_cross_entropy():
    def loss(z, y):
        return jnp.mean(jnp.maximum(z, 0) - z * y + jnp.log1p(jnp.exp(-jnp.abs(z))))

    return loss, (jnp.array([100.0, -100.0]), jnp.array([1.0, 0.0]))


def safe_norm():
    def norm(x):
        squared = jnp.sum(x**2)
        is_zero = squared == 0
        return jnp.where(is_zero, 0.0, jnp.sqrt(jnp.where(is_zero, 1.0, squared)))

    return norm, (jnp.zeros(3),)


def entropy_done_right():
    def entropy(p):
        return jax.scipy.special.entr(p).sum()

    return entropy, (jnp.array([0.2, 0.8]),)


def variational_autoencoder():
    def loss(params, x, key):
        hidden = jnp.tanh(x @ params["enc"])
        mean, logvar = jnp.split(hidden, 2, axis=-1)
        z = mean + jnp.exp(0.5 * logvar) * jax.random.normal(key, mean.shape)
        out = z @ params["dec"]
        kl = -0.5 * jnp.sum(1 + logvar - mean**2 - jnp.exp(logvar), axis=-1)
        return jnp.mean(jnp.sum((out - x) ** 2, -1) + kl)

    params = {"enc": jnp.ones((4, 4)) * 0.1, "dec": jnp.ones((2, 4)) * 0.1}
    return jax.value_and_grad(loss), (params, jnp.ones((3, 4)), jax.random.key(0))


def policy_gradient():
    def loss(logits, actions, old, advantages):
        logp = jnp.take_along_axis(jax.nn.log_softmax(logits), actions[:, None], 1)[:, 0]
        ratio = jnp.exp(logp - old)
        clipped = jnp.clip(ratio, 0.8, 1.2)
        return -jnp.minimum(ratio * advantages, clipped * advantages).mean()

    return jax.grad(loss), (jnp.ones((4, 2)), jnp.array([0, 1, 1, 0]), jnp.full(4, -0.7), X)


def temporal_difference():
    def loss(w, s, a, r, s2, done):
        q = jnp.take_along_axis(s @ w, a[:, None], 1)[:, 0]
        target = r + 0.99 * (1 - done) * jax.lax.stop_gradient((s2 @ w).max(-1))
        return jnp.mean(optax.huber_loss(q, target))

    s = jnp.ones((4, 3))
    return jax.grad(loss), (jnp.ones((3, 2)), s, jnp.array([0, 1, 0, 1]), X, s * 2, jnp.zeros(4))


def straight_through_rounding():
    def loss(w, x):
        q = w + jax.lax.stop_gradient(jnp.round(w * 8) / 8 - w)
        return jnp.sum(q * x)

    return jax.grad(loss), (jnp.ones(3), jnp.arange(3.0))


def gumbel_softmax():
    def sample(logits, key):
        noise = jax.random.gumbel(key, logits.shape)
        soft = jax.nn.softmax((logits + noise) / 0.5)
        hard = jax.nn.one_hot(soft.argmax(-1), logits.shape[-1])
        return hard + soft - jax.lax.stop_gradient(soft)

    return sample, (jnp.ones((2, 3)), jax.random.key(0))


def lstm():
    def run(params, xs):
        def cell(carry, x):
            h, c = carry
            i, f, g, o = jnp.split(jnp.concatenate([x, h]) @ params, 4)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        return jax.lax.scan(cell, (jnp.zeros(4), jnp.zeros(4)), xs)[1]

    return run, (jnp.ones((6, 16)) * 0.1, jnp.ones((5, 2)))


def rotary_embedding():
    def rope(x):
        half = x.shape[-1] // 2
        freq = 1.0 / 10_000 ** (jnp.arange(half) / half)
        angle = jnp.arange(x.shape[0])[:, None] * freq
        a, b = x[:, :half], x[:, half:]
        return jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), a * jnp.sin(angle) + b * jnp.cos(angle)], -1)

    return rope, (jnp.ones((3, 8)),)


def mixture_of_experts():
    def moe(x, gate, experts):
        weights, chosen = jax.lax.top_k(jax.nn.softmax(x @ gate), 2)
        mask = jax.nn.one_hot(chosen, gate.shape[1]) * weights[..., None]
        return jnp.einsum("bke,bd,edf->bf", mask, x, experts)

    return moe, (jnp.ones((3, 4)), jax.random.normal(jax.random.key(0), (4, 5)), jnp.ones((5, 4, 4)))


def decode_with_a_cache():
    @partial(jax.jit, donate_argnums=0)
    def decode(cache, new, at):
        cache = jax.lax.dynamic_update_slice(cache, new, (at, 0))
        mask = jnp.arange(cache.shape[0]) <= at
        return cache, jnp.where(mask[:, None], cache, 0).sum(0)

    return decode, (jnp.zeros((1024, 512)), jnp.ones((1, 512)), 3)


def sinkhorn():
    def plan(cost):
        def turn(_, fg):
            f, g = fg
            f = -jax.nn.logsumexp(g[None] - cost, axis=1)
            g = -jax.nn.logsumexp(f[:, None] - cost, axis=0)
            return f, g

        f, g = jax.lax.fori_loop(0, 10, turn, (jnp.zeros(3), jnp.zeros(3)))
        return jnp.exp(f[:, None] + g[None] - cost)

    return plan, (jnp.ones((3, 3)) + jnp.eye(3),)


def kalman_filter():
    def run(ys):
        def step(carry, y):
            mean, var = carry
            var = var + 0.1
            gain = var / (var + 1.0)
            mean = mean + gain * (y - mean)
            return (mean, (1 - gain) * var), mean

        return jax.lax.scan(step, (0.0, 1.0), ys)[1]

    return run, (X,)


def hamiltonian_monte_carlo():
    def step(q, key):
        one, two = jax.random.split(key)
        p = jax.random.normal(one, q.shape)
        energy = lambda q: 0.5 * jnp.sum(q**2)  # noqa: E731
        start = energy(q) + 0.5 * jnp.sum(p**2)

        def leap(_, state):
            q, p = state
            p = p - 0.05 * jax.grad(energy)(q)
            q = q + 0.1 * p
            return q, p - 0.05 * jax.grad(energy)(q)

        new, p = jax.lax.fori_loop(0, 5, leap, (q, p))
        accept = jnp.log(jax.random.uniform(two)) < start - energy(new) - 0.5 * jnp.sum(p**2)
        return jnp.where(accept, new, q)

    return step, (X, jax.random.key(3))


def runge_kutta():
    def solve(y, dt):
        f = lambda y: -y  # noqa: E731

        def step(y, _):
            k1 = f(y)
            k2 = f(y + dt / 2 * k1)
            k3 = f(y + dt / 2 * k2)
            k4 = f(y + dt * k3)
            return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

        return jax.lax.scan(step, y, None, length=10)[0]

    return solve, (X, 0.1)


def message_passing():
    def layer(x, senders, receivers, w):
        messages = jnp.tanh(x[senders] @ w)
        total = jax.ops.segment_sum(messages, receivers, num_segments=x.shape[0])
        count = jax.ops.segment_sum(jnp.ones(len(senders)), receivers, num_segments=x.shape[0])
        return x + total / jnp.maximum(count, 1)[:, None]

    return layer, (jnp.ones((3, 2)), jnp.array([0, 1]), jnp.array([1, 2]), jnp.ones((2, 2)))


def outer_differences():
    def kernel(x, y):
        d2 = jnp.sum((x[:, None, :] - y[None, :, :]) ** 2, -1)
        return jnp.exp(-0.5 * d2)

    return kernel, (jnp.ones((4, 2)), jnp.zeros((4, 2)))


def pairwise_times():
    def gaps(t):
        return jnp.abs(t[:, None] - t[None, :]).mean()

    return gaps, (X,)


def row_normalization():
    def normalize(x):
        return x / x.sum(axis=1, keepdims=True)

    return normalize, (jnp.ones((4, 4)),)


def grid_of_a_column_and_a_row():
    def table(rates, steps):
        return jnp.exp(-rates * steps)

    return table, (jnp.arange(4.0)[:, None], jnp.arange(4.0))


def bias_added_to_a_matrix():
    def dense(x, w, b):
        return ((x @ w + b) ** 2).mean()

    return dense, (jnp.ones((4, 3)), jnp.ones((3, 4)), jnp.ones(4))


def column_targets():
    def mse(w, x, y):
        return jnp.mean((x @ w - y[:, None]) ** 2)

    return jax.grad(mse), (jnp.ones((3, 1)), jnp.ones((4, 3)), X)


def quantile_loss():
    def pinball(prediction, y, levels):
        error = y[:, None] - prediction
        return jnp.maximum(levels * error, (levels - 1) * error).mean()

    return pinball, (jnp.ones((4, 3)), X, jnp.array([0.1, 0.5, 0.9]))


def nan_test_by_itself():
    def clean(x):
        return jnp.where(x != x, 0.0, x)

    return clean, (X,)


def nan_aware_mean():
    def mean(x):
        return jnp.nanmean(x)

    return mean, (jnp.array([1.0, jnp.nan, 3.0]),)


def infinities_as_bounds():
    def least(x, mask):
        return jnp.min(jnp.where(mask, x, jnp.inf))

    return least, (X, jnp.array([True, False, True, False]))


def half_with_python_numbers():
    def gelu(x):
        return 0.5 * x * (1 + jnp.tanh(0.7978845 * (x + 0.044715 * x**3)))

    return gelu, (jnp.ones((4, 4), jnp.bfloat16),)


def softmax_in_single_precision():
    def attend(scores, v):
        weights = jax.nn.softmax(scores.astype(jnp.float32), axis=-1).astype(v.dtype)
        return weights @ v

    return attend, (jnp.ones((4, 4), jnp.bfloat16), jnp.ones((4, 4), jnp.bfloat16))


def mixed_precision_loss():
    def loss(w, x, y):
        out = (x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)).astype(jnp.float32)
        return jnp.mean((out - y) ** 2)

    return jax.grad(loss), (jnp.ones((3, 2)), jnp.ones((4, 3)), jnp.ones((4, 2)))


def hash_of_integers():
    def mix(x):
        x = (x ^ (x >> 16)) * jnp.uint32(0x45D9F3B)
        x = (x ^ (x >> 16)) * jnp.uint32(0x45D9F3B)
        return x ^ (x >> 16)

    return mix, (jnp.arange(8, dtype=jnp.uint32),)


def linear_congruential():
    def draw(seed):
        def step(s, _):
            s = s * jnp.uint32(1_664_525) + jnp.uint32(1_013_904_223)
            return s, s

        return jax.lax.scan(step, seed, None, length=8)[1]

    return draw, (jnp.uint32(7),)


def image_difference_done_right():
    def motion(a, b):
        return jnp.abs(a.astype(jnp.int16) - b.astype(jnp.int16)).astype(jnp.uint8)

    return motion, (jnp.array([10, 20], jnp.uint8), jnp.array([20, 10], jnp.uint8))


def padding_labels():
    def loss(logits, labels):
        targets = jax.nn.one_hot(labels, 3)
        weights = (labels >= 0).astype(jnp.float32)
        return -(targets * jax.nn.log_softmax(logits)).sum() / weights.sum()

    return loss, (jnp.ones((3, 3)), jnp.array([1, 2, -1]))


def embedding_and_pool():
    def encode(table, tokens):
        x = table[tokens]
        mask = (tokens > 0)[..., None]
        return (x * mask).sum(1) / mask.sum(1)

    return encode, (jnp.ones((5, 4)), TOKENS)


def scatter_that_drops():
    def count(bins):
        return jnp.zeros(4).at[bins].add(1.0, mode="drop")

    return count, (jnp.array([0, 4]),)
