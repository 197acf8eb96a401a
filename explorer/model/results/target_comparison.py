"""One program, compiled for several kinds of hardware."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.errors import UnknownNameError
from explorer.model.attached import Displayable, attached
from explorer.model.capture import Capture
from explorer.model.results.estimates import Estimates

if TYPE_CHECKING:
    import pandas as pd

# What a TPU's compiler says of the device's own memory. Of what is on the chip it says "vmem", which no smaller batch
# need cure, and this machine's memory may end a compile too.
_OUT_OF_MEMORY = re.compile(r"(?i)ran out of memory (on|in memory space) hbm")


@dataclass(frozen=True)
class TargetResult:
    """What became of the program for one target. Figures are of one device, and of one run of the program.

    Args:
        target: As it was named: `8xh100`.
        device: The hardware's own name.
        capture: Its stages; of a compile that failed those before it. None where nothing could be tried.
        failure: Why there is no program, in a sentence; empty where there is one.
        memory: Bytes that the program needs of a device, as its compiler says: arguments, outputs, what it needs
            between, and on a TPU its code, which lies there too. 0 where nobody says it.
        capacity: Bytes that a program may take of a device: of a GPU what XLA's allocator does, three quarters of it.
        kernels: How many run.
        flops, bytes: What they do.
        wire: Bytes that a device sends to the others.
        seconds: The least time that all kernels and links need by published figures: an estimate, never measured. A
            kernel whose work isn't known, as a library's, is left out, and so is the latency of launches and links.
        is_complete: Whether `seconds` has all kernels.

    Example:
        >>> import explorer
        >>> result = explorer.TargetResult("h100", "NVIDIA H100", None, memory=40 * 10**9, capacity=60 * 10**9)
        >>> result.fits
        True
    """

    target: str
    device: str
    capture: Capture | None
    failure: str = ""
    memory: int = 0
    capacity: int = 0
    kernels: int = 0
    flops: float = 0.0
    bytes: float = 0.0
    wire: float = 0.0
    seconds: float = 0.0
    is_complete: bool = True

    @property
    def estimates(self) -> Estimates:
        """What each kernel is expected to take, by its compiler's own model, else by published figures."""
        return Estimates() if self.capture is None or self.failure else self.capture.estimates

    @property
    def estimated(self) -> float:
        """Seconds that all kernels are expected to take, those left out of which nothing is known; NaN of none."""
        return self.estimates.seconds if self.estimates else math.nan

    @property
    def estimated_by(self) -> str:
        """Who expects that."""
        return self.estimates.by

    @property
    def fits(self) -> bool | None:
        """Whether the program fits into a device's memory; None where that isn't known."""
        if self.failure:
            return False if _OUT_OF_MEMORY.search(self.failure) else None
        return self.memory <= self.capacity if self.capacity and self.memory else None


@dataclass(frozen=True)
class TargetComparison(Displayable, Sequence[TargetResult]):  # pyright: ignore[reportUnsafeMultipleInheritance]
    """One program for several targets, in the order asked for; by position, or by the target's name.

    Args:
        function: Its name.
        rows: One for each target.

    Example:
        >>> import explorer
        >>> result = explorer.TargetResult("h100", "NVIDIA H100", None, "its compiler is not installed")
        >>> compared = explorer.TargetComparison("step", (result,))
        >>> compared["h100"].device, compared["h100"].fits
        ('NVIDIA H100', None)
    """

    function: str
    rows: tuple[TargetResult, ...]

    @attached
    def to_frame(self) -> pd.DataFrame:
        """As a `pandas.DataFrame`, a row for each target."""
        ...

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[TargetResult]:
        return iter(self.rows)

    def __getitem__(self, at: int | str) -> TargetResult:  # pyright: ignore[reportIncompatibleMethodOverride]
        if not isinstance(at, str):
            return self.rows[at]
        for row in self.rows:
            if row.target == at:
                return row
        raise UnknownNameError(f"no target is {at!r}; there are: {', '.join(row.target for row in self.rows)}")

    def __repr__(self) -> str:
        return f"TargetComparison({self.function}: {', '.join(row.target for row in self.rows)})"
