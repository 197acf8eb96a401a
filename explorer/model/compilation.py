"""What a compilation took, step by step, and which arrays it baked into the program."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Durations:
    """Seconds spent in each step of the compilation.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> durations = explorer.explore(jnp.sin, jnp.ones(8)).durations
        >>> min(durations.trace, durations.lower, durations.compile) > 0
        True
    """

    trace: float = 0.0
    lower: float = 0.0
    compile: float = 0.0


@dataclass(frozen=True, slots=True)
class Constant:
    """An array that the function closed over and the trace baked in: its name in the jaxpr, its type, its bytes.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> table = jnp.arange(1000.0)
        >>> capture = explorer.explore(lambda x: x + table, jnp.ones(1000))
        >>> [(constant.type, constant.bytes) for constant in capture.constants]
        [('f32[1000]', 4000)]
    """

    name: str
    type: str
    bytes: int
