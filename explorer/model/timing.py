"""How long a function takes: eager, at its first call, and once it is compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median

__all__ = ["Samples", "Timing"]


@dataclass(frozen=True)
class Samples:
    """Seconds of one thing, measured again and again, in the order in which they were.

    Args:
        samples: Seconds of each measurement.
        calls: How many calls each measurement is the mean of; more than one where a call is too short for the clock.
        confidence: Of `interval`, 0 to 1.
    """

    samples: tuple[float, ...]
    calls: int = 1
    confidence: float = 0.95

    @cached_property
    def median(self) -> float:
        return median(self.samples)


@dataclass(frozen=True)
class Timing:
    """What `explorer.time` measured of one function with one set of arguments.

    Args:
        function: Its name.
        signature: Its arguments with their types: `(x: f32[8,128])`.
        first_call: The call that traces, lowers, compiles and runs; one sample.
        steady: Calls of what is compiled, once they have become stable.
        eager: Calls of the function as it is, operation by operation; None where that was not asked for or can't be.
        warm_up: Seconds of each call from the first on until they were stable, the first call included.
        stages: Seconds of `trace`, `lower`, `compile`, and of the first `run`, which make up the first call.
        notes: What the reader should know before trusting the figures: noise, a stopped warm-up, …
        environment: Versions, device, cores.
    """

    function: str
    signature: str
    first_call: Samples
    steady: Samples
    eager: Samples | None = None
    warm_up: tuple[float, ...] = ()
    stages: Mapping[str, float] = field(default_factory=dict[str, float])
    notes: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
