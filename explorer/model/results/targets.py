"""Hardware that a program can be compiled for, one program on several of them, and the largest size that fits."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from explorer.model.capture import Capture
from explorer.model.declared import Displayable, Framed
from explorer.model.results.estimates import Estimates
from explorer.model.results.rows import RowSequence, row_at
from explorer.model.target import Hardware
from explorer.model.units import bytes_text, count_text


@dataclass(frozen=True)
class TargetRow:
    """One kind of device.

    Args:
        device: Published figures of the device.
        is_installed: True if its compiler is installed.
        hint: Command that installs it, or another requirement; empty if nothing is needed.

    Example:
        >>> import explorer
        >>> row = explorer.targets()["h100"]
        >>> row.device.name, row.device.platform
        ('NVIDIA H100 80GB HBM3', 'cuda')
    """

    device: Hardware
    is_installed: bool
    hint: str = ""


@dataclass(frozen=True)
class Targets(RowSequence[TargetRow]):
    """Kinds of devices that `target=` accepts, indexed by position or by name.

    Args:
        rows: One row per kind of device.

    Example:
        >>> import explorer
        >>> rows = explorer.targets()
        >>> rows["v5e"].device.platform, "a100" in [row.device.key for row in rows]
        ('tpu', True)
    """

    rows: tuple[TargetRow, ...]

    def __getitem__(self, at: int | str) -> TargetRow:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the row at a position, or of a name that `target=` accepts.

        Raises:
            UnknownNameError: No hardware has this name; the message lists the names.
        """
        return row_at(self.rows, at, "device.key", "no hardware is named")

    def __repr__(self) -> str:
        return f"Targets({', '.join(row.device.key for row in self.rows)})"


# A TPU compiler's message about device memory. Messages about on-chip memory contain "vmem", which no smaller batch
# needs to fix; this machine's memory may end a compile too.
_OUT_OF_MEMORY = re.compile(r"(?i)ran out of memory (on|in memory space) hbm")


@dataclass(frozen=True)
class TargetResult:
    """Result of compiling for one target. Figures are per device and per run.

    Args:
        target: Name as given: `8xh100`.
        device: Name of the hardware.
        capture: Stages of the compile; after a failure the stages before it. None if nothing could be tried.
        failure: Reason of a failure, as a sentence; empty otherwise.
        memory: Bytes that the compiler reports per device: arguments, outputs, temporaries, and on a TPU the code.
            0 if unknown.
        capacity: Bytes that a program may use; on a GPU three quarters of the memory, as XLA's allocator takes.
        kernels: Number of kernels.
        flops, bytes: FLOPs and bytes moved.
        wire: Bytes that a device sends to others.
        seconds: Minimum time of all kernels and links by published figures: an estimate, never measured. It excludes
            kernels with unknown work, such as library calls, and the latency of launches and links.
        is_complete: True if `seconds` includes all kernels.

    Example:
        >>> import explorer
        >>> result = explorer.types.TargetResult("h100", "NVIDIA H100", None, memory=40 * 10**9, capacity=60 * 10**9)
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
        """Return each kernel's estimated time, by the compiler's model or published figures; empty after a failure."""
        return Estimates() if self.capture is None or self.failure else self.capture.estimates

    @property
    def estimated(self) -> float:
        """Return the estimated seconds of all kernels with an estimate; NaN without any."""
        return self.estimates.seconds if self.estimates else math.nan

    @property
    def estimated_by(self) -> str:
        """Return the sources of `estimates` as text, most frequent first, joined by `and`; empty without estimates."""
        return self.estimates.by

    @property
    def fits(self) -> bool | None:
        """Return True if the program fits into a device's memory, False if not, as when the compiler ran out of it.

        None if unknown.
        """
        if self.failure:
            return False if _OUT_OF_MEMORY.search(self.failure) else None
        return self.memory <= self.capacity if self.capacity and self.memory else None


@dataclass(frozen=True)
class TargetComparison(RowSequence[TargetResult], Framed):
    """Results of one program on several targets, indexed by position or by target name.

    Args:
        function: Name of the function.
        rows: One row per target, in the given order.

    Example:
        >>> import explorer
        >>> result = explorer.types.TargetResult("h100", "NVIDIA H100", None, "its compiler is not installed")
        >>> compared = explorer.types.TargetComparison("step", (result,))
        >>> compared["h100"].device, compared["h100"].fits
        ('NVIDIA H100', None)
    """

    function: str
    rows: tuple[TargetResult, ...]

    def __getitem__(self, at: int | str) -> TargetResult:  # pyright: ignore[reportIncompatibleMethodOverride]
        return row_at(self.rows, at, "target", "no target is")

    def __repr__(self) -> str:
        return f"TargetComparison({self.function}: {', '.join(row.target for row in self.rows)})"


@dataclass(frozen=True)
class Trial:
    """One compiled size.

    Args:
        size: Size of the dimension.
        fits: True if the program fits.
        needed: Bytes per device that the compiler allocates, or would need; NaN if unknown.
        error: The compiler's error message; empty otherwise.
        seconds: Duration of trace, lower and compile together.
        capture: Capture of the compile; None after a failure.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> def batch(b):
        ...     return jax.ShapeDtypeStruct((b, 1000), jnp.float32)
        >>> fitted = explorer.largest_that_fits(jnp.sin, dimension="b", args=batch, limit=10**6)
        >>> fitted.fit.fits, fitted.fit.needed <= 10**6, fitted.too_large.fits
        (True, True, False)
    """

    size: int
    fits: bool
    needed: float = math.nan
    error: str = ""
    seconds: float = 0.0
    capture: Capture | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, repr=False)
class LargestFit(Displayable):
    """Result of `explorer.largest_that_fits`.

    Args:
        function: Name of the function.
        dimension: Name of the varied dimension.
        device: Device whose memory is the limit.
        target: Target name as given; empty for the local device.
        capacity: Bytes that a program may use; 0 if unknown.
        basis: Criterion for a fit, as a phrase.
        trials: Compiled sizes, in increasing order.
        multiple: Number that all sizes are multiples of.
        low, high: Range of the search; `high` is 0 for no upper end.
        notes: Notes for the reader.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> def batch(b):
        ...     return jax.ShapeDtypeStruct((b, 1000), jnp.float32)
        >>> fitted = explorer.largest_that_fits(jnp.sin, dimension="b", args=batch, limit=10**6)
        >>> fitted.size, fitted.fit.size, fitted.too_large.size, fitted.exceptions
        (125, 125, 126, ())
    """

    function: str
    dimension: str
    device: str
    target: str
    capacity: int
    basis: str
    trials: Sequence[Trial]
    multiple: int = 1
    low: int = 1
    high: int = 0
    notes: Sequence[str] = ()

    @property
    def size(self) -> int:
        """Return the largest size that fits below the smallest size that doesn't; 0 if there is none."""
        end = self.too_large.size if self.too_large else math.inf
        return max((trial.size for trial in self.trials if trial.fits and trial.size < end), default=0)

    @property
    def fit(self) -> Trial | None:
        """Return the trial of `size`; None if no size fits."""
        return next((trial for trial in self.trials if trial.size == self.size), None)

    @property
    def too_large(self) -> Trial | None:
        """Return the smallest trial that doesn't fit; None if all trials fit."""
        return min((trial for trial in self.trials if not trial.fits), key=lambda trial: trial.size, default=None)

    @property
    def is_exact(self) -> bool:
        """Return True if some size fits, and the next larger one was compiled and doesn't."""
        return self.too_large is not None and self.too_large.size - self.size <= self.multiple and self.size > 0

    @property
    def exceptions(self) -> tuple[int, ...]:
        """Return the sizes that fit although a smaller size doesn't; empty if there are none."""
        end = self.too_large
        return tuple(trial.size for trial in self.trials if end is not None and trial.fits and trial.size > end.size)

    @property
    def is_monotone(self) -> bool:
        """Return True if no tried size fits that is larger than one that doesn't."""
        return not self.exceptions

    @property
    def headline(self) -> str:
        """Return the largest size that fits, the smallest that doesn't, and the number of compiles, in a sentence."""
        tried = f"{count_text(len(self.trials), 'size')} compiled"
        if not self.trials:
            return f"no size of {self.dimension} was compiled."
        end = self.too_large
        if end is None:
            more = f"the largest requested size, {self._taken(self.trials[-1])}"
            return f"{self.dimension} = {self.size:,} fits on {self.device}, {more}; {tried}."
        refused = f"{self.dimension} = {end.size:,} doesn't: {self._why(end)}"
        if not self.size:
            return f"no {self.dimension} fits on {self.device}: {refused}; {tried}."
        fit = self.fit or self.trials[0]
        larger = ", ".join(f"{size:,}" for size in self.exceptions)
        again = f", though {larger} fit{'s' * (len(self.exceptions) == 1)} again" if larger else ""
        rest = "" if self.is_exact else "; sizes between the two were not tried"
        fitting = f"{self.dimension} = {self.size:,} fits on {self.device} ({self._taken(fit)})"
        return f"{fitting}, {refused}{again}{rest}; {tried}."

    def _taken(self, trial: Trial) -> str:
        of = f" of {bytes_text(self.capacity)}" if self.capacity else ""
        return "not known" if math.isnan(trial.needed) else f"{bytes_text(trial.needed)}{of}"

    def _why(self, trial: Trial) -> str:
        return trial.error or f"{bytes_text(trial.needed)} is more than the {bytes_text(self.capacity)} available"

    def __len__(self) -> int:
        return len(self.trials)

    def __repr__(self) -> str:
        rows = [f"  {row.size:>12,}  {'fits' if row.fits else 'no  '}  {self._taken(row)}" for row in self.trials]
        notes = [f"  note: {note}" for note in self.notes]
        return "\n".join([f"LargestFit({self.function}: {self.headline})", *rows, *notes])
