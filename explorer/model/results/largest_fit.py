"""The largest size of a dimension with which a program fits into a device's memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from explorer.model.attached import Displayable
from explorer.model.capture import Capture
from explorer.model.units import bytes_text, count_text


@dataclass(frozen=True)
class Trial:
    """One size that was compiled.

    Args:
        size: Of the dimension.
        fits: Whether the program fits.
        needed: Bytes of one device: of what fits what the compiler allocates, else what it says that it would take;
            NaN where it doesn't.
        error: Why there is no program, in the compiler's words; empty where there is one.
        seconds: That it took to trace, lower and compile.
        capture: What was compiled; None where that failed.

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
    """What `explorer.largest_that_fits` found.

    Args:
        function: Its name.
        dimension: What was varied.
        device: Whose memory it is.
        target: As it was named; empty for the device that is here.
        capacity: Bytes that a program may take of it; 0 where nobody tells.
        basis: What decides whether a program fits, as the rest of a sentence.
        trials: The sizes that were compiled, in the order of size.
        multiple: Sizes are multiples of it.
        low, high: The sizes between which was looked; `high` is 0 for no end.
        notes: What the reader should know.

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
        """The largest that fits and below which all that were tried fit; 0 if none does."""
        end = self.too_large.size if self.too_large else math.inf
        return max((trial.size for trial in self.trials if trial.fits and trial.size < end), default=0)

    @property
    def fit(self) -> Trial | None:
        """The trial of `size`."""
        return next((trial for trial in self.trials if trial.size == self.size), None)

    @property
    def too_large(self) -> Trial | None:
        """The smallest that doesn't fit; None if all that were tried do."""
        return min((trial for trial in self.trials if not trial.fits), key=lambda trial: trial.size, default=None)

    @property
    def is_exact(self) -> bool:
        """Whether the next size was compiled and doesn't fit."""
        return self.too_large is not None and self.too_large.size - self.size <= self.multiple and self.size > 0

    @property
    def exceptions(self) -> tuple[int, ...]:
        """Sizes that fit although a smaller one doesn't."""
        end = self.too_large
        return tuple(trial.size for trial in self.trials if end is not None and trial.fits and trial.size > end.size)

    @property
    def is_monotone(self) -> bool:
        """Whether of the sizes that were tried no larger one fits than one that doesn't."""
        return not self.exceptions

    @property
    def headline(self) -> str:
        """The result in two sentences."""
        tried = f"{count_text(len(self.trials), 'size')} compiled"
        if not self.trials:
            return f"no size of {self.dimension} was compiled."
        end = self.too_large
        if end is None:
            more = f"the largest that was asked for, {self._taken(self.trials[-1])}"
            return f"{self.dimension} = {self.size:,} fits on {self.device}, {more}; {tried}."
        refused = f"{self.dimension} = {end.size:,} doesn't: {self._why(end)}"
        if not self.size:
            return f"no {self.dimension} fits on {self.device}: {refused}; {tried}."
        fit = self.fit or self.trials[0]
        again = f", though {', '.join(f'{size:,}' for size in self.exceptions)} does again" if self.exceptions else ""
        rest = "" if self.is_exact else "; between the two nothing was compiled"
        fitting = f"{self.dimension} = {self.size:,} fits on {self.device} ({self._taken(fit)})"
        return f"{fitting}, {refused}{again}{rest}; {tried}."

    def _taken(self, trial: Trial) -> str:
        of = f" of {bytes_text(self.capacity)}" if self.capacity else ""
        return "not known" if math.isnan(trial.needed) else f"{bytes_text(trial.needed)}{of}"

    def _why(self, trial: Trial) -> str:
        return trial.error or f"{bytes_text(trial.needed)} are more than the {bytes_text(self.capacity)} there are"

    def __len__(self) -> int:
        return len(self.trials)

    def __repr__(self) -> str:
        rows = [f"  {row.size:>12,}  {'fits' if row.fits else 'no  '}  {self._taken(row)}" for row in self.trials]
        notes = [f"  note: {note}" for note in self.notes]
        return "\n".join([f"LargestFit({self.function}: {self.headline})", *rows, *notes])
