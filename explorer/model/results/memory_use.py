"""Memory use of a compiled function, and the device's limit, at one size or several."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from explorer.model.capture import Capture
from explorer.model.declared import Charted, Framed, Saved
from explorer.model.live_memory import USES, needed_bytes
from explorer.model.results.rows import Rows
from explorer.model.results.statistics import Axis
from explorer.model.text import aligned
from explorer.model.units import bytes_text

RUNTIME = ("runtime", "other memory of the runtime, measured")  # memory of the measuring process beyond these


@dataclass(frozen=True)
class MemoryRow:
    """The memory of a program for arguments of one size.

    Args:
        at: Index of the value on each axis; empty without axes.
        values: Varied values, by name.
        uses: Bytes by use, as planned by the compiler: `argument`, `output`, `temp`, `alias` (outputs in the memory of
            donated arguments), `generated code`.
        constants: Bytes of arrays that are constants of the program.
        live: Bytes of live buffers at the peak of the schedule, computed by Explorer; NaN without a schedule.
        measured: Bytes of a run in its own process: the arguments plus the growth of the process; NaN if it didn't
            run.
        is_least: True if the arguments alone exceed the limit, so that the program was not compiled.
        error: Reason for missing figures; empty otherwise.
        capture: Capture of the compile.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> row, = explorer.memory(lambda x: x @ x, jnp.ones((256, 256)), limit=10**9).rows
        >>> row.uses["argument"], row.uses["output"], row.needed <= 10**9
        (262144, 262144, True)
    """

    at: tuple[int, ...]
    values: Mapping[str, float | str]
    uses: Mapping[str, int] = field(default_factory=dict[str, int])
    constants: int = 0
    live: float = math.nan
    measured: float = math.nan
    is_least: bool = False
    error: str = ""
    capture: Capture | None = field(default=None, repr=False, compare=False)

    @property
    def needed(self) -> float:
        """Return the bytes of the compiler's buffers and code on the device; NaN with an `error` or without figures.

        If `is_least`, it was not compiled or was refused: then a bound from the arguments or the refusal.

        This is a lower bound: `taken` adds the measured memory of the runtime.
        """
        return math.nan if self.error else float(needed_bytes(self.uses))

    @property
    def taken(self) -> float:
        """Return the bytes that a run takes: the larger of `measured` and `needed`; `needed` alone if not measured."""
        return self.needed if math.isnan(self.measured) else max(self.needed, self.measured)


@dataclass(frozen=True)
class Largest:
    """The largest size that fits.

    Args:
        name: Name of the varied size.
        size: Largest compiled size that fits; 0 if none does.
        needed: Bytes needed at that size.
        predicted: Prediction from smaller sizes, before the compile.
        too_large: Smallest compiled size that doesn't fit; None if all fit.
    """

    name: str
    size: int
    needed: float
    predicted: float
    too_large: int | None = None

    @property
    def is_exact(self) -> bool:
        """Return True if the next larger size is known not to fit."""
        return self.too_large == self.size + 1


@dataclass(frozen=True, eq=False)
class MemoryUse(Rows[MemoryRow], Charted, Framed, Saved):
    """Result of `explorer.memory`; the text of a single size also lists the live buffers at the peak.

    Args:
        function, signature: The compiled function and its arguments.
        axes: Varied sizes; empty for none.
        rows: One row per combination.
        device: Target device; empty if the caller set the limit.
        limit: Bytes that a program may use; 0 if unknown.
        largest: Largest size that fits, if one number was varied.
        notes: Notes on the reliability of the figures.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> use = explorer.memory(lambda x: x @ x, jnp.ones((256, 256)), limit=10**9)
        >>> use.fits(use.rows[0]), use.limit_text
        (True, 'the 1.0 GB allowed')
    """

    function: str
    signature: str
    axes: tuple[Axis, ...]
    rows: Sequence[MemoryRow]
    device: str
    limit: int
    largest: Largest | None = None
    notes: Sequence[str] = ()

    def parts(self, row: MemoryRow) -> dict[str, int]:
        """Return the bytes by use that sum to `row.taken`: those of the compiler, and `runtime` for all others.

        An output in a donated argument's memory counts 0.


        Example:
            >>> import explorer, jax.numpy as jnp
            >>> use = explorer.memory(lambda x: x @ x, jnp.ones((256, 256)), limit=10**9)
            >>> use.parts(use.rows[0])["argument"]
            262144
        """
        uses = {use: row.uses.get(use, 0) for use, _ in USES}
        besides = round(row.taken - row.needed) if math.isfinite(row.taken - row.needed) else 0
        return {**uses, "output": uses["output"] - row.uses.get("alias", 0), RUNTIME[0]: besides}

    def fits(self, row: MemoryRow) -> bool:
        """Return True if a row fits into the limit, or compiles if the limit is unknown; False if its memory is
        unknown.
        """
        if row.is_least:
            return False
        return row.taken <= self.limit if self.limit else not math.isnan(row.needed)

    @property
    def limit_text(self) -> str:
        """Return the limit in words: `the 25.3 GB that this machine has`, or `the 1.0 GB allowed`."""
        return f"the {_text(self.limit)} " + (f"that {self.device} has" if self.device else "allowed")

    @property
    def headline(self) -> str:
        """Return the memory use, its share of the limit, and its largest part, in a sentence or two.

        For varied sizes, return the range of memory use and the largest size that fits.
        """
        rows = [row for row in self.rows if not math.isnan(row.needed)]
        if not rows:
            why = next((row.error for row in self.rows if row.error), "the compiler reports no figure")
            return f"The memory use of {self.function} is unknown: {why}"
        if self.axes:
            return self._over(rows)
        row = rows[0]
        result = f"{self.function} needs {_text(row.taken)}"
        if self.limit:
            share = row.taken / self.limit
            part = f"{share:.0%}" if share >= 0.01 else "less than 1%"
            result += (
                f": {part} of {self.limit_text}" if share <= 1 else (f", more than {self.limit_text}: it doesn't fit")
            )
        parts = self.parts(row)
        use, name = max((*USES, RUNTIME), key=lambda use: parts[use[0]])
        return f"{result}. The most is for {name.partition(',')[0]}, {_text(parts[use])}. {_basis(row)}"

    def _over(self, rows: Sequence[MemoryRow]) -> str:
        least, most = min(rows, key=lambda row: row.needed), max(rows, key=lambda row: row.needed)
        result = f"{self.function} needs from {_text(least.needed)} to {_text(most.needed)}"
        if not self.limit:
            return f"{result}."
        largest = self.largest
        if largest is None:
            count = sum(self.fits(row) for row in rows)
            return f"{result}; {count:,} of {len(self.rows):,} fit in {self.limit_text}."
        if not largest.size:
            return f"{result}; none fits in {self.limit_text}."
        result += f"; up to {largest.name} = {largest.size:,} fits in {self.limit_text}"
        if largest.is_exact:
            result += ", and no more"
        else:
            result += (
                f", {largest.too_large:,} doesn't" if largest.too_large else "; no size that doesn't fit was tried"
            )
        is_measured = any(not math.isnan(row.measured) for row in rows)
        return f"{result}." if is_measured else f"{result}, by XLA's buffers alone, a lower bound."

    def label(self, row: MemoryRow) -> str:
        """Return the sizes of a row in words, such as `n = 128`; empty if no size was varied."""
        return ", ".join(f"{axis.name} = {row.values.get(axis.name, '?')}" for axis in self.axes)

    def table(self) -> list[tuple[str, ...]]:
        """Return a row of column titles, then each row's cells as text."""
        figures = ("aliased", "live", "measured", "fits")
        head = (*(axis.name for axis in self.axes), "needed", *(name for _, name in USES), *figures)
        rows: list[tuple[str, ...]] = [head]
        for row in self.rows:
            sizes = [_text(row.uses.get(use, math.nan)) for use, _ in (*USES, ("alias", ""))]
            fits = row.error or ("yes" if self.fits(row) else "no")
            needs = f"over {_text(row.needed)}" if row.is_least else _text(row.needed)
            values = [_value(row.values.get(axis.name, "")) for axis in self.axes]
            rows.append((*values, needs, *sizes, _text(row.live), _text(row.measured), fits))
        return rows

    def __repr__(self) -> str:
        rows = self.table()
        text = [self.headline, *aligned(rows, range(len(rows[0])), "  ")]
        capture = self.rows[0].capture if len(self.rows) == 1 else None
        if capture is not None and not math.isnan(self.rows[0].live):
            text.append(capture.live_memory.table())
        return "\n".join([*text, *(f"note: {note}" for note in self.notes)])


def _basis(row: MemoryRow) -> str:
    """Return a sentence on which memory a row's figure counts: XLA's buffers alone, or a measured run."""
    if math.isnan(row.measured):
        return "This counts XLA's buffers: a lower bound, without other memory of the runtime."
    return (
        f"XLA's buffers take {_text(row.needed)}, a lower bound; run in a process of its own it took "
        f"{_text(row.measured)}."
    )


def fitted_size(sizes: Sequence[float], needed: Sequence[float], limit: float) -> float:
    """Return the size at which a curve through the last three points reaches the limit; NaN if none does.

    Memory is a sum of products of sizes, so the curve is a parabola through three points, a line through two, and a
    line through the origin for one. If the parabola never reaches the limit, for example after a step, the line
    through the last two points is used.

    Example:
        >>> fitted_size([1, 2, 4], [10, 40, 160], 1000)
        10.0
        >>> fitted_size([8, 16], [100, 180], 500)
        48.0
    """
    points = sorted(dict(zip(sizes, needed, strict=True)).items())[-3:]
    if len(points) == 1:
        ((size, bytes_),) = points
        return limit * size / bytes_ if bytes_ > 0 else math.nan
    (x1, y1), (x2, y2) = points[-2:]
    slope = (y2 - y1) / (x2 - x1)
    if len(points) == 3:
        x0, y0 = points[0]
        bend = (slope - (y1 - y0) / (x1 - x0)) / (x2 - x0)
        at_end = slope + bend * (x2 - x1)
        inside = at_end**2 + 4 * bend * (limit - y2)
        if abs(bend) * (x2 - x1) > 1e-9 * abs(slope) and inside >= 0 and at_end + math.sqrt(inside) > 0:
            # This form of the root loses no digits where the parabola is nearly a line.
            return x2 + 2 * (limit - y2) / (at_end + math.sqrt(inside))
    return x2 + (limit - y2) / slope if slope > 0 else math.nan


def _text(size: float) -> str:
    return bytes_text(round(size)) if math.isfinite(size) else "–"


def _value(value: float | str) -> str:
    return f"{value:,.10g}" if isinstance(value, (int, float)) else value
