"""The workloads in JAX: operation by operation, with jax.jit, and compiled by Explorer, ahead of time and at a call."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import explorer as ex
from tests.benchmarks.peers.workloads import MLP_RATE, MOMENTUM, RATE, Workload

__all__ = ["FUNCTIONS", "TUNED", "VARIANTS", "forget", "ready", "values", "versions"]

VARIANTS = ("jax", "jax.jit", "ex.compile", "ex.jit")
TUNED = "ex.compile, tuned"  # in_jax_tuned


def gelu(x):
    return x * (1 + jax.lax.erf(x / math.sqrt(2))) / 2


def chain(x, y):
    z = jnp.exp(-jnp.abs(x * y - 0.5))
    return jnp.sqrt(z * z + x) * 2 + y


def reduction(x):
    centred = x - x.mean(-1, keepdims=True)
    return (centred / jnp.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)).max(-1)


def geglu(x, weight, bias):
    value, gate = jnp.split(x @ weight + bias, 2, -1)
    return value * jax.nn.gelu(gate, approximate=True)


def mlp(state, x, y):
    def loss_of(layers):
        hidden = jax.nn.relu(x @ layers[0] + layers[1])
        return ((hidden @ layers[2] + layers[3] - y) ** 2).mean()

    loss, slopes = jax.value_and_grad(loss_of)(state)
    return loss, [one - MLP_RATE * slope for one, slope in zip(state, slopes, strict=True)]


def linear(state, x, y):
    def loss_of(layer):
        logits = (x @ layer[0] + layer[1]).squeeze(-1)
        return (jnp.logaddexp(0, logits) - logits * y).mean()

    layer, speed = state[:2], state[2:]
    loss, slopes = jax.value_and_grad(loss_of)(layer)
    speed = [MOMENTUM * one + slope for one, slope in zip(speed, slopes, strict=True)]
    return loss, [one - RATE * fast for one, fast in zip(layer, speed, strict=True)] + speed


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "copy": jnp.copy,
    "gelu": gelu,
    "matmul_relu": lambda x, y: jax.nn.relu(x @ y),
    "matmul_relu_sum": lambda x, y: jax.nn.relu(x @ y).sum(),
    "chain": chain,
    "reduction": reduction,
    "simple": lambda x, y: jnp.exp(-x) + y,
    "add": lambda x, y: x + y,
    "geglu": geglu,
    "mlp": mlp,
    "linear": linear,
}


def ready(variant: str, workload: Workload, inputs: Sequence[np.ndarray]) -> Callable[[], Any]:
    """What makes one call and waits for its result; nothing is compiled before its first."""
    function = FUNCTIONS[workload.function]
    arrays = [jnp.asarray(one) for one in inputs]
    jax.block_until_ready(arrays)
    if workload.steps > 1:
        return _trained(variant, workload.function, function, arrays)
    calls = {"jax": lambda: function, "jax.jit": lambda: jax.jit(function), "ex.jit": lambda: ex.jit(function)}
    infos = [ex.InputInfo.like(one) for one in arrays]
    calls["ex.compile"] = lambda: ex.compile(function, args=infos)
    calls[TUNED] = lambda: ex.compile(function, optimization_level=4, args=infos)
    return _called(calls[variant], arrays)


def _called(wrap: Callable[[], Callable[..., Any]], arrays: list[Any]) -> Callable[[], Any]:
    wrapped: list[Callable[..., Any]] = []

    def call():
        if not wrapped:  # what wrapping costs, an ahead-of-time compile above all, belongs to the first call
            wrapped.append(wrap())
        return wrapped[0](*arrays).block_until_ready()

    return call


def _trained(variant: str, name: str, step: Callable[..., Any], arrays: list[Any]) -> Callable[[], Any]:
    """A training step; its state is updated in place, as torch and mlx do: donated, or captured."""
    x, y, *state = arrays
    if name == "linear":
        y, state = y.round(), state + [jnp.zeros_like(one) for one in state]
    shown = len(arrays) - 2  # the layers, without how fast they change
    if variant == "ex.jit":

        @ex.jit(inputs=state, outputs=state)
        def captured(x, y):
            loss, state[:] = step(state, x, y)
            return loss

        def call_captured():
            return jax.block_until_ready([captured(x, y), *state])[: shown + 1]

        return call_captured
    infos = [[ex.InputInfo.like(one) for one in state], ex.InputInfo.like(x), ex.InputInfo.like(y)]
    wraps: dict[str, Callable[[], Callable[..., Any]]] = {
        "jax": lambda: step,
        "jax.jit": lambda: jax.jit(step, donate_argnums=0),
        "ex.compile": lambda: ex.compile(step, args=infos, donate=["state"]),
        TUNED: lambda: ex.compile(step, optimization_level=4, args=infos, donate=["state"]),
    }
    kept: dict[str, Any] = {"state": [jnp.copy(one) for one in state]}

    def call():
        if "step" not in kept:
            kept["step"] = wraps[variant]()
        loss, kept["state"] = kept["step"](kept["state"], x, y)
        return jax.block_until_ready([loss, *kept["state"]])[: shown + 1]

    return call


def values(result: Any) -> list[np.ndarray]:
    """A result as NumPy's."""
    return [np.asarray(one) for one in jax.tree.leaves(result)]


def forget() -> None:
    """What was compiled for an earlier workload."""
    jax.clear_caches()


def versions() -> dict[str, str]:
    import jaxlib

    return {"jax": jax.__version__, "jaxlib": jaxlib.__version__}
