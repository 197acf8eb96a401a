"""How a function does over a range of shapes, dtypes, arguments or compiler options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING

from explorer.model.attached import Charted, Saved, attached
from explorer.model.results.axis import Axis
from explorer.model.results.measured import Measured, known_text, size_text
from explorer.model.units import duration_text

if TYPE_CHECKING:
    import pandas as pd

# What is drawn and told against what was swept: the name of a row's property, and what a person calls it.
FIGURES = (
    ("seconds", "time"),
    ("least", "least time, estimated"),
    ("compile_seconds", "compile time"),
    ("peak", "memory"),
)
_BAR = 12  # characters
_LONGEST = 90  # characters of an error
_EIGHTHS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True)
class SweepRow(Measured):
    """One point of a sweep, with what was measured there.

    Args:
        at: Which value it has of each axis.
        values: What was swept by name: a number, or what the value is called.

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
    """The rows that differ in one axis alone.

    Args:
        label: What they have in common; empty where there is one series.
        rows: In the order of that axis.

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
class Sweep(Charted, Saved):
    """What `explorer.sweep` measured.

    Args:
        function: The function's name.
        axes: What was varied.
        rows: One for each combination, the last axis the fastest.
        notes: What the reader should know before trusting the figures.
        environment: Versions, device.

    Example:
        >>> import explorer as ex
        >>> from explorer.model.results.axis import Axis
        >>> axis = Axis("n", ("64", "128"), (64.0, 128.0))
        >>> took = [ex.Samples((s,) * 9) for s in (0.001, 0.004)]
        >>> ex.Sweep("f", (axis,), [ex.SweepRow((i,), {"n": 64 * (i + 1)}, steady=s) for i, s in enumerate(took)])
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

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[SweepRow]:
        return iter(self.rows)

    @property
    def over(self) -> int:
        """Which axis the others are told along: the first of numbers with several values, else the first with such."""
        several = [i for i, axis in enumerate(self.axes) if len(axis) > 1] or [0]
        return next((i for i in several if self.axes[i].numbers is not None), several[0])

    @property
    def series(self) -> tuple[Series, ...]:
        """The rows by what they have in common beside `over`, each along it."""
        along = self.over
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
        """The points that failed."""
        return tuple(row for row in self.rows if row.error)

    @property
    @attached
    def headline(self) -> str:
        """The result in a sentence: how time, compile time and memory grow, or which kind is faster."""
        ...

    def label(self, row: SweepRow) -> str:
        """`n = 128, dtype = float32`: a point in words."""
        return ", ".join(f"{axis.name} = {axis.labels[at]}" for axis, at in zip(self.axes, row.at, strict=True))

    @attached
    def to_frame(self) -> pd.DataFrame:
        """A table for pandas, a row a point: what was swept by name, then seconds, bytes and counts.

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
        """The rows as text, under a head: the values, time, compile time, memory, kernels, and errors."""
        is_timed = any(row.steady for row in self.rows)
        is_estimated = any(isfinite(row.least) for row in self.rows)
        times = ["time", "", "±"] if is_timed else ["least, estimated"] if is_estimated else []
        head = [*(axis.title for axis in self.axes), *times, "compile", "memory"]
        rows = [tuple([*head, "kernels"])]
        most = max((row.seconds for row in self.rows if row.steady), default=0.0)
        for row in self.rows:
            swept = [axis.labels[at] for axis, at in zip(self.axes, row.at, strict=True)]
            timed = [known_text(row.seconds, duration_text), bar(row.seconds, most), _reach(row)] if is_timed else []
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
    """Rows of cells under a head as lines, in columns: figures to the right, what else there is to the left."""
    wide = max(len(row) for row in rows)
    columns = list(zip(*([*row, *[""] * (wide - len(row))] for row in rows), strict=True))
    aligned: list[list[str]] = []
    for column in columns:
        width = max(map(len, column))
        is_figures = all(not cell or cell[0] in "–±−-" or cell[0].isdigit() for cell in column[1:]) and any(column[1:])
        aligned.append([cell.rjust(width) if is_figures else cell.ljust(width) for cell in column])
    return ["  " + "  ".join(cells).rstrip() for cells in zip(*aligned, strict=True)]


def bar(value: float, most: float) -> str:
    """A bar of up to twelve characters, to an eighth of one."""
    if not value > 0 or not most > 0:
        return ""
    eighths = max(1, round(8 * _BAR * min(value / most, 1)))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _reach(row: SweepRow) -> str:
    return "" if row.steady is None else f"±{100 * row.steady.reach:.0f} %"
