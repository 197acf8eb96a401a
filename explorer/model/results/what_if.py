"""What becomes of a function if something is done to it: arguments donated, values recomputed, options given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING

from explorer.model.attached import Charted, Saved, attached, cached_property
from explorer.model.capture import Capture
from explorer.model.results.benchmark_comparison import Ratio
from explorer.model.results.measured import Measured, known_text, size_text
from explorer.model.results.named_rows import row_named
from explorer.model.results.sweep import text_table
from explorer.model.units import duration_text

if TYPE_CHECKING:
    import pandas as pd

    from explorer.analysis.diff.diff import Diff

_LITTLE = 0.01  # of the plain one's memory: less is not told
_LONGEST = 90  # characters of an error


@dataclass(frozen=True, slots=True)
class Difference:
    """How far the results of a variant are from the plain ones.

    Args:
        absolute: The largest difference of two values; NaN where one of them alone is NaN, or they have other shapes.
        relative: The same as a part of the largest value of its array.
    """

    absolute: float
    relative: float

    def __str__(self) -> str:
        if self.absolute == 0:
            return "none"
        return "not comparable" if self.relative != self.relative else f"{self.relative:.1e}"


@dataclass(frozen=True)
class Variant(Measured):
    """One way to compile the function, with what was measured of it.

    Args:
        name: `donate x`; `plain` for the function as it is.
        kind: `plain`, `donate`, `remat`, `precision`, `dtype`, `options` or `together`.
        doing: The same as a sentence begins: `donating x`.
        ratio: How many times as long as the plain one a call takes; None where it was not measured.
        difference: How far its results are from the plain ones; None where that was not seen.
        is_same: Whether the compiled program is the plain one's.
        notes: What the reader should know of it.
        plain: What the compiler made of the function as it is.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> tried = explorer.what_if(lambda x: x * 2, jnp.ones(1000), donate=0, time=False)
        >>> variant, = tried.variants
        >>> variant.name, variant.kind, variant.saved(tried.plain)
        ('donate x', 'donate', 4000)
    """

    name: str
    kind: str
    doing: str
    ratio: Ratio | None = None
    difference: Difference | None = None
    is_same: bool = False
    notes: tuple[str, ...] = ()
    plain: Capture | None = field(default=None, repr=False, compare=False)

    @cached_property
    @attached
    def diff(self) -> Diff:
        """What the compiler made of this and not of the plain one.

        Raises:
            NotRecordedError: It was not compiled.
        """
        ...

    @property
    def time_saved(self) -> float:
        """The part of the plain one's time that it saves, negative where it costs; 0 where no difference is seen."""
        return 0.0 if self.ratio is None or self.ratio.is_same or self.is_same else 1 - self.ratio.ratio

    def saved(self, plain: Measured) -> float:
        """Bytes of memory that it saves, negative where it costs; 0 where that is little."""
        less = plain.peak - self.peak
        return less if isfinite(less) and abs(less) > _LITTLE * plain.peak else 0.0

    @attached
    def verdict(self, plain: Measured) -> str:
        """What it brings, as the rest of a sentence: `saves 4.0 MB and 12 % of time`."""
        ...


@dataclass(frozen=True, repr=False, eq=False)
class WhatIf(Charted, Saved):
    """What `explorer.what_if` measured.

    Args:
        function: The function's name.
        signature: Its arguments with their types.
        rows: The plain function first, then one for each variant.
        notes: What the reader should know before trusting the figures.
        environment: Versions, device, cores.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> tried = explorer.what_if(lambda x: x * 2, jnp.ones(1000), donate=0, time=False)
        >>> tried.plain.name, [variant.name for variant in tried.variants], tried["donate x"].error
        ('plain', ['donate x'], '')
    """

    function: str
    signature: str
    rows: Sequence[Variant]
    notes: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def plain(self) -> Variant:
        """The function as it is."""
        return self.rows[0]

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The others."""
        return tuple(self.rows[1:])

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Variant]:
        return iter(self.rows)

    def __getitem__(self, name: str) -> Variant:
        """The row of this name; UnknownNameError lists those that there are."""
        return row_named(self.rows, name, "variant")

    @property
    @attached
    def headline(self) -> str:
        """What is worth doing, in a sentence; the most first."""
        ...

    @attached
    def to_frame(self) -> pd.DataFrame:
        """A table for pandas, a row a variant.

        Its columns: `variant`, `kind`, `ratio`, `ratio_low`, `ratio_high`, `difference` (the largest), `relative`,
        `same`, then those of a sweep: `seconds`, `low`, `high`, `first_call`, `trace`, … `error`.

        Raises:
            MissingPackageError: pandas is not installed.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> tried = explorer.what_if(lambda x: x * 2, jnp.ones(1000), donate=0, time=False)
            >>> len(tried.to_frame())
            2
        """
        ...

    def table(self) -> list[tuple[str, ...]]:
        """The rows as text, under a head."""
        is_timed = self.plain.steady is not None
        is_estimated = isfinite(self.plain.least)
        times = ["time", "of plain"] if is_timed else ["least, estimated"] if is_estimated else []
        head = ["variant", *times, "memory", "compile", "kernels", "difference"]
        rows = [tuple(head)]
        for row in self.rows:
            timed = [known_text(row.seconds, duration_text), _ratio_text(row)] if is_timed else []
            timed = timed or ([known_text(row.least, duration_text)] if is_estimated else [])
            figures = [
                known_text(row.peak, size_text),
                known_text(row.compile_seconds, duration_text),
                "–" if row.kernels is None else f"{row.kernels:,}",
                str(row.difference) if row.difference else "" if row.kind == "plain" else "–",
            ]
            rows.append((row.name, *timed, *figures))
        return rows

    def __repr__(self) -> str:
        lines = [f"WhatIf({self.function}: {self.headline})", *text_table(self.table())]
        lines += [f"  {row.name}: {row.error[:_LONGEST]}" for row in self.variants if row.error]
        notes = [f"{row.name}: {note}" for row in self.rows for note in row.notes] + list(self.notes)
        return "\n".join([*lines, *(f"  note: {note}" for note in notes)])


def _ratio_text(row: Variant) -> str:
    if row.ratio is None:
        return ""
    return f"{row.ratio.ratio:.2f}× ({row.ratio.low:.2f} … {row.ratio.high:.2f})"
