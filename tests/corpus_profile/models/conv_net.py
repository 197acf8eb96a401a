"""A small convolutional network: its second convolution."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

LAYOUT = ("NHWC", "HWIO", "NHWC")
POOL = (1, 2, 2, 1)


def spread(x, width):
    return jnp.broadcast_to(x.max(-1, keepdims=True), (*x.shape[:3], width))


@jax.jit
def full(params, images):
    x = (images - images.mean()) / images.std()  # without: images
    x = lax.conv_general_dilated(x, params["first"], (1, 1), "SAME", dimension_numbers=LAYOUT)  # without: spread(x, 32)
    x = jax.nn.relu(x)  # without: x
    x = lax.reduce_window(x, -jnp.inf, lax.max, POOL, POOL, "VALID")  # without: x[:, ::2, ::2]
    kernel = params["second"]
    x = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=LAYOUT)  # hot; without: spread(x, 128)
    x = jax.nn.relu(x)  # without: x
    x = lax.reduce_window(x, -jnp.inf, lax.max, POOL, POOL, "VALID")  # without: x[:, ::2, ::2]
    logits = x.reshape(len(x), -1) @ params["dense"]  # without: x.reshape(len(x), -1, 16).max(1)
    return jax.nn.log_softmax(logits)  # without: logits


def arguments():
    random = np.random.default_rng(0)
    sizes = {"first": (3, 3, 3, 32), "second": (5, 5, 32, 128), "dense": (8 * 8 * 128, 16)}
    params = {name: jnp.asarray(random.normal(size=size) / 10, jnp.float32) for name, size in sizes.items()}
    return params, jnp.asarray(random.uniform(size=(32, 32, 32, 3)), jnp.float32)
