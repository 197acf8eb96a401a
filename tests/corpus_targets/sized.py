"""Programs of one size each, `n`, that can be made as large as a device's memory, and larger."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.corpus_targets.programs import bf16, f32, softmax_attention


class Sized(NamedTuple):
    """A function, and its arguments by size.

    Args:
        name: Of the program.
        function: What is compiled.
        args: The arguments of a size.
        multiple: Of what sizes are multiples.
        devices: For how many devices it is.
    """

    name: str
    function: Callable[..., Any]
    args: Callable[[int], tuple[Any, ...]]
    multiple: int = 1
    devices: int = 1


def layers(weights, x):
    for up, down in weights:
        x = x + jax.nn.gelu(x @ up) @ down
    return x


def adam_step(state, x, y):
    def loss(weights):
        return jnp.mean((layers(weights, x) - y) ** 2)

    weights, first, second = state
    slopes = jax.grad(loss)(weights)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slopes)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, slopes)
    weights = jax.tree.map(lambda w, m, v: w - 1e-3 * m / (jnp.sqrt(v) + 1e-8), weights, first, second)
    return weights, first, second


def images(kernels, x):
    for kernel in kernels:
        x = jax.nn.relu(lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
    return x.mean()


def recurrent_loss(inner, outer, xs):
    def cell(state, x):
        state = jnp.tanh(state @ inner + x @ outer)
        return state, state

    return (lax.scan(cell, jnp.zeros((xs.shape[1], inner.shape[0])), xs)[1] ** 2).mean()


def remat_loss(weights, x):
    layer = jax.checkpoint(lambda x, w: (jnp.sin(x @ w), None))
    return lax.scan(layer, x, weights)[0].sum()


def split_step(weights, x):
    def loss(weights):
        return (layers([weights], x) ** 2).mean()

    slopes = jax.grad(loss)(weights)
    return jax.tree.map(lambda w, g: w - 0.01 * g, weights, slopes)


def on_four(spec: P, *shape: int) -> jax.ShapeDtypeStruct:
    mesh = AbstractMesh((4,), ("data",), axis_types=(AxisType.Auto,))
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))


WEIGHTS = [(f32(1024, 4096), f32(4096, 1024))]
CELL = f32(512, 512), f32(256, 512)
SPLIT = on_four(P("data"), 4096, 16384), on_four(P(None, "data"), 16384, 4096)
KERNELS = [f32(3, 3, 64, 64)] * 4

SIZED = (
    Sized("attention", softmax_attention, lambda n: (bf16(n, 1024, 8, 128),) * 3),
    Sized("training step", adam_step, lambda n: ((WEIGHTS,) * 3, f32(n, 1024), f32(n, 1024)), 8),
    Sized("gradient of convolutions", jax.grad(images), lambda n: (KERNELS, f32(n, 64, 64, 64))),
    Sized(
        "gradient of a scan", jax.grad(recurrent_loss), lambda n: (f32(512, 512), f32(256, 512), f32(n, 128, 256)), 8
    ),
    Sized("remat in a scan", jax.grad(remat_loss), lambda n: (f32(24, 2048, 2048), f32(n, 2048)), 8),
    Sized("elementwise", lambda x: jnp.sin(x) * 2, lambda n: (f32(n, 1000),), 8),
    Sized("FFT", lambda x: jnp.abs(jnp.fft.fft(x)), lambda n: (f32(n, 4096),), 8),
    Sized("sort", lambda x: jnp.sort(x, axis=-1), lambda n: (f32(n, 4096),), 8),
    Sized("sharded step", split_step, lambda n: (SPLIT, on_four(P("data"), n, 4096)), 32, 4),
)
