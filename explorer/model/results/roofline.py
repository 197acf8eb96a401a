"""How far each kernel is from what the machine can do (Williams, Waterman, Patterson: Roofline, CACM 52/4, 2009)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.model.attached import Charted, Saved, attached, cached_property
from explorer.model.results.peaks import Peaks
from explorer.model.text import cut_end
from explorer.model.units import count_text, duration_text, factor_text, least_duration_text, share_text

if TYPE_CHECKING:
    import pandas as pd

BOUNDS = ("memory", "compute", "overhead", "unknown")
_MUCH = 0.02  # of the time: what is worth a word
_WIDEST = 64  # letters of a line of the source
_SHOWN = 8  # rows of a table before it says how many more there are


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
        text: That line of the source, without indentation.
        dtype: What it computes in, as HLO writes it.
        is_matmul: Whether a matrix product or convolution does its work.
        runs: How often it runs a call.
        lines: The lines that its time comes from, with their share of it, 0 to 1, the largest first.
        special: Of the operations, how many are exponentials, divisions and such, by HLO's name of the function.
        computes: Of a fusion, the operations that it is about, `tanh, multiply`; empty where nothing is known of it.
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
    text: str = ""
    dtype: str = ""
    is_matmul: bool = False
    runs: float = 1.0
    lines: Sequence[tuple[str, int, float]] = ()
    special: Mapping[str, float] = field(default_factory=dict[str, float])
    computes: str = ""

    @property
    def efficiency(self) -> float:
        """The least time over the time measured: 1 is all that the machine gives; NaN where nobody knows.

        It may be more than 1: where the machine's peaks were measured while it did something else, or where a
        kernel's data was in a faster cache than its size tells.
        """
        return self.least / self.seconds if self.seconds > 0 else math.nan

    @property
    def wasted(self) -> float:
        """Seconds over the least; NaN where nobody knows."""
        return math.nan if math.isnan(self.least) else max(self.seconds - self.least, 0.0)


@dataclass(frozen=True, slots=True)
class Loss:
    """What one source line's kernels take over the least that the machine allows; line 0 is for no known line.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> machine = explorer.Peaks("a fast machine", bandwidth=1e15, matmul={"f32": 1e18}, fma={"f32": 1e18})
        >>> measured = explorer.roofline(jax.jit(lambda x: x @ x), jnp.ones((64, 64)), peaks=machine)
        >>> loss = measured.losses[0]
        >>> loss.line, loss.seconds >= loss.wasted > 0
        (1, True)
    """

    file: str
    line: int
    text: str
    seconds: float
    wasted: float


@dataclass(frozen=True, eq=False)
class Roofline(Charted, Saved):
    """The kernels of a function against the peaks of the machine; its chart has each as a point under the roofs.

    Args:
        function, signature: What was profiled.
        peaks: Of the machine.
        points: The kernels, the longest first.
        notes: What the reader should know before trusting the figures.
        is_estimated: Whether nothing ran: each kernel's time is the least that published peaks allow.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> machine = explorer.Peaks("a fast machine", bandwidth=1e15, matmul={"f32": 1e18}, fma={"f32": 1e18})
        >>> measured = explorer.roofline(jax.jit(lambda x: x @ x), jnp.ones((64, 64)), peaks=machine)
        >>> measured.points[0].bound, measured.least < measured.seconds, 0 < measured.efficiency < 1
        ('memory', True, True)
    """

    function: str
    signature: str
    peaks: Peaks
    points: Sequence[Point]
    notes: Sequence[str] = ()
    is_estimated: bool = False

    @cached_property
    def seconds(self) -> float:
        """Of all kernels, a call."""
        return math.fsum(point.seconds for point in self.points)

    @cached_property
    def unknown(self) -> float:
        """Seconds of the kernels that have no costs."""
        return math.fsum(point.seconds for point in self.points if point.bound == "unknown")

    @cached_property
    def least(self) -> float:
        """Seconds that the kernels with known costs need at least; one that was faster than that needs what it took."""
        return math.fsum(min(point.least, point.seconds) for point in self.points if point.bound != "unknown")

    @property
    def efficiency(self) -> float:
        """The least time of the kernels with known costs over their time, 0 to 1; NaN where there are none."""
        with_costs = self.seconds - self.unknown
        return min(self.least / with_costs, 1.0) if with_costs > 0 and self.least <= self.seconds else math.nan

    @property
    def speedup(self) -> float:
        """How many times faster these kernels could be at most; those without costs counted as they are."""
        least = self.least + self.unknown
        return max(self.seconds / least, 1.0) if least > 0 else math.nan

    @cached_property
    def shares(self) -> Mapping[str, float]:
        """The share of the time, 0 to 1, by what holds the kernels back."""
        sums: dict[str, float] = dict.fromkeys(BOUNDS, 0.0)
        for point in self.points:
            sums[point.bound] += point.seconds
        return {bound: sums[bound] / self.seconds for bound in BOUNDS if sums[bound] > 0}

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        """By source line, what its kernels take over the least, the largest first."""
        sums: dict[tuple[str, int], list[float]] = {}
        texts: dict[tuple[str, int], str] = {}
        for point in self.points:
            texts[point.file, point.line] = point.text
            wasted = 0.0 if math.isnan(point.wasted) else point.wasted
            for file, line, share in point.lines or ((point.file, point.line, 1.0),):
                row = sums.setdefault((file, line), [0.0, 0.0])
                row[0] += share * point.seconds
                row[1] += share * wasted
        losses = [Loss(*place, texts.get(place, ""), *row) for place, row in sums.items()]
        return tuple(sorted(losses, key=lambda loss: (-loss.wasted, loss.file, loss.line)))

    @property
    def headline(self) -> str:
        """The result in one or two sentences."""
        if self.is_estimated:
            return self._estimate()
        if not self.points:
            return f"{self.function} ran no kernel that could be measured."
        if math.isnan(self.efficiency):
            return f"Nobody knows the least that the kernels of {self.function} cost, nor how fast they could be."
        if self.shares.get("overhead", 0.0) > 0.5:
            share = self.shares["overhead"]
            return (
                f"{self.function} spends {share:.0%} of its time on starting kernels that have next to nothing to do."
            )
        # Peaks that were measured while others ran are too low, and so the machine can do more.
        seen = "was seen to do while others ran" if self.peaks.is_provisional else "can do"
        result = f"{self.function} reaches {share_text(self.efficiency)} of what this machine {seen}"
        if self.unknown > _MUCH * self.seconds:
            longest = next(point.name for point in self.points if point.bound == "unknown")
            others = " and others" if sum(point.bound == "unknown" for point in self.points) > 1 else ""
            result += (
                f", but for {longest}{others}, whose least cost nobody knows: "
                f"{self.unknown / self.seconds:.0%} of the time."
            )
        elif self.speedup < 1.1 and not self.peaks.is_provisional:
            return f"{result}: its kernels, as they are, can't be much faster here."
        else:
            by = "by that " if self.peaks.is_provisional else ""
            result += f": {by}its kernels could be at most {factor_text(self.speedup)} faster."
        return f"{result} {self._loss_text()}".rstrip()

    def _estimate(self) -> str:
        where = f"on {self.peaks.device}"
        if not self.seconds:
            return f"Nothing is known of the time of {self.function} {where}."
        unknown = sum(point.bound == "unknown" for point in self.points)
        without = f", without {count_text(unknown, 'kernel')} of which nothing is known" if unknown else ""
        most = max(self.losses, key=lambda loss: loss.seconds)
        line = f"line {most.line}" if most.line else "kernels that no line is known for"
        text = f", `{cut_end(most.text, _WIDEST)}`" if most.text else ""
        least = least_duration_text(self.seconds)
        return (
            f"{self.function} needs {least} or more {where}, by published figures{without}: "
            f"estimated, not measured. The most is for {line}{text}: {duration_text(most.seconds)}."
        )

    def _loss_text(self) -> str:
        loss = self.losses[0]
        over = self.seconds - self.least - self.unknown
        if over <= 0 or loss.wasted <= 0:
            return ""
        where = f"line {loss.line}" if loss.line else "in kernels that no line is known for"
        text = f", `{cut_end(loss.text, _WIDEST)}`" if loss.text else ""
        return f"The biggest loss is {where}{text}: {duration_text(loss.wasted)} of {duration_text(over)}."

    @attached
    def to_frame(self) -> pd.DataFrame:
        """A table for pandas, a row a kernel: what a `Point` has, with `efficiency` and `wasted`.

        Raises:
            MissingPackageError: pandas is not installed.
        """
        ...

    def table(self, rows: int = _SHOWN) -> str:
        """The kernels that take longest, as text."""
        head = ("seconds", "efficiency", "bound", "FLOP/byte", "kernel", "line")
        cells = [head, *(_written(point) for point in self.points[:rows])]
        right = (0, 1, 3)
        if self.is_estimated:  # each is as fast as the peaks allow: an efficiency would say nothing
            cells, right = [("least", *head[2:]), *((row[0], *row[2:]) for row in cells[1:])], (0, 2)
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        aligned = ["  " + "  ".join(_aligned(row, widths, right)) for row in cells]
        if len(self.points) > rows:
            rest = self.points[rows:]
            aligned.append(f"  and {len(rest):,} more, together {duration_text(sum(p.seconds for p in rest))}")
        return "\n".join(line.rstrip() for line in aligned)

    @property
    def bounds_text(self) -> str:
        """`72% of the time is bound by memory, 20% by compute, 8% has no costs`."""
        parts = [f"{share_text(share)} by {bound}" for bound, share in self.shares.items() if bound != "unknown"]
        if parts:
            first, *rest = parts
            parts = [first.replace(" by ", " of the time is bound by "), *rest]
        if unknown := self.shares.get("unknown"):
            parts.append(f"of {share_text(unknown)} nobody knows: those kernels have no known least cost")
        return ", ".join(parts)

    def __repr__(self) -> str:
        # With its times, as that of a `Timing`: they are all there is to say.
        lines = [self.headline, self.bounds_text, self.table() if self.points else "", self.peaks.to_text()]
        return "\n".join(
            [*filter(None, lines), *(f"note: {note}" for note in self.notes if note not in self.peaks.warnings)]
        )


def _written(point: Point) -> tuple[str, ...]:
    share = "" if math.isnan(point.efficiency) else share_text(point.efficiency)
    intensity = "" if math.isnan(point.intensity) else f"{point.intensity:.3g}"
    place = f"{Path(point.file).name}:{point.line}" if point.line else ""
    return (duration_text(point.seconds), share, point.bound, intensity, point.name, place)


def _aligned(row: Sequence[str], widths: Sequence[int], right: Sequence[int]) -> list[str]:
    """The cells of a row, those of figures to the right."""
    return [
        cell.rjust(width) if i in right else cell.ljust(width)
        for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
