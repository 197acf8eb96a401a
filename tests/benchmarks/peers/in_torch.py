"""The workloads in torch: operation by operation, and with torch.compile."""

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from tests.benchmarks.peers.workloads import MLP_RATE, MOMENTUM, RATE, Workload

__all__ = ["FUNCTIONS", "VARIANTS", "forget", "ready", "values", "versions"]

VARIANTS = ("torch", "torch.compile", "torch.compile, tuned")
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())))


def gelu(x):
    return x * (1 + torch.erf(x / math.sqrt(2))) / 2


def chain(x, y):
    z = torch.exp(-torch.abs(x * y - 0.5))
    return torch.sqrt(z * z + x) * 2 + y


def reduction(x):
    centred = x - x.mean(-1, keepdim=True)
    return (centred / torch.sqrt((centred * centred).mean(-1, keepdim=True) + 1e-5)).amax(-1)


def geglu(x, weight, bias):
    value, gate = torch.chunk(x @ weight + bias, 2, -1)
    return value * functional.gelu(gate, approximate="tanh")


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "copy": torch.clone,
    "gelu": gelu,
    "matmul_relu": lambda x, y: torch.relu(x @ y),
    "matmul_relu_sum": lambda x, y: torch.relu(x @ y).sum(),
    "chain": chain,
    "reduction": reduction,
    "simple": lambda x, y: torch.exp(-x) + y,
    "add": lambda x, y: x + y,
    "geglu": geglu,
}


def ready(variant: str, workload: Workload, inputs: Sequence[np.ndarray]) -> Callable[[], Any]:
    """What makes one call; nothing is compiled before its first."""
    arrays = [torch.from_numpy(one) for one in inputs]
    if workload.steps > 1:
        return _trained(variant, workload.function, arrays)
    torch.set_grad_enabled(False)
    function = FUNCTIONS[workload.function]
    wrapped: list[Callable[..., Any]] = []

    def call():
        if not wrapped:
            wrapped.append(_wrapped(variant, function))
        return wrapped[0](*arrays)

    return call


def _wrapped(variant: str, function: Callable[..., Any]) -> Callable[..., Any]:
    if variant == "torch":
        return function
    return torch.compile(function, mode="max-autotune" if "tuned" in variant else "default")


def _trained(variant: str, name: str, arrays: list[Any]) -> Callable[[], Any]:
    """A training step with torch's own layers and optimizer; compiled: loss, gradient and update."""
    torch.set_grad_enabled(True)
    x, y, *layers = arrays
    if name == "linear":
        y = y.round()
    linears = [_linear(weight, bias) for weight, bias in zip(layers[::2], layers[1::2], strict=True)]
    model = nn.Sequential(linears[0], nn.ReLU(), linears[1]) if name == "mlp" else linears[0]
    rate, momentum = (MLP_RATE, 0.0) if name == "mlp" else (RATE, MOMENTUM)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=momentum)

    def loss_of(x, y):
        if name == "mlp":
            return ((model(x) - y) ** 2).mean()
        return functional.binary_cross_entropy_with_logits(model(x).squeeze(-1), y)

    kept: dict[str, Any] = {}

    def call():
        if not kept:
            kept["loss"], kept["update"] = _wrapped(variant, loss_of), _wrapped(variant, optimizer.step)
        loss = kept["loss"](x, y)
        loss.backward()
        kept["update"]()
        optimizer.zero_grad()
        return loss, linears

    return call


def _linear(weight: Any, bias: Any) -> nn.Linear:
    """A layer with these weights; torch keeps them transposed."""
    layer = nn.Linear(*weight.shape)
    with torch.no_grad():
        layer.weight.copy_(weight.T)
        layer.bias.copy_(bias)
    return layer


def values(result: Any) -> list[np.ndarray]:
    """A result as NumPy's; of a training step the loss, and the layers as they are now."""
    if isinstance(result, tuple):
        loss, linears = result
        result = [loss, *(each for one in linears for each in (one.weight.T, one.bias))]
    return [one.detach().numpy() for one in (result if isinstance(result, list) else [result])]


def forget() -> None:
    """What was compiled: else a size that is met second is compiled for any size, which is slower."""
    torch.compiler.reset()


def versions() -> dict[str, str]:
    return {"torch": torch.__version__}
