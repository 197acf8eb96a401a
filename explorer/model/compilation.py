"""What a compilation took, step by step, and which arrays it baked into the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Durations:
    """Seconds spent in each step of the compilation.

    Args:
        trace, lower, compile: Of each step; 0 where it wasn't come to.
        reused: The steps whose result JAX had already, in this process or in its persistent cache: their seconds are
            those of a look into a cache, and say nothing of what the step costs.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> function = jax.jit(lambda x: jnp.sin(x) * 2)
        >>> first, again = (explorer.explore(function, jnp.ones(8)).durations for _ in range(2))
        >>> sorted(first.done), again.reused, again.done
        (['compile', 'lower', 'trace'], ('trace', 'lower', 'compile'), {})
    """

    trace: float = 0.0
    lower: float = 0.0
    compile: float = 0.0
    reused: tuple[str, ...] = ()

    @property
    def seconds(self) -> Mapping[str, float]:
        """Of each step, whether it was done or its result was there."""
        return {"trace": self.trace, "lower": self.lower, "compile": self.compile}

    @property
    def done(self) -> Mapping[str, float]:
        """Seconds of the steps that were done for this compilation."""
        return {step: seconds for step, seconds in self.seconds.items() if seconds and step not in self.reused}


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
