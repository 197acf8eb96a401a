"""What one machine can do at most, and the least time that a kernel needs on it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from explorer.model.attached import Displayable, Saved

# What takes longer than a multiply-add, and the measured function that takes no longer than it does.
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
    """What one machine can do at most, measured.

    Args:
        device: Its name, with the number of cores of a CPU.
        bandwidth: Bytes a second to and from memory, by a kernel that reads and writes more than any cache holds, in
            place.
        matmul: Operations a second of a matrix product, by dtype as HLO writes it: `f32`, `bf16`.
        fma: Operations a second of chained multiply-adds without memory, by dtype.
        special: Elements a second of what takes more than one multiply-add, in f32, by the name that HLO has for it:
            `exponential`, `tanh`, `divide`, …; of `sort`, comparisons.
        overhead: Seconds that a kernel takes that does nothing.
        call_overhead: Seconds that a call takes that does nothing.
        caches: The bandwidth to and from what is no larger than so many bytes, by those bytes.
        fresh: The bandwidth of a kernel that writes its result into memory that was not used before, as the result of
            a call is; 0 where that was not measured.
        is_provisional: Whether the machine had other things to do meanwhile, so that it may be faster.
        notes: What could not be measured.
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
        """Of two measurements of one machine the better figures: what else it did can only have taken time."""
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
        """What the reader should know before trusting the figures."""
        busy = (
            "the peaks were measured while other programs were running: the machine may be faster than they say; "
            "peaks(refresh=True) measures again"
        )
        return (*self.notes, busy) if self.is_provisional else tuple(self.notes)

    def rate(self, dtype: str, *, is_matmul: bool) -> float:
        """Operations a second at most; of a dtype that was not measured, of the fastest; 0 where none was."""
        rates = (self.matmul if is_matmul else self.fma) or self.fma or self.matmul
        return rates.get(dtype) or max(rates.values(), default=0.0)

    def bandwidth_of(self, size: float) -> float:
        """Bytes a second at most to and from `size` bytes: memory's, or that of a cache that holds them.

        Between two sizes that were measured it is that of the smaller one: a roof that is too high says too little,
        one that is too low says what is wrong.
        """
        below = max(
            (cache for cache in self.caches if cache <= size),
            default=min(self.caches, default=0),
        )
        return max((rate for cache, rate in self.caches.items() if cache >= below), default=0.0) or self.bandwidth

    def compute_seconds(
        self, flops: float, dtype: str, *, is_matmul: bool, special: Mapping[str, float] | None = None
    ) -> float:
        """The least time for so many operations, of which `special` are so many elements of what takes longer."""
        slow = {op: count for op, count in (special or {}).items() if self.special.get(SPECIAL.get(op, op))}
        rate = self.rate(dtype, is_matmul=is_matmul)
        plain = max(flops - sum(slow.values()), 0.0) if slow else flops
        longer = sum(count / self.special[SPECIAL.get(op, op)] for op, count in slow.items())
        return (plain / rate if rate else plain * 0.0) + longer

    def memory_seconds(self, bytes_: float, runs: float = 1.0) -> float:
        """The least time to move so many bytes in so many runs of a kernel."""
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
        """The least time that this machine needs for so many operations and bytes; NaN where either is not known.

        Args:
            flops, bytes_: Of all runs together.
            dtype: As HLO writes it: `f32`.
            is_matmul: Whether they are those of a matrix product, for which a machine may have units of its own.
            runs: How often the kernel runs: what it moves in one run may fit in a cache.
            special: How many of the operations are such that take longer than a multiply-add, by name.
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
        """What holds a kernel back: `memory`, `compute`, `overhead`, or `unknown` where it has no costs.

        It is `overhead` where the kernel has less to do than it takes to start one, and took no longer than such a
        kernel takes.
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
    """The shorter; 0 is for what was not measured."""
    return min(one, other) if one and other else max(one, other)
