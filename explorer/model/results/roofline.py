"""Rooflines: the peaks of a machine, and how far each kernel is from them.

Williams, Waterman, Patterson: Roofline, CACM 52/4, 2009.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from explorer.model.declared import Charted, Displayable, Framed, Saved, cached_property
from explorer.model.text import aligned, cut_end
from explorer.model.units import count_text, duration_text, factor_text, least_duration_text, share_text

# Operations slower than a multiply-add, and a measured function that is no slower.
SPECIAL = {
    **{op: op for op in ("divide", "erf", "exponential", "log", "power", "sine", "sort", "sqrt", "tanh")},
    **dict.fromkeys(("cosine", "tan"), "sine"),
    **dict.fromkeys(("exponential-minus-one", "logistic", "cosh", "sinh"), "exponential"),
    **dict.fromkeys(("log-plus-one", "acosh", "asinh", "atanh"), "log"),
    **dict.fromkeys(("atan2", "remainder"), "divide"),
    **dict.fromkeys(("rsqrt", "cbrt"), "sqrt"),
}

_Key = TypeVar("_Key")
_NEAR = 10  # times the overhead of an empty kernel: what takes longer than that does something else
_RECORDING = 1e-6  # seconds that the profiler may add to a kernel, by which a tiny one is longer than it was


@dataclass(frozen=True)
class Peaks(Displayable, Saved):
    """Measured peak rates of one machine.

    Args:
        device: Name of the device, with the number of cores for a CPU.
        bandwidth: Memory bandwidth in bytes per second, from an in-place kernel on data larger than any cache.
        matmul: Operations per second of a matrix product, by HLO dtype: `f32`, `bf16`.
        fma: Operations per second of chained multiply-adds without memory access, by dtype.
        special: Elements per second of slower f32 operations, by HLO name: `exponential`, `tanh`, `divide`, …; for
            `sort`, comparisons.
        overhead: Seconds of an empty kernel.
        call_overhead: Seconds of an empty call.
        caches: Bandwidth for data of at most this many bytes, by size.
        fresh: Bandwidth of a kernel that writes to newly allocated memory, as results of a call are; 0 if not
            measured.
        is_provisional: True if the machine was busy during the measurement, so that it may be faster.
        notes: Missing measurements.
        environment: Versions, device, cores.

    Example:
        >>> import explorer
        >>> machine = explorer.Peaks("a machine", bandwidth=10e9, matmul={"f32": 100e9}, fma={"f32": 20e9})
        >>> machine.least_seconds(flops=100e9, bytes_=10e9, dtype="f32", is_matmul=True)
        1.0
        >>> machine.least_seconds(flops=100e9, bytes_=10e9, dtype="f32", is_matmul=False)
        5.0
    """

    device: str
    bandwidth: float
    matmul: Mapping[str, float] = field(default_factory=dict[str, float])
    fma: Mapping[str, float] = field(default_factory=dict[str, float])
    special: Mapping[str, float] = field(default_factory=dict[str, float])
    overhead: float = 0.0
    call_overhead: float = 0.0
    caches: Mapping[int, float] = field(default_factory=dict[int, float])
    fresh: float = 0.0
    is_provisional: bool = False
    notes: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    def better(self, other: Peaks) -> Peaks:
        """Return a copy of `other` with the better figures of both: other work on the machine only lowers a rate."""
        return replace(
            other,
            bandwidth=max(self.bandwidth, other.bandwidth),
            matmul=_best(self.matmul, other.matmul),
            fma=_best(self.fma, other.fma),
            special=_best(self.special, other.special),
            overhead=_least(self.overhead, other.overhead),
            call_overhead=_least(self.call_overhead, other.call_overhead),
            caches=_best(self.caches, other.caches),
            fresh=max(self.fresh, other.fresh),
            is_provisional=self.is_provisional and other.is_provisional,
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return notes on the reliability of the figures."""
        busy = (
            "the peaks were measured while other programs were running: the machine may be faster than they say; "
            "peaks(refresh=True) measures again"
        )
        return (*self.notes, busy) if self.is_provisional else tuple(self.notes)

    def rate(self, dtype: str, *, is_matmul: bool) -> float:
        """Return the peak operations per second for a dtype; 0 if no rate was measured.

        A dtype without a measurement gets the highest measured rate.
        """
        rates = (self.matmul if is_matmul else self.fma) or self.fma or self.matmul
        return rates.get(dtype) or max(rates.values(), default=0.0)

    def bandwidth_of(self, size: float) -> float:
        """Return the peak bytes per second for data of `size` bytes, in a cache that holds them or in memory.

        Between two measured sizes the smaller one counts: a roof that is too high is safe, a roof that is too low is
        wrong.
        """
        below = max(
            (cache for cache in self.caches if cache <= size),
            default=min(self.caches, default=0),
        )
        return max((rate for cache, rate in self.caches.items() if cache >= below), default=0.0) or self.bandwidth

    def compute_seconds(
        self, flops: float, dtype: str, *, is_matmul: bool, special: Mapping[str, float] | None = None
    ) -> float:
        """Return the minimum seconds for operations, of which `special` counts the slower ones by name.

        NaN for unknown FLOPs; 0 if no rate was measured.
        """
        slow = {op: count for op, count in (special or {}).items() if self.special.get(SPECIAL.get(op, op))}
        rate = self.rate(dtype, is_matmul=is_matmul)
        plain = max(flops - sum(slow.values()), 0.0) if slow else flops
        longer = sum(count / self.special[SPECIAL.get(op, op)] for op, count in slow.items())
        # Times 0.0 keeps NaN, for unknown FLOPs.
        return (plain / rate if rate else plain * 0.0) + longer

    def memory_seconds(self, bytes_: float, runs: float = 1.0) -> float:
        """Return the minimum seconds to move `bytes_`, the sum over `runs` runs; 0 if no bandwidth was measured."""
        rate = self.bandwidth_of(bytes_ / runs if runs > 0 else bytes_)
        return bytes_ / rate if rate else bytes_ * 0.0

    def least_seconds(
        self,
        flops: float,
        bytes_: float,
        dtype: str,
        *,
        is_matmul: bool,
        runs: float = 1.0,
        special: Mapping[str, float] | None = None,
    ) -> float:
        """Return the minimum seconds for operations and bytes; NaN if either is unknown.

        Args:
            flops, bytes_: Sum over all runs.
            dtype: HLO name of the dtype: `f32`.
            is_matmul: True for a matrix product, for which a machine may have special units.
            runs: Number of runs of the kernel; the data of one run may fit in a cache.
            special: Number of operations slower than a multiply-add, by name.
        """
        compute = self.compute_seconds(flops, dtype, is_matmul=is_matmul, special=special)
        memory = self.memory_seconds(bytes_, runs)
        return math.nan if math.isnan(compute + memory) else max(compute, memory)

    def bound(
        self,
        flops: float,
        bytes_: float,
        dtype: str,
        *,
        is_matmul: bool,
        seconds: float,
        runs: float = 1.0,
        special: Mapping[str, float] | None = None,
    ) -> str:
        """Return the limiting resource of a kernel: `memory`, `compute`, `overhead`, or `unknown` without costs.

        `overhead` means that the kernel does no work, or that its minimum is below `overhead` per run and the measured
        time less than ten times that, plus 1 µs per run.
        """
        least = self.least_seconds(flops, bytes_, dtype, is_matmul=is_matmul, runs=runs, special=special)
        if math.isnan(least):
            return "unknown"
        starts = self.overhead * max(runs, 1.0)
        if least == 0 or (least < starts and seconds < _NEAR * starts + _RECORDING * max(runs, 1.0)):
            return "overhead"
        compute = self.compute_seconds(flops, dtype, is_matmul=is_matmul, special=special)
        return "compute" if compute > self.memory_seconds(bytes_, runs) else "memory"

    def __repr__(self) -> str:
        return f"Peaks({self.device})"


def _best(one: Mapping[_Key, float], other: Mapping[_Key, float]) -> dict[_Key, float]:
    return {
        key: max(one.get(key, 0.0), other.get(key, 0.0)) for key in (*one, *(key for key in other if key not in one))
    }


def _least(one: float, other: float) -> float:
    """Return the smaller measured figure. A 0 means not measured; return 0 if both are 0."""
    return min(one, other) if one and other else max(one, other)


BOUNDS = ("memory", "compute", "overhead", "unknown")
_MUCH = 0.02  # of the time: what is worth a word
_WIDEST = 64  # letters of a line of the source
_SHOWN = 8  # rows of a table before the count of the others


@dataclass(frozen=True, slots=True)
class Point:
    """One kernel in a roofline.

    Args:
        name, op, module: Instruction, as in a profile.
        seconds: Measured seconds per call.
        flops, bytes: FLOPs and bytes per call, over all iterations of loops; NaN if unknown.
        intensity: FLOPs per byte.
        rate: Achieved FLOPs per second.
        least: Minimum seconds on this machine.
        bound: Limiting resource: `memory`, `compute`, `overhead`, or `unknown` without costs.
        file, line: Source position; empty and 0 if unknown.
        text: Source line without indentation.
        dtype: HLO name of the dtype of the computation.
        is_matmul: True if its work is a matrix product or convolution.
        runs: Runs per call.
        lines: Source lines with their share of the time, 0 to 1, largest first.
        special: Number of slow operations (exponentials, divisions, …), by HLO name.
        computes: Main operations of a fusion, `tanh, multiply`; empty if unknown.
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
        """Return minimum over measured time: 1 is the machine's peak; NaN if unknown.

        The result can exceed 1 if the peaks were measured on a busy machine, or if the data was in a faster cache than
        its size suggests.
        """
        return self.least / self.seconds if self.seconds > 0 else math.nan

    @property
    def wasted(self) -> float:
        """Return the seconds above the minimum; NaN if unknown."""
        return math.nan if math.isnan(self.least) else max(self.seconds - self.least, 0.0)


@dataclass(frozen=True, slots=True)
class Loss:
    """Time of one source line's kernels above the machine's minimum; line 0 stands for no known line.

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
class Roofline(Charted, Framed, Saved):
    """The kernels of a function against the peaks of the machine; its chart has each as a point under the roofs.

    Args:
        function, signature: The profiled function.
        peaks: Peak rates of the machine.
        points: Kernels, longest first.
        notes: Notes on the reliability of the figures.
        is_estimated: True if nothing ran; each time is then the minimum by published peaks.

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
        """Return the seconds of all kernels per call."""
        return math.fsum(point.seconds for point in self.points)

    @cached_property
    def unknown(self) -> float:
        """Return the seconds per call of the kernels without known costs."""
        return math.fsum(point.seconds for point in self.points if point.bound == "unknown")

    @cached_property
    def least(self) -> float:
        """Return the minimum seconds of the kernels with known costs. A faster kernel counts as measured."""
        # A kernel that is faster than its least time shows that the peaks are too low.
        return math.fsum(min(point.least, point.seconds) for point in self.points if point.bound != "unknown")

    @property
    def efficiency(self) -> float:
        """Return minimum over measured time of the kernels with known costs, 0 to 1; NaN without any."""
        with_costs = self.seconds - self.unknown
        return min(self.least / with_costs, 1.0) if with_costs > 0 and self.least <= self.seconds else math.nan

    @property
    def speedup(self) -> float:
        """Return the largest possible speedup, 1 or more; kernels without costs count as they are. NaN without time."""
        least = self.least + self.unknown
        return max(self.seconds / least, 1.0) if least > 0 else math.nan

    @cached_property
    def shares(self) -> Mapping[str, float]:
        """Return the share of the time, 0 to 1, by limiting resource as in `Point.bound`; without those of no time."""
        sums: dict[str, float] = dict.fromkeys(BOUNDS, 0.0)
        for point in self.points:
            sums[point.bound] += point.seconds
        return {bound: sums[bound] / self.seconds for bound in BOUNDS if sums[bound] > 0}

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        """Return the kernel time above the minimum for each source line, largest loss first."""
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
        """Return the share of the machine's peak, the possible speedup and the biggest loss, in one or two sentences.

        If nothing ran, return the estimated minimum time and the line with most of it.
        """
        if self.is_estimated:
            return self._estimate()
        if not self.points:
            return f"{self.function} ran no kernel that could be measured."
        if math.isnan(self.efficiency):
            return f"The minimum time of the kernels of {self.function} is unknown."
        if self.shares.get("overhead", 0.0) > 0.5:
            share = self.shares["overhead"]
            return f"{self.function} spends {share:.0%} of its time on starting kernels that do almost no work."
        # Peaks that were measured while others ran are too low, and so the machine can do more.
        is_provisional = self.peaks.is_provisional
        peak = (
            "this machine's peak, measured while other programs ran" if is_provisional else "what this machine can do"
        )
        result = f"{self.function} reaches {share_text(self.efficiency)} of {peak}"
        if self.unknown > _MUCH * self.seconds:
            longest = next(point.name for point in self.points if point.bound == "unknown")
            others = " and others" if sum(point.bound == "unknown" for point in self.points) > 1 else ""
            result += (
                f", but for {longest}{others}, whose minimum time is unknown: "
                f"{self.unknown / self.seconds:.0%} of the time."
            )
        elif self.speedup < 1.1 and not is_provisional:
            return f"{result}: its kernels, as they are, can't be much faster here."
        else:
            by = "by that peak, " if is_provisional else ""
            result += f": {by}its kernels could be at most {factor_text(self.speedup)} faster."
        return f"{result} {self._loss_text()}".rstrip()

    def _estimate(self) -> str:
        where = f"on {self.peaks.device}"
        if not self.seconds:
            return f"The time of {self.function} {where} is unknown."
        unknown = sum(point.bound == "unknown" for point in self.points)
        without = f", without {count_text(unknown, 'kernel')} of unknown cost" if unknown else ""
        most = max(self.losses, key=lambda loss: loss.seconds)
        line = f"line {most.line}" if most.line else "kernels without a known line"
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
        where = f"line {loss.line}" if loss.line else "in kernels without a known line"
        text = f", `{cut_end(loss.text, _WIDEST)}`" if loss.text else ""
        return f"The biggest loss is {where}{text}: {duration_text(loss.wasted)} of {duration_text(over)}."

    def table(self, rows: int = _SHOWN) -> str:
        """Return the `rows` longest kernels as lines of text, then the count and time of the others."""
        head = ("seconds", "efficiency", "bound", "FLOP/byte", "kernel", "line")
        cells = [head, *(_written(point) for point in self.points[:rows])]
        right = (0, 1, 3)
        if self.is_estimated:  # each is as fast as the peaks allow: an efficiency would say nothing
            cells, right = [("least", *head[2:]), *((row[0], *row[2:]) for row in cells[1:])], (0, 2)
        lines = aligned(cells, right, "  ")
        if len(self.points) > rows:
            rest = self.points[rows:]
            lines.append(f"  and {len(rest):,} more, together {duration_text(sum(p.seconds for p in rest))}")
        return "\n".join(lines)

    @property
    def bounds_text(self) -> str:
        """Return `shares` as text: `72% of the time is bound by memory, 20% by compute`; empty without kernels."""
        parts = [f"{share_text(share)} by {bound}" for bound, share in self.shares.items() if bound != "unknown"]
        if parts:
            first, *rest = parts
            parts = [first.replace(" by ", " of the time is bound by "), *rest]
        if unknown := self.shares.get("unknown"):
            parts.append(f"{share_text(unknown)} has no known minimum time")
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
