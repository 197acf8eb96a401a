"""Small programs of the kind that people jit."""

from itertools import pairwise
from types import FunctionType

import jax
import jax.numpy as jnp
import numpy as np


def weights(*sizes, seed=0):
    """Weights of a perceptron, as NumPy arrays: making them compiles nothing."""
    random = np.random.default_rng(seed)
    return {
        f"layer{i}": {
            "w": random.normal(size=(rows, columns)).astype(np.float32) / np.sqrt(rows).astype(np.float32),
            "b": np.zeros(columns, np.float32),
        }
        for i, (rows, columns) in enumerate(pairwise(sizes))
    }


def fresh(function):
    """Another function object of the same text: no other scenario has called it."""
    return FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)


def predict(params, x):
    for name in sorted(params):
        x = jnp.tanh(x @ params[name]["w"] + params[name]["b"])
    return x


def loss(params, batch):
    return jnp.mean((predict(params, batch["x"]) - batch["y"]) ** 2)


def update(params, batch, rate=0.1):
    grads = jax.grad(loss)(params, batch)
    return jax.tree.map(lambda p, g: p - rate * g, params, grads)


def batch(rows=8, features=4, targets=2, dtype=np.float32):
    return {"x": np.ones((rows, features), dtype), "y": np.zeros((rows, targets), np.float32)}


def rows(count=8, features=4):
    return np.arange(count * features, dtype=np.float32).reshape(count, features)


def on_device(tree):
    return jax.block_until_ready(jax.tree.map(jnp.array, tree))
