"""One binary of a compiled function: for which shapes, why, and what it took."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from explorer.model.capture import Capture


@dataclass(frozen=True)
class Specialization:
    """One binary of a compiled function.

    Args:
        shapes: Of each input, by name; of an input that is a size, that size. A size that stayed open is its symbol.
        reason: Why it was compiled.
        seconds: What trace, lower and compile took.
        when: The moment it was ready.
        capture: What the compiler did, where it was seen.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> batch = explorer.NamedDimension("batch", 1, 4, 8)
        >>> double = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo((batch,), "float32")])
        >>> _ = double(jnp.ones(3))
        >>> [(one.shapes, one.reason) for one in double.specializations]
        [({'x': (4,)}, 'optimised for'), ({'x': (3,)}, 'called')]
    """

    shapes: dict[str, tuple[int | str, ...] | int]
    reason: str
    seconds: float
    when: datetime = field(default_factory=lambda: datetime.now(UTC), repr=False, compare=False)
    capture: Capture | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}: {shape}" for name, shape in self.shapes.items())
        return f"Specialization({{{shapes}}}, {self.reason!r})"
