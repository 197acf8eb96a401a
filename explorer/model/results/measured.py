"""What one compiled program cost and gave, as far as it came; common to the rows of a sweep and of a what-if."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import nan

from explorer.model.capture import Capture
from explorer.model.live_memory import needed_bytes
from explorer.model.results.timing import Samples
from explorer.model.units import bytes_text


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One program.

    Args:
        steady: Calls, once they are stable; None where it failed or time was not asked for.
        stages: Seconds of `trace`, `lower`, `compile`, and of the first `run`; those that it came to.
        memory: Bytes by use: `argument`, `output`, `temp`, `alias`, `generated code`, as XLA tells them; empty where
            it doesn't.
        flops, bytes: Operations of a call and bytes that its kernels move; NaN where nobody knows.
        kernels: How many the program has; None where it was not compiled.
        least: Seconds that its kernels and links need at least by published figures of the hardware that it was
            compiled for: an estimate, never measured. NaN where it is for what is here.
        error: Why it failed; empty if it didn't.
        capture: What the compiler made of it.
    """

    steady: Samples | None = None
    stages: Mapping[str, float] = field(default_factory=dict[str, float])
    memory: Mapping[str, int] = field(default_factory=dict[str, int])
    flops: float = nan
    bytes: float = nan
    kernels: int | None = None
    least: float = nan
    error: str = ""
    capture: Capture | None = field(default=None, repr=False, compare=False)

    @property
    def seconds(self) -> float:
        """The median of a call; NaN where it was not measured."""
        return nan if self.steady is None else self.steady.median

    @property
    def compile_seconds(self) -> float:
        """Seconds of trace, lower and compile; NaN where it was not compiled."""
        return sum(self.stages.get(step, nan) for step in ("trace", "lower", "compile"))

    @property
    def first_call(self) -> float:
        """Seconds of the first call: trace, lower, compile and run; NaN where it didn't come to that."""
        return self.compile_seconds + self.stages.get("run", nan)

    @property
    def peak(self) -> float:
        """Bytes that a call needs: arguments, outputs, temporaries and code; NaN where XLA doesn't tell."""
        return needed_bytes(self.memory)


def known_text(value: float, text: Callable[[float], str]) -> str:
    """A value in words; a dash where it is not known."""
    return "–" if value != value else text(value)


def size_text(size: float) -> str:
    return bytes_text(int(size))
