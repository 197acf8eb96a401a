"""Measurements of programs over sizes or options (sweep), and of variants against the plain function (what-if)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from math import isfinite, nan
from typing import TYPE_CHECKING

from explorer.model.capture import Capture
from explorer.model.declared import Charted, Saved, cached_property, declared
from explorer.model.live_memory import needed_bytes
from explorer.model.results.rows import Rows, row_named
from explorer.model.results.statistics import Axis
from explorer.model.results.timing import Ratio, Samples
from explorer.model.text import aligned, bar
from explorer.model.units import bytes_text, duration_text

if TYPE_CHECKING:
    import pandas as pd

    from explorer.analysis.diff.diff import Diff


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Measurements of one program.

    Args:
        steady: Steady calls; None after a failure or without timing.
        stages: Seconds of `trace`, `lower`, `compile` and the first `run`, as far as they ran.
        memory: Bytes by use, from XLA: `argument`, `output`, `temp`, `alias`, `generated code`; empty if unknown.
        flops, bytes: FLOPs and bytes moved per call; NaN if unknown.
        kernels: Number of kernels; None if it was not compiled.
        least: Minimum seconds of its kernels and links by published figures of the target hardware: an estimate,
            never measured. NaN for the local device.
        error: Reason of a failure; empty otherwise.
        capture: Capture of the compile.
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
        """Return the median seconds of a call; NaN if the call was not measured."""
        return nan if self.steady is None else self.steady.median

    @property
    def compile_seconds(self) -> float:
        """Return the seconds of trace, lower and compile together; NaN if one of them did not run."""
        return sum(self.stages.get(step, nan) for step in ("trace", "lower", "compile"))

    @property
    def first_call(self) -> float:
        """Return the seconds of trace, lower, compile and first run together; NaN if one of them did not run."""
        return self.compile_seconds + self.stages.get("run", nan)

    @property
    def peak(self) -> float:
        """Return the bytes of device memory that the program needs, by XLA's figures; NaN if XLA gives none."""
        return needed_bytes(self.memory)


def known_text(value: float, text: Callable[[float], str]) -> str:
    """Return the text of a value; a dash if the value is NaN."""
    # Only NaN differs from itself.
    return "–" if value != value else text(value)


def size_text(size: float) -> str:
    return bytes_text(int(size))


# Figures of a sweep: property of a row, and its label.
FIGURES = (
    ("seconds", "time"),
    ("least", "least time, estimated"),
    ("compile_seconds", "compile time"),
    ("peak", "memory"),
)
_LONGEST = 90  # characters of an error


@dataclass(frozen=True)
class SweepRow(Measured):
    """One point of a sweep with its measurements.

    Args:
        at: Index of the value on each axis.
        values: Swept values by name: numbers or labels.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> swept = explorer.sweep(lambda x: x @ x, over={"n": [8, 16]}, args=lambda n: jnp.ones((n, n)), time=False)
        >>> [(row.values["n"], row.memory["argument"], row.flops) for row in swept]
        [(8, 256, 1024.0), (16, 1024, 8192.0)]
    """

    at: tuple[int, ...]
    values: Mapping[str, float | str]


@dataclass(frozen=True)
class Series:
    """Rows that differ only along one axis.

    Args:
        label: Values that they share; empty if there is only one series.
        rows: Rows in the order of the axis.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> swept = explorer.sweep(lambda x: x @ x, over={"n": [8, 16]}, args=lambda n: jnp.ones((n, n)), time=False)
        >>> series, = swept.series
        >>> [row.values["n"] for row in series.rows]
        [8, 16]
    """

    label: str
    rows: tuple[SweepRow, ...]


@dataclass(frozen=True, repr=False, eq=False)
class Sweep(Rows[SweepRow], Charted, Saved):
    """Result of `explorer.sweep`.

    Args:
        function: The function's name.
        axes: Varied sizes or options.
        rows: One row per combination; the last axis changes fastest.
        notes: Notes on the reliability of the figures.
        environment: Versions, device.

    Example:
        >>> import explorer as ex
        >>> from explorer.model.results.statistics import Axis
        >>> axis = Axis("n", ("64", "128"), (64.0, 128.0))
        >>> took = [ex.types.Samples((s,) * 9) for s in (0.001, 0.004)]
        >>> ex.Sweep("f", (axis,), [ex.types.SweepRow((i,), {"n": 64 * (i + 1)}, steady=s) for i, s in enumerate(took)])
        Sweep(f over n: time grows 4.0× (3.8 … 4.2×) from n = 64 to 128)
            n  time                   ±  compile  memory  kernels
           64  1 ms  ███           ±3 %        –       –        –
          128  4 ms  ████████████  ±3 %        –       –        –
    """

    function: str
    axes: tuple[Axis, ...]
    rows: Sequence[SweepRow]
    notes: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def over(self) -> int:
        """Return the index of the main axis: the first numeric one with several values, else the first with several."""
        several = [i for i, axis in enumerate(self.axes) if len(axis) > 1] or [0]
        return next((i for i in several if self.axes[i].numbers is not None), several[0])

    @property
    def series(self) -> tuple[Series, ...]:
        """Return the rows grouped by their values on all axes but `over`, each group ordered along `over`."""
        along = self.over
        # An axis of one value divides no rows.
        rest = [i for i, axis in enumerate(self.axes) if i != along and len(axis) > 1]
        numbers = self.axes[along].numbers or range(len(self.axes[along]))
        by_kind: dict[tuple[int, ...], list[SweepRow]] = {}
        for row in self.rows:
            by_kind.setdefault(tuple(row.at[i] for i in rest), []).append(row)
        return tuple(
            Series(
                ", ".join(self.axes[i].named(at) for i, at in zip(rest, key, strict=True)),
                tuple(sorted(rows, key=lambda row: numbers[row.at[along]])),
            )
            for key, rows in by_kind.items()
        )

    @property
    def failed(self) -> tuple[SweepRow, ...]:
        """Return the rows of the points that failed."""
        return tuple(row for row in self.rows if row.error)

    @property
    @declared
    def headline(self) -> str:
        """Return a sentence on the growth of time and memory, or on the fastest kind, and on failed points."""
        ...

    def label(self, row: SweepRow) -> str:
        """Return a point's values in words, such as `n = 128, dtype = float32`."""
        return ", ".join(f"{axis.name} = {axis.labels[at]}" for axis, at in zip(self.axes, row.at, strict=True))

    @declared
    def to_frame(self) -> pd.DataFrame:
        """Return a pandas DataFrame with one row per point: swept values by name, then seconds, bytes and counts.

        Its columns: `seconds`, `low`, `high` (of a call), `first_call`, `trace`, `lower`, `compile`, `run`, `argument`,
        `output`, `temp`, `alias`, `peak`, `least`, `flops`, `bytes`, `kernels`, `error`. A swept name that is one of
        these has an underscore behind it.

        Raises:
            MissingPackageError: pandas is not installed.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> def square(n):
            ...     return jnp.ones((n, n))
            >>> swept = explorer.sweep(jnp.tanh, over={"n": [8, 16]}, args=square, time=False)
            >>> list(swept.to_frame()["n"])
            [8, 16]
        """
        ...

    def table(self) -> list[tuple[str, ...]]:
        """Return column titles, then each row's cells as text: values, time, compile time, memory, kernels, error."""
        is_timed = any(row.steady for row in self.rows)
        is_estimated = any(isfinite(row.least) for row in self.rows)
        times = ["time", "", "±"] if is_timed else ["least, estimated"] if is_estimated else []
        head = [*(axis.title for axis in self.axes), *times, "compile", "memory"]
        rows = [tuple([*head, "kernels"])]
        most = max((row.seconds for row in self.rows if row.steady), default=0.0)
        for row in self.rows:
            swept = [axis.labels[at] for axis, at in zip(self.axes, row.at, strict=True)]
            length = bar(row.seconds / most) if row.seconds > 0 else ""
            timed = [known_text(row.seconds, duration_text), length, _reach(row)] if is_timed else []
            timed = timed or ([known_text(row.least, duration_text)] if is_estimated else [])
            kernels = "–" if row.kernels is None else f"{row.kernels:,}"
            figures = [known_text(row.compile_seconds, duration_text), known_text(row.peak, size_text)]
            rows.append((*swept, *timed, *figures, kernels, *([row.error[:_LONGEST]] if row.error else [])))
        return rows

    def __repr__(self) -> str:
        names = ", ".join(axis.name for axis in self.axes)
        lines = [f"Sweep({self.function} over {names}: {self.headline})", *text_table(self.table())]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def text_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as aligned lines, the first row as the head. Columns of figures are right-aligned."""
    columns = list(zip_longest(*rows[1:], fillvalue=""))
    right = {at for at, column in enumerate(columns) if any(column) and all(map(_is_figure, column))}
    return aligned(rows, right, "  ")


def _is_figure(cell: str) -> bool:
    return not cell or cell[0] in "–±−-" or cell[0].isdigit()


def _reach(row: SweepRow) -> str:
    return "" if row.steady is None else f"±{100 * row.steady.reach:.0f} %"


_LITTLE = 0.01  # of the plain one's memory: less is not reported


@dataclass(frozen=True, slots=True)
class Difference:
    """Deviation of a variant's results from the plain function's.

    Args:
        absolute: Largest difference of two values; NaN if only one of them is NaN or the shapes differ.
        relative: The same relative to the largest value of its array.
    """

    absolute: float
    relative: float

    def __str__(self) -> str:
        if self.absolute == 0:
            return "none"
        return "not comparable" if self.relative != self.relative else f"{self.relative:.1e}"


@dataclass(frozen=True)
class Variant(Measured):
    """One variant of the function with its measurements.

    Args:
        name: `donate x`; `plain` for the function as it is.
        kind: `plain`, `donate`, `remat`, `precision`, `dtype`, `options` or `together`.
        doing: The name as a phrase: `donating x`.
        ratio: Time of a call relative to the plain function; None if not measured.
        difference: Deviation of its results; None if not compared.
        is_same: True if both compile to the same program.
        notes: Notes for the reader.
        plain: Capture of the plain function.

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
    @declared
    def diff(self) -> Diff:
        """Return the differences between this program and the plain one.

        Raises:
            NotRecordedError: The variant was not compiled.
        """
        ...

    @property
    def time_saved(self) -> float:
        """Return the share of the plain function's time that the variant saves; negative if it is slower.

        The share is 0 if no difference is visible, or if times were not measured.
        """
        return 0.0 if self.ratio is None or self.ratio.is_same or self.is_same else 1 - self.ratio.ratio

    def saved(self, plain: Measured) -> float:
        """Return the bytes of memory that the variant saves over `plain`; negative if it needs more.

        Differences of less than 1 % count as 0, and so do unknown ones.
        """
        less = plain.peak - self.peak
        return less if isfinite(less) and abs(less) > _LITTLE * plain.peak else 0.0

    @declared
    def verdict(self, plain: Measured) -> str:
        """Return the effect compared with `plain` as a phrase: `saves 4.0 MB of memory`, `failed: …`."""
        ...


@dataclass(frozen=True, repr=False, eq=False)
class WhatIf(Rows[Variant], Charted, Saved):
    """Result of `explorer.what_if`.

    Args:
        function: The function's name.
        signature: Its arguments with their types.
        rows: The plain function, then one row per variant.
        notes: Notes on the reliability of the figures.
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
        """Return the row of the unchanged function."""
        return self.rows[0]

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Return the rows of the changed functions, without the plain function."""
        return tuple(self.rows[1:])

    def __getitem__(self, name: str) -> Variant:
        """Return the first row of this name.

        Raises:
            UnknownNameError: No row has this name; the message lists existing or similar names.
        """
        return row_named(self.rows, name, "variant")

    @property
    @declared
    def headline(self) -> str:
        """Return a sentence on the two best variants, or that no variant saves anything or all failed."""
        ...

    @declared
    def to_frame(self) -> pd.DataFrame:
        """Return a pandas DataFrame with one row per variant.

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
        """Return a row of column titles, then each row's cells as text."""
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
