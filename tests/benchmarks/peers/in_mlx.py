"""The workloads in mlx on the CPU: operation by operation, and with mlx.compile."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx import optimizers

from tests.benchmarks.peers.workloads import MLP_RATE, MOMENTUM, RATE, Workload

__all__ = ["FUNCTIONS", "VARIANTS", "forget", "ready", "values", "versions"]

VARIANTS = ("mlx", "mlx.compile")
mx.set_default_device(mx.cpu)


def gelu(x):
    return x * (1 + mx.erf(x / math.sqrt(2))) / 2


def chain(x, y):
    z = mx.exp(-mx.abs(x * y - 0.5))
    return mx.sqrt(z * z + x) * 2 + y


def reduction(x):
    centred = x - x.mean(-1, keepdims=True)
    return (centred / mx.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)).max(-1)


def geglu(x, weight, bias):
    value, gate = mx.split(x @ weight + bias, 2, -1)
    return value * nn.gelu_approx(gate)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "gelu": gelu,
    "matmul_relu": lambda x, y: nn.relu(x @ y),
    "matmul_relu_sum": lambda x, y: nn.relu(x @ y).sum(),
    "chain": chain,
    "reduction": reduction,
    "simple": lambda x, y: mx.exp(-x) + y,
    "add": lambda x, y: x + y,
    "geglu": geglu,
}


def ready(variant: str, workload: Workload, inputs: Sequence[np.ndarray]) -> Callable[[], Any]:
    """What makes one call and evaluates its result; nothing is compiled before its first."""
    arrays = [mx.array(one) for one in inputs]
    mx.eval(arrays)
    if workload.steps > 1:
        return _trained(variant, workload.function, arrays)
    function = FUNCTIONS[workload.function]
    wrapped: list[Callable[..., Any]] = []

    def call():
        if not wrapped:
            wrapped.append(mx.compile(function) if variant == "mlx.compile" else function)
        result = wrapped[0](*arrays)
        mx.eval(result)
        return result

    return call


def _trained(variant: str, name: str, arrays: list[Any]) -> Callable[[], Any]:
    """A training step with mlx's own layers and optimizer, its state captured as mlx's guide does."""
    x, y, *layers = arrays
    if name == "linear":
        y = mx.round(y)
    linears = [_linear(weight, bias) for weight, bias in zip(layers[::2], layers[1::2], strict=True)]
    model = nn.Sequential(linears[0], nn.ReLU(), linears[1]) if name == "mlp" else linears[0]
    rate, momentum = (MLP_RATE, 0.0) if name == "mlp" else (RATE, MOMENTUM)
    optimizer = optimizers.SGD(learning_rate=rate, momentum=momentum)
    mx.eval(model.parameters())

    def loss_of(model, x, y):
        if name == "mlp":
            return ((model(x) - y) ** 2).mean()
        return nn.losses.binary_cross_entropy(model(x).squeeze(-1), y)

    loss_and_slopes = nn.value_and_grad(model, loss_of)
    state = [model.state, optimizer.state]

    def step(x, y):
        loss, slopes = loss_and_slopes(model, x, y)
        optimizer.update(model, slopes)
        return loss

    kept: list[Callable[..., Any]] = []

    def call():
        if not kept:
            compiled = variant == "mlx.compile"
            kept.append(partial(mx.compile, inputs=state, outputs=state)(step) if compiled else step)
        loss = kept[0](x, y)
        mx.eval(loss, state)
        return loss, linears

    return call


def _linear(weight: Any, bias: Any) -> nn.Linear:
    """A layer with these weights; mlx keeps them transposed."""
    layer = nn.Linear(*weight.shape)
    layer.weight, layer.bias = mx.contiguous(weight.T), bias
    return layer


def values(result: Any) -> list[np.ndarray]:
    """A result as NumPy's; of a training step the loss, and the layers as they are now."""
    if isinstance(result, tuple):
        loss, linears = result
        result = [loss, *(each for one in linears for each in (one.weight.T, one.bias))]
    return [np.array(one) for one in (result if isinstance(result, list) else [result])]


def forget() -> None:
    """What was compiled for an earlier workload: nothing, as mlx lets go of it with its function."""


def versions() -> dict[str, str]:
    from importlib.metadata import version

    return {"mlx": version("mlx")}
