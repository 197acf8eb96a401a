"""A training step, thirty edits that make it worse, and thirty that change nothing.

An edit is a piece of the source and what stands there instead; of one that makes it worse also the line that is at
fault, as a piece of its text after the edit.
"""

from __future__ import annotations

from typing import NamedTuple

STEP = """\
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

ROTATION = np.ones((8, 8), np.float32)


def norm(x, scale):
    centred = x - x.mean(-1, keepdims=True)
    return scale * centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


def attention(x, layer):
    query, key, value = (x @ layer[name] for name in "qkv")
    scores = jnp.einsum("bqd,bkd->bqk", query, key) / 8.0
    weights = jax.nn.softmax(scores, axis=-1)
    return jnp.einsum("bqk,bkd->bqd", weights, value) @ layer["out"]


def feed_forward(x, layer):
    hidden = jnp.tanh(x @ layer["up"])
    return hidden @ layer["down"]


def forward(params, batch):
    x = batch["x"] * 2.0
    for layer in params["layers"]:
        x = x + attention(norm(x, layer["scale"]), layer)
        x = x + feed_forward(norm(x, layer["scale"]), layer)
    return x


def loss(params, batch):
    output = forward(params, batch)
    error = output - batch["y"]
    return jnp.mean(error * error)


@partial(jax.jit, donate_argnums=0)
def step(params, batch):
    value, gradient = jax.value_and_grad(loss)(params, batch)
    params = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient)
    return params, value


def arguments():
    shapes = {"q": (64, 64), "k": (64, 64), "v": (64, 64), "out": (64, 64)}
    shapes |= {"up": (64, 256), "down": (256, 64), "scale": (64,)}
    layer = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    batch = {name: np.ones((4, 32, 64), np.float32) for name in "xy"}
    return {"layers": [layer]}, batch
"""


class Edit(NamedTuple):
    """A piece of `STEP`, what stands there instead, and the line at fault; empty where none is."""

    name: str
    old: str
    new: str
    at: str = ""


_SOFTMAX = "    weights = jax.nn.softmax(scores, axis=-1)\n"
_SCORES = '    scores = jnp.einsum("bqd,bkd->bqk", query, key) / 8.0\n'
_HIDDEN = '    hidden = jnp.tanh(x @ layer["up"])\n'
_ERROR = '    error = output - batch["y"]\n'

WORSE = (
    Edit(
        "a mean by a product",
        "x.mean(-1, keepdims=True)\n",
        "x @ jnp.full((64, 1), 1 / 64, x.dtype)\n",
        "centred = x -",
    ),
    Edit(
        "a softmax by hand with a product",
        _SOFTMAX,
        "    weights = jnp.exp(scores) / (jnp.exp(scores) @ jnp.ones((32, 1), scores.dtype))\n",
        "weights = jnp.exp",
    ),
    Edit(
        "a mask in f32", _SOFTMAX, "    scores = scores + jnp.where(jnp.tri(32) > 0, 0.0, -1e9)\n" + _SOFTMAX, "jnp.tri"
    ),
    Edit("another layer norm", _HIDDEN, '    x = norm(x, layer["scale"])\n' + _HIDDEN, "centred = x -"),
    Edit(
        "products in f64",
        "weights = jax.nn.softmax(scores, axis=-1)",
        "weights = jax.nn.softmax(scores.astype(jnp.float64), axis=-1)",
        "jnp.float64",
    ),
    Edit("the input in f64", 'batch["x"] * 2.0', 'batch["x"].astype(jnp.float64)', "jnp.float64"),
    Edit("a loss in f64", _ERROR, '    error = (output - batch["y"]).astype(jnp.float64)\n', "jnp.float64"),
    Edit(
        "a copy, padded",
        _HIDDEN,
        _HIDDEN + "    hidden = jnp.pad(hidden, ((0, 0), (0, 8), (0, 0)))[:, 4:36] + hidden\n",
        "jnp.pad",
    ),
    Edit("sorted scores", _SOFTMAX, "    scores = jnp.sort(scores, axis=-1)\n" + _SOFTMAX, "jnp.sort"),
    Edit("a running sum", _HIDDEN, _HIDDEN + "    hidden = jnp.cumsum(hidden, axis=1)\n", "jnp.cumsum"),
    Edit("donation lost", "@partial(jax.jit, donate_argnums=0)", "@jax.jit", "@jax.jit"),
    Edit(
        "a gather by a permutation",
        _HIDDEN,
        _HIDDEN + "    hidden = hidden[:, :, jnp.arange(255, -1, -1) % 256]\n",
        "jnp.arange(255",
    ),
    Edit("a gather of rows", 'x = batch["x"] * 2.0', 'x = batch["x"][jnp.array([0, 1, 2, 3])] * 2.0', "jnp.array([0"),
    Edit("a scatter", _ERROR, _ERROR + "    error = error.at[jnp.array([0, 2])].add(1.0)\n", ".at["),
    Edit(
        "a larger constant",
        "def attention(x, layer):\n",
        "def attention(x, layer):\n    x = x @ np.eye(64, dtype=np.float32)\n",
        "np.eye(64",
    ),
    Edit(
        "a table baked in",
        _ERROR,
        '    error = output - batch["y"] * np.arange(8192, dtype=np.float32).reshape(4, 32, 64)\n',
        "np.arange(8192",
    ),
    Edit(
        "an extra product", _HIDDEN, '    hidden = jnp.tanh(x @ layer["up"]) + jnp.sin(x) @ layer["up"]\n', "jnp.sin(x)"
    ),
    Edit("the product twice", '@ layer["down"]', '@ layer["down"] + (hidden * 2) @ layer["down"]', "(hidden * 2) @"),
    Edit(
        "scores kept whole",
        "    return jnp.mean(error * error)",
        "    return jnp.mean(error * error) + jnp.mean(jnp.linalg.norm(output, axis=-1))",
        "jnp.linalg.norm",
    ),
    Edit("an inverse", _HIDDEN, '    x = x @ jnp.linalg.inv(layer["q"] + jnp.eye(64))\n' + _HIDDEN, "jnp.linalg.inv"),
    Edit("an fft", _HIDDEN, "    x = jnp.fft.ifft(jnp.fft.fft(x)).real\n" + _HIDDEN, "jnp.fft"),
    Edit(
        "a loop in Python",
        _HIDDEN,
        _HIDDEN + "    hidden = jnp.stack([hidden[i] for i in range(4)]) * hidden\n",
        "jnp.stack",
    ),
    Edit("a scan", _HIDDEN, _HIDDEN + "    hidden = jax.lax.map(lambda row: row * row.sum(), hidden)\n", "jax.lax.map"),
    Edit(
        "random noise",
        _HIDDEN,
        _HIDDEN + "    hidden = hidden + jax.random.normal(jax.random.key(0), hidden.shape)\n",
        "jax.random.normal",
    ),
    Edit(
        "a product with one",
        _HIDDEN,
        _HIDDEN + "    hidden = hidden @ jnp.eye(256, dtype=hidden.dtype)\n",
        "jnp.eye(256",
    ),
    Edit(
        "a concatenation",
        _HIDDEN,
        '    x = jnp.concatenate([x, x], axis=-1) @ jnp.concatenate([layer["q"], layer["k"]])\n' + _HIDDEN,
        "jnp.concatenate",
    ),
    Edit(
        "twice as many steps",
        "    params = jax.tree.map(",
        "    _, gradient = jax.value_and_grad(loss)(jax.tree.map(jnp.tanh, params), batch)\n    params = jax.tree.map(",
        "jnp.tanh, params",
    ),
    Edit(
        "a second norm of the gradient",
        "    params = jax.tree.map(",
        "    size = sum(jnp.sum(g * g) for g in jax.tree.leaves(gradient))\n"
        "    gradient = jax.tree.map(lambda g: g / (1 + size), gradient)\n    params = jax.tree.map(",
        "sum(jnp.sum",
    ),
    Edit(
        "gradients that are returned",
        "    return params, value",
        "    return params, value, gradient",
        "@partial(jax.jit",
    ),
    Edit(
        "twice the width",
        '    hidden = jnp.tanh(x @ layer["up"])',
        '    hidden = jnp.tanh(x @ layer["up"] + x @ (layer["up"] * 2))',
        "* 2))",
    ),
)

HARMLESS = (
    Edit("nothing", "", ""),
    Edit("a comment on top", "from functools", "# Trains a small model.\n\nfrom functools"),
    Edit("a comment in a line", "    return hidden @", "    # back to the width of the model\n    return hidden @"),
    Edit("a comment behind a line", "/ 8.0\n", "/ 8.0  # the root of 64\n"),
    Edit("a docstring", "def loss(params, batch):\n", 'def loss(params, batch):\n    """Mean square."""\n'),
    Edit("a module's docstring", "from functools", '"""A model."""\n\nfrom functools'),
    Edit("empty lines", "def attention", "\n\n\n\ndef attention"),
    Edit("a local's name", "hidden", "wide"),
    Edit("another local's name", "weights", "shares"),
    Edit(
        "an argument's name",
        "(x, scale):\n    centred = x - x.mean",
        "(value, scale):\n    x = value\n    centred = x - x.mean",
    ),
    Edit(
        "a parameter's name",
        "def loss(params, batch):\n    output = forward(params, batch)",
        "def loss(model, batch):\n    output = forward(model, batch)",
    ),
    Edit("a function's name", "feed_forward", "mlp"),
    Edit("another function's name", "attention", "attend"),
    Edit("names of the optimiser", "lambda p, g: p - 0.1 * g", "lambda old, change: old - 0.1 * change"),
    Edit("a name that nobody uses", "    return scale * centred", "    tiny = 1e-5\n    return scale * centred"),
    Edit("a constant by name", "+ 1e-5)", "+ 0.00001)"),
    Edit("an import more", "import jax\n", "import os\n\nimport jax\n"),
    Edit("a helper that nobody calls", "def loss", "def unused(x):\n    return jnp.sort(x)\n\n\ndef loss"),
    Edit(
        "a result in a variable",
        '    return hidden @ layer["down"]',
        '    result = hidden @ layer["down"]\n    return result',
    ),
    Edit(
        "two statements for one",
        '    hidden = jnp.tanh(x @ layer["up"])',
        '    hidden = x @ layer["up"]\n    hidden = jnp.tanh(hidden)',
    ),
    Edit("parentheses", "error * error)", "(error) * (error))"),
    Edit(
        "a line in two",
        '    scores = jnp.einsum("bqd,bkd->bqk", query, key) / 8.0',
        '    scores = (\n        jnp.einsum("bqd,bkd->bqk", query, key)\n        / 8.0\n    )',
    ),
    Edit("other quotes", 'batch["y"]\n', "batch['y']\n"),
    Edit("types", "def norm(x, scale):", "def norm(x: jax.Array, scale: jax.Array) -> jax.Array:"),
    Edit("an assertion of shapes", "    scores = jnp", "    assert query.shape == key.shape\n    scores = jnp"),
    Edit("a check of types", _ERROR, "    if output.dtype != jnp.float32:\n        raise TypeError\n" + _ERROR),
    Edit("work that nobody uses", _ERROR, "    unused = jnp.sin(output)\n" + _ERROR),
    Edit(
        "a name for the scope",
        _HIDDEN,
        '    with jax.named_scope("wide"):\n        hidden = jnp.tanh(x @ layer["up"])\n',
    ),
    Edit("factors in another order", "p - 0.1 * g", "p - g * 0.1"),
    Edit("another value of the same type", "/ 8.0", "/ 9.0"),
)
