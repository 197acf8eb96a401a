"""How far each kernel is from what the machine can do (Williams, Waterman, Patterson: Roofline, CACM 52/4, 2009)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["Peaks", "Point", "Roofline"]


@dataclass(frozen=True)
class Peaks:
    """What one machine can do at most, measured.

    Args:
        device: Its name, with the number of cores of a CPU.
        bandwidth: Bytes a second to and from memory, by a copy larger than any cache.
        matmul: Operations a second of a matrix product, by dtype as HLO writes it: `f32`, `bf16`.
        fma: Operations a second of chained multiply-adds without memory, by dtype.
        overhead: Seconds that a kernel takes that does nothing.
    """

    device: str
    bandwidth: float
    matmul: Mapping[str, float] = field(default_factory=dict[str, float])
    fma: Mapping[str, float] = field(default_factory=dict[str, float])
    overhead: float = 0.0

    def least_seconds(self, flops: float, bytes_: float, dtype: str, *, is_matmul: bool) -> float:
        """The least time that this machine needs for so many operations and bytes; NaN where either is not known."""
        rates = self.matmul if is_matmul else self.fma
        rate = rates.get(dtype) or max(rates.values(), default=0.0)
        return max(flops / rate if rate else 0.0, bytes_ / self.bandwidth if self.bandwidth else 0.0)


@dataclass(frozen=True, slots=True)
class Point:
    """One kernel in a roofline.

    Args:
        name, op, module: The instruction, as in a profile.
        seconds: Measured, a call.
        flops, bytes: What it does and moves a call, loops counted as often as they run; NaN where nobody knows.
        intensity: FLOPs a byte.
        rate: FLOPs a second reached.
        least: Seconds that the machine needs at least.
        bound: What holds it back: `memory`, `compute`, `overhead`, or `unknown` where it has no costs.
        file, line: Where it comes from; empty and 0 where that is not known.
    """

    name: str
    op: str
    module: str
    seconds: float
    flops: float
    bytes: float
    intensity: float
    rate: float
    least: float
    bound: str
    file: str
    line: int


@dataclass(frozen=True, eq=False)
class Roofline:
    """The kernels of a function against the peaks of the machine."""

    function: str
    signature: str
    peaks: Peaks
    points: Sequence[Point]
    notes: Sequence[str] = ()
