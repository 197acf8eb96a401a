"""How much an elementwise operation costs, as a multiple of an addition: what analysis/line_costs.py is from.

    python tests/benchmarks/op_weights.py

Each is measured inside one kernel: the sum of `op(row)` over the rows of an array that fits the cache, less the time of
the same sum without `op`. An addition is an 128th of what 128 additions and multiplications in a row take, for one
alone hides behind the loads. The kernels take turns, and the least time of each counts. Prints the table, one line an
operation, in float32, on the backend that JAX has.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

_ROWS, _COLUMNS = 32, 2**12
_ROUNDS = 300
_CHAIN = 128
_HALF = _COLUMNS // 2
_SHUFFLED = np.random.default_rng(0).permutation(_COLUMNS).astype(np.int32)

# By the name that HLO has for it.
_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "divide": lambda x, y: x / y,
    "remainder": lax.rem,
    "power": lambda x, y: x**y,
    "atan2": lax.atan2,
    "acos": lambda x, y: lax.acos(x),
    "acosh": lambda x, y: lax.acosh(x),
    "asin": lambda x, y: lax.asin(x),
    "asinh": lambda x, y: lax.asinh(x),
    "atanh": lambda x, y: lax.atanh(x),
    "cbrt": lambda x, y: lax.cbrt(x),
    "cosine": lambda x, y: lax.cos(x),
    "cosh": lambda x, y: lax.cosh(x),
    "erf": lambda x, y: lax.erf(x),
    "erf-inv": lambda x, y: lax.erf_inv(x),
    "exponential": lambda x, y: lax.exp(x),
    "exponential-minus-one": lambda x, y: lax.expm1(x),
    "log": lambda x, y: lax.log(x),
    "log-plus-one": lambda x, y: lax.log1p(x),
    "logistic": lambda x, y: lax.logistic(x),
    "rsqrt": lambda x, y: lax.rsqrt(x),
    "sine": lambda x, y: lax.sin(x),
    "sinh": lambda x, y: lax.sinh(x),
    "sqrt": lambda x, y: lax.sqrt(x),
    "tan": lambda x, y: lax.tan(x),
    "tanh": lambda x, y: lax.tanh(x),
    # These do no arithmetic; but an element of theirs has to be looked for.
    "gather": lambda x, y: x.at[_SHUFFLED].get(mode="promise_in_bounds"),
    "concatenate": lambda x, y: jnp.concatenate([x[_HALF:], y[:_HALF]]),
    "pad": lambda x, y: jnp.pad(x[1:], (0, 1)),
}


def weights() -> dict[str, float]:
    """Seconds of each operation, as a multiple of those of an addition."""
    random = np.random.default_rng(0)
    x = jnp.asarray(random.uniform(0.1, 0.9, (_ROWS, _COLUMNS)), jnp.float32)
    y = jnp.asarray(random.uniform(0.1, 0.9, _COLUMNS), jnp.float32)
    operations = {"nothing": lambda x, y: x, "add": _additions, **_OPERATIONS}
    kernels = {name: jax.jit(_summed(operation)) for name, operation in operations.items()}
    least = dict.fromkeys(operations, float("inf"))
    for _ in range(_ROUNDS):
        for name, kernel in kernels.items():
            begin = time.perf_counter()
            jax.block_until_ready(kernel(x, y))
            least[name] = min(least[name], time.perf_counter() - begin)
    one = (least["add"] - least["nothing"]) / _CHAIN
    return {name: (least[name] - least["nothing"]) / one for name in _OPERATIONS}


def _additions(x: Any, y: Any) -> Any:
    for _ in range(_CHAIN // 2):
        x = x * y + y
    return x


def _summed(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def kernel(x: Any, y: Any) -> Any:
        total = y
        for row in range(_ROWS):
            total = total + operation(x[row], y)
        return total

    return kernel


if __name__ == "__main__":
    print(f"jax {jax.__version__}, {jax.devices()[0].device_kind}")
    for name, weight in sorted(weights().items(), key=lambda item: item[1]):
        print(f"{name:<24}{weight:8.1f}")
