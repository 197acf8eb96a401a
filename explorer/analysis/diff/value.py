"""One figure or fact of two captures."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Value:
    """One figure or fact of both sides, as text; `ratio` is b/a where both are numbers above 0.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> before = explorer.explore(lambda x: x + 1, jnp.ones(1000))
        >>> after = explorer.explore(lambda x: x + 1, jnp.ones(2000))
        >>> for value in explorer.diff(before, after).values:
        ...     if value.ratio: print(value.name, value.a, value.b, value.ratio)
        flops 1,000 2,000 2.0
        bytes accessed 8,000 16,000 2.0
        argument bytes 4,000 8,000 2.0
        output bytes 4,000 8,000 2.0
    """

    name: str
    a: str
    b: str
    ratio: float | None = None

    def __str__(self) -> str:
        times = f" (×{self.ratio:.3g})" if self.ratio is not None and abs(self.ratio - 1) >= 0.005 else ""
        return f"{self.a or '–'} → {self.b or '–'}{times}"


def number_value(name: str, a: float | None, b: float | None) -> Value:
    """The value of two numbers; None stands for one that a side doesn't have."""
    return Value(name, _amount(a), _amount(b), ratio_of(a, b))


def ratio_of(a: float | None, b: float | None) -> float | None:
    """`b` over `a`, where both are above 0."""
    return b / a if a and b and a > 0 and b > 0 else None


def _amount(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if float(value).is_integer() else re.sub(r"\.?0+$", "", f"{value:,.3f}")
