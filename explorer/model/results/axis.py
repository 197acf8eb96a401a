"""What is varied, and how what is measured grows with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log


@dataclass(frozen=True)
class Axis:
    """One thing that is varied.

    Args:
        name: `n`, `dtype`, `options.xla_cpu_prefer_vector_width`.
        labels: What each of its values is called; no two alike.
        numbers: The values as numbers, where all are; None where they are kinds, such as dtypes.
        unit: What the numbers count, where the values are none themselves: `elements` of arrays.
    """

    name: str
    labels: tuple[str, ...]
    numbers: tuple[float, ...] | None = None
    unit: str = ""

    def __len__(self) -> int:
        return len(self.labels)

    def named(self, at: int) -> str:
        """One of its values in words. A kind says what it is: `bfloat16`; a number doesn't: `heads = 8`."""
        return self.labels[at] if self.numbers is None else f"{self.name} = {self.labels[at]}"

    @property
    def title(self) -> str:
        """Its name with its unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


@dataclass(frozen=True)
class Growth:
    """How something grows: as a power of what is varied.

    Args:
        power: The exponent.
        fit: How much of the variation it explains, 0 to 1: R² of the straight line through the logarithms.
        spread: The factor between the largest and the smallest that was measured.
    """

    power: float
    fit: float
    spread: float


def growth_of(x: Sequence[float], y: Sequence[float]) -> Growth | None:
    """The power of x that y grows with: least squares of a straight line through the logarithms.

    Returns:
        None where that can't be told: fewer than three different x, or a value that is not a number above 0.

    Raises:
        ValueError: `x` and `y` are not of one length.

    Example:
        >>> growth_of([1, 2, 4, 8], [3, 12, 48, 192])
        Growth(power=2.0, fit=1.0, spread=64.0)
    """
    pairs = list(zip(x, y, strict=True))
    if len(set(x)) < 3 or not all(value > 0 and isfinite(value) for pair in pairs for value in pair):
        return None
    xs, ys = [log(a) for a, _ in pairs], [log(b) for _, b in pairs]
    centre_x, centre_y = sum(xs) / len(xs), sum(ys) / len(ys)
    across = sum((a - centre_x) ** 2 for a in xs)
    if not across:  # different numbers, so near to each other that their logarithms are one
        return None
    power = sum((a - centre_x) * (b - centre_y) for a, b in zip(xs, ys, strict=True)) / across
    whole = sum((b - centre_y) ** 2 for b in ys)
    left = sum((b - centre_y - power * (a - centre_x)) ** 2 for a, b in zip(xs, ys, strict=True))
    fit = max(0.0, 1 - left / whole) if whole else 1.0
    return Growth(round(power, 9) + 0.0, round(fit, 9), max(y) / min(y))
