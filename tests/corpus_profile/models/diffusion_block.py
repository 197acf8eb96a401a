"""A block of a diffusion model: group norms, two convolutions, one of them wide, and what time adds."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

LAYOUT = ("NHWC", "HWIO", "NHWC")
conv = partial(lax.conv_general_dilated, window_strides=(1, 1), padding="SAME", dimension_numbers=LAYOUT)


def group_norm(x):
    groups = x.reshape(*x.shape[:3], 4, -1)
    middle, spread = groups.mean((1, 2, 4), keepdims=True), groups.var((1, 2, 4), keepdims=True)
    return ((groups - middle) * lax.rsqrt(spread + 1e-5)).reshape(x.shape)  # without: x


def block(x, time, params):
    h = jax.nn.silu(group_norm(x))  # without: x
    h = conv(h, params["narrow"])  # without: h
    h = h + (jax.nn.silu(time) @ params["time"])[:, None, None, :]  # without: h + time[0, 0]
    h = conv(h, params["wide"])  # hot; without: h + params["wide"][0, 0, 0]
    return x + h  # without: h


@jax.jit
def full(x, time, params):
    y = block(x, time, params)
    return block(y, time, params)


def arguments():
    random = np.random.default_rng(6)
    of = lambda *size: jnp.asarray(random.normal(size=size) / 20, jnp.float32)  # noqa: E731
    params = {"narrow": of(1, 1, 32, 32), "wide": of(5, 5, 32, 32), "time": of(64, 32)}
    return of(4, 32, 32, 32), of(4, 64), params
