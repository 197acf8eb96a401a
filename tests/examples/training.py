"""A transformer training step in plain JAX: the example that the tutorial, `make demo` and the benchmarks explore."""

from functools import cache

import jax
import jax.numpy as jnp

import explorer as ex

MODEL, HEADS, VOCABULARY = 64, 4, 256
RATE, DECAY_1, DECAY_2, TINY = 1e-3, 0.9, 0.999, 1e-8


def norm(p, x):
    mean = jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-6) * p["gain"] + p["bias"]


def attention(p, x):
    batch, length, model = x.shape
    heads = (batch, length, HEADS, model // HEADS)
    q, k, v = (jnp.reshape(x @ p[name], heads) for name in ("query", "key", "value"))
    scores = jnp.einsum("bshd,bthd->bhst", q, k) / jnp.sqrt(model // HEADS)
    causal = jnp.tril(jnp.ones((length, length), bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e9))
    return jnp.reshape(jnp.einsum("bhst,bthd->bshd", weights, v), x.shape) @ p["out"]


def feed_forward(p, x):
    return jax.nn.gelu(x @ p["up"]) @ p["down"]


def block(p, x):
    x = x + attention(p, norm(p["norm_1"], x))
    return x + feed_forward(p, norm(p["norm_2"], x))


def loss(params, tokens):
    x = params["embed"][tokens[:, :-1]]
    for p in params["blocks"]:
        x = block(p, x)
    log_probabilities = jax.nn.log_softmax(norm(params["norm"], x) @ params["embed"].T)
    return -jnp.take_along_axis(log_probabilities, tokens[:, 1:, None], axis=-1).mean()


def adam(params, gradients, state):
    count = state["count"] + 1
    first = jax.tree.map(lambda m, g: DECAY_1 * m + (1 - DECAY_1) * g, state["first"], gradients)
    second = jax.tree.map(lambda v, g: DECAY_2 * v + (1 - DECAY_2) * g * g, state["second"], gradients)
    rate = RATE * jnp.sqrt(1 - DECAY_2**count) / (1 - DECAY_1**count)
    params = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + TINY), params, first, second)
    return params, {"count": count, "first": first, "second": second}


def step(state, batch):
    value, gradients = jax.value_and_grad(loss)(state["params"], batch)
    params, optimizer = adam(state["params"], gradients, state["optimizer"])
    return {"params": params, "optimizer": optimizer}, value


def initial(layers=4):
    """Random parameters, and an Adam state of zeros: the state that `step` starts from."""
    keys = iter(jax.random.split(jax.random.key(0), 1 + 6 * layers))

    def weight(*shape):
        return 0.02 * jax.random.normal(next(keys), shape)

    def affine():
        return {"gain": jnp.ones(MODEL), "bias": jnp.zeros(MODEL)}

    def layer():
        square = {name: weight(MODEL, MODEL) for name in ("query", "key", "value", "out")}
        wide = {"up": weight(MODEL, 4 * MODEL), "down": weight(4 * MODEL, MODEL)}
        return square | wide | {"norm_1": affine(), "norm_2": affine()}

    params = {"embed": weight(VOCABULARY, MODEL), "norm": affine(), "blocks": [layer() for _ in range(layers)]}
    zeros = jax.tree.map(jnp.zeros_like, params)
    return {"params": params, "optimizer": {"count": jnp.int32(0), "first": zeros, "second": zeros}}


def training_step(layers=4):
    """A model's training step, and arguments to call it with: `step, (state, batch)`."""
    return step, (initial(layers), jax.random.randint(jax.random.key(1), (8, 65), 0, VOCABULARY))


@cache
def training_capture(layers: int) -> ex.Capture:
    """Return the capture of a training step: the compile takes a second, so tests in a process share the capture."""
    function, arguments = training_step(layers)
    return ex.explore(function, *arguments)
