"""Small programs whose time shows the most that a machine can do.

Each is compiled as users' programs are, so that its rate is one that XLA can reach. All work depends on the arguments,
or XLA would do it while compiling. A call has several steps, so that starting it costs little. The best of several
calls counts, as other work can only take time away. (After Yang et al., *An Empirical Roofline Methodology for
Quantitatively Assessing Performance Portability*, P3HPC 2018.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from explorer.model.types import sort_flops

_lax: Any = lax  # whose loops have no types
_SPECIAL_STEPS = 8
# What costs more than a multiply-add, as HLO calls it: a step that can be done again to its own result.
SPECIAL: dict[str, Callable[[jax.Array], jax.Array]] = {
    "divide": lambda x: 0.7 / x,
    "erf": lax.erf,
    "exponential": lambda x: lax.exp(-x),
    "log": lambda x: lax.log(x + 1.5),
    "power": lambda x: lax.pow(x, x),
    "sine": lax.sin,
    "sqrt": lax.sqrt,
    "tanh": lax.tanh,
}
_SMALL = 4096  # elements: above 1 kB, below which XLA makes one kernel of a whole loop


@dataclass
class Budget:
    """Limits of one probe.

    Args:
        seconds: No further call is timed after this time.
        least: Minimum number of calls.
        most: Maximum number of calls.
    """

    seconds: float
    least: int = 3
    most: int = 50

    def best(self, call: Callable[[], Any]) -> float:
        """Return the shortest of several calls, in seconds."""
        jax.block_until_ready(call())
        best, end = math.inf, perf_counter() + self.seconds
        for number in range(self.most):
            if number >= self.least and perf_counter() >= end:
                break
            start = perf_counter()
            jax.block_until_ready(call())
            best = min(best, perf_counter() - start)
        return best


def in_place_bandwidth(size: int, budget: Budget) -> float:
    """Return the bytes per second of reading and writing `size` bytes in place, repeatedly."""
    count = max(size // 4, 1)
    steps = max(2, min(64, (1 << 25) // size))

    scale = _scaled(steps)
    by, buffer = jnp.float32(1.0000001), [jnp.ones(count, jnp.float32)]
    run = _compiled(scale, buffer[0], by, donate=0)

    def call() -> jax.Array:
        buffer[0] = run(buffer[0], by)
        return buffer[0]

    return 2 * 4 * count * steps / budget.best(call)


def fresh_bandwidth(size: int, budget: Budget) -> float:
    """Return the bytes per second of reading `size` bytes and writing as many into newly allocated memory."""
    count = max(size // 4, 1)
    x, by = jnp.ones(count, jnp.float32), jnp.float32(1.0000001)
    run = _compiled(_scaled(1), x, by)
    return 2 * 4 * count / budget.best(partial(run, x, by))


def fma_rate(dtype: Any, count: int, lengths: Sequence[int], steps: int, budget: Budget) -> float:
    """Return the operations per second of multiply-adds on `count` elements that stay in the caches.

    Args:
        dtype: Of the elements.
        count: Number of elements.
        lengths: Lengths of multiply-add chains to try: the best use of registers differs by machine.
        steps: Passes over the elements per call.
        budget: For each length.
    """
    factor = jnp.asarray(0.5, dtype)
    x = jnp.ones(count, dtype)

    def chained(length: int) -> float:
        def chain(by: jax.Array, step: Any, value: jax.Array) -> jax.Array:
            for _ in range(length):
                value = value * by + by
            return value

        def loop(x: jax.Array, by: jax.Array) -> jax.Array:
            return _looped(steps, partial(chain, by), x)

        run = _compiled(loop, x, factor)
        return 2 * length * steps * count / budget.best(partial(run, x, factor))

    return max(map(chained, lengths))


def matmul_rate(dtype: Any, budget: Budget, least: int, largest: int) -> float:
    """Return the operations per second of a product of square matrices, at the fastest size."""
    best = 0.0
    for size in _doubled(least, largest):
        x = jnp.ones((size, size), dtype)
        run = _compiled(partial(lax.dot, preferred_element_type=_accumulated(dtype)), x, x)
        seconds = budget.best(partial(run, x, x))
        rate = 2 * size**3 / seconds
        if rate < 1.15 * best or 8 * seconds > budget.seconds:  # larger would not be faster, or take too long
            return max(rate, best)
        best = rate
    return best


def special_rate(op: str, count: int, budget: Budget) -> float:
    """Return the elements per second of an operation dearer than a multiply-add, on `count` cached elements."""
    step = SPECIAL[op]

    def loop(x: jax.Array) -> jax.Array:
        def body(_: Any, value: jax.Array) -> jax.Array:
            return step(value)

        return _looped(_SPECIAL_STEPS, body, x)

    x = jnp.linspace(0.1, 0.9, count, dtype=jnp.float32)
    run = _compiled(loop, x)
    return count * _SPECIAL_STEPS / budget.best(partial(run, x))


def sort_rate(rows: int, columns: int, budget: Budget) -> float:
    """Return the comparisons per second of sorting sorted rows: no others are sorted faster."""
    x = jnp.arange(rows * columns, dtype=jnp.float32).reshape(rows, columns)
    run = _compiled(_sorted, x)
    return sort_flops(rows * columns, columns) / budget.best(partial(run, x))


def kernel_seconds(budget: Budget) -> float:
    """Return the cost of one more kernel in a program, if it does next to nothing."""
    x, by = jnp.ones(_SMALL, jnp.float32), jnp.float32(1.0000001)

    def seconds(steps: int) -> tuple[float, int]:
        run = _compiled(_scaled(steps), x, by)
        kernels = run.as_text().count(" fusion(")  # the body's, the counter's, the condition's
        return budget.best(partial(run, x, by)), max(kernels, 1)

    (few, _), (many, kernels) = seconds(8), seconds(8 + 512)
    return max(many - few, 0.0) / (512 * kernels)


def call_seconds(budget: Budget) -> float:
    """Return the cost of a call of a compiled function that does next to nothing."""
    x = jnp.zeros((), jnp.float32)
    run: Any = jax.jit(_more)
    return budget.best(partial(run, x))


def _doubled(size: int, largest: int) -> Iterator[int]:
    while size <= largest:
        yield size
        size *= 2


def _scaled(steps: int) -> Callable[[jax.Array, jax.Array], jax.Array]:
    def scaled(x: jax.Array, by: jax.Array) -> jax.Array:
        def body(_: Any, value: jax.Array) -> jax.Array:
            return value * by

        return _looped(steps, body, x)

    return scaled


def _looped(steps: int, body: Callable[[Any, jax.Array], jax.Array], x: jax.Array) -> jax.Array:
    return _lax.fori_loop(0, steps, body, x)


def _sorted(x: jax.Array) -> jax.Array:
    return lax.sort(x, dimension=1, is_stable=False)


def _more(x: jax.Array) -> jax.Array:
    return x + 1


def _accumulated(dtype: Any) -> Any:
    return jnp.int32 if jnp.issubdtype(dtype, jnp.integer) else dtype


def _compiled(function: Callable[..., Any], *args: Any, donate: Any = ()) -> Any:
    return jax.jit(function, donate_argnums=donate).lower(*args).compile()
