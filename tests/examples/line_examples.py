"""Small programs whose lines are clicked one after another: calls, a loop, copies that layout assignment adds."""

import jax
import jax.numpy as jnp
from jax import lax


def attention(q, k, v):
    scores = q @ k.T / jnp.sqrt(q.shape[-1] * 1.0)
    weights = jax.nn.softmax(scores)
    return weights @ v


def norm(x):
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def block(w, x):
    y = norm(x)
    return x + jnp.tanh(y @ w)


def objective(ws, x):
    for w in ws:
        x = block(w, x)
    return (x * x).sum()


def update(ws, x):
    grads = jax.grad(objective)(ws, x)
    return [w - 0.1 * g for w, g in zip(ws, grads, strict=True)]


def convolve(x, k):
    y = lax.conv_general_dilated(x, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jnp.tanh(y).sum()


def gradients(x, k):
    return jax.grad(convolve, (0, 1))(x, k)


def recur(w, xs):
    def step(h, x):
        h = jnp.tanh(h @ w + x)
        return h, h.sum()

    return lax.scan(step, jnp.zeros(16), xs)


X = jnp.ones((64, 16))
EXAMPLES = {
    "attention": (attention, X, X, X),
    "update": (update, [jnp.eye(16)] * 2, X),
    "gradients": (gradients, jnp.ones((2, 12, 12, 3)), jnp.ones((3, 3, 3, 4))),
    "recur": (recur, jnp.eye(16), X),
}
