"""Timings of a function, and comparisons of several from interleaved measurements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, nan
from statistics import median
from typing import TYPE_CHECKING

from explorer.model.declared import Charted, Saved, cached_property, declared
from explorer.model.results.statistics import (
    attained,
    drift_of,
    effective_count,
    interval_of_median,
    ratio_interval,
    spread_of,
)
from explorer.model.units import duration_text, factor_text, factors_text, range_text

if TYPE_CHECKING:
    import pandas as pd

EARLIER = "measured earlier: "  # begins the note of a time that disagrees with an earlier one
STEPS = ("trace", "lower", "compile", "run")  # what a first call does, in this order
# Seconds: a call so short that it is made many times a sample takes that much more or less from one run to the next,
# independent of its computation. It depends on the process's memory and history (tests/benchmarks/bench_time.py).
_DISPATCH = 3e-7
# Seconds: where a call's work is shared by threads, they are woken, and by when the system has done that a call of
# 34 µs took 29 to 47 from one second to the next, on a machine that did nothing else (as there).
_WAKING = 4e-6
_SHARED = 1.2  # cores that this process used: more, and threads share the work
# Of the median: two quiet runs of one process, minutes apart, differ by this much (same benchmark). Interleaved
# measurements, as in `compare`, differ less.
_ELSEWHERE = 0.03
_NOISY = 0.05  # of the median: an interval that reaches farther, or samples that differ by twice that
_ALIKE = 1.1  # times as long: what is surely within that is as fast
_UNSURE = 2.0  # times as long: the least difference that is reported if both times are too noisy
_TOO_NOISY = 0.1  # of the median: a wider interval gives only an order of magnitude
_DRIFT = 0.05  # of the median
_SOME = 0.05  # cores: worth a word
_SLOWED = 0.06  # of the best time of fixed work, which varies by 1 to 3 % on a quiet machine


@dataclass(frozen=True, repr=False)
class Samples:
    """Repeated measurements of one quantity in seconds, in order.

    The interval is for the median time of a call in another run of this process on this machine, while no other program
    needs its cores. The system's account of processor time and a fixed piece of work (explorer/measure/disturbance.py)
    detect other programs; samples taken meanwhile are left out. If hardly any sample was quiet, or the interval reaches
    more than 10 % from the median, `is_too_noisy` is true. Then the confidence of the interval is unknown.

    Args:
        samples: Seconds of each valid measurement.
        calls: Calls per measurement, of which it is the mean; more than one if a call is too short for the clock.
        confidence: Confidence of `interval`, 0 to 1.
        others: Mean number of cores used by other programs; NaN if unknown.
        slowed: Slowdown of a fixed piece of work against its best time in this process, as a fraction; NaN if not
            measured.
        left_out: Number of measurements left out because of other programs.
        is_disturbed: True if other programs ran nearly all the time or the processor was slower; then all count.
        cores: Mean number of cores used by this process; NaN if unknown.

    Example:
        >>> import explorer
        >>> explorer.types.Samples((0.011, 0.010, 0.012, 0.010, 0.011, 0.013, 0.010))
        Samples(11 ms: 10 … 13 ms with 95 %, 7 samples)
        >>> print(explorer.types.Samples((0.011, 0.010, 0.012, 0.010, 0.011, 0.013, 0.010)))
        11 ms, too noisy (10 … 13 ms)
    """

    samples: tuple[float, ...]
    calls: int = 1
    confidence: float = 0.95
    others: float = nan
    slowed: float = nan
    left_out: int = 0
    is_disturbed: bool = False
    cores: float = nan

    @cached_property
    def median(self) -> float:
        return median(self.samples) if self.samples else nan

    @cached_property
    def interval(self) -> tuple[float, float]:
        """Return the interval of the median with `attained` confidence: `(low, high)` in seconds, NaN if empty."""
        if not self.samples:
            return nan, nan
        low, high = interval_of_median(self.samples, self.confidence)
        least = max(_ELSEWHERE * self.median, self._waking, _DISPATCH if self.calls > 1 else 0.0)
        return min(low, self.median - least), max(high, self.median + least)

    @property
    def _waking(self) -> float:
        return _WAKING if self.cores > _SHARED else 0.0

    @property
    def low(self) -> float:
        return self.interval[0]

    @property
    def high(self) -> float:
        return self.interval[1]

    @property
    def attained(self) -> float:
        """Return the confidence of `interval`: `confidence`, or less if there are too few samples for it."""
        return attained(int(self.worth), self.confidence)

    @cached_property
    def worth(self) -> float:
        """Return the effective number of independent samples, which is lower for correlated samples."""
        return effective_count(self.samples) if self.samples else 0.0

    @property
    def count(self) -> int:
        return len(self.samples)

    @property
    def fastest(self) -> float:
        return min(self.samples, default=nan)

    @cached_property
    def spread(self) -> float:
        """Return the typical relative deviation of samples from their median: 0.03 is 3 %; NaN without samples."""
        return spread_of(self.samples) if self.samples else nan

    @cached_property
    def drift(self) -> float:
        """Return the increase from the first third to the last, over the median; 0 if that may be chance."""
        return drift_of(self.samples)

    @property
    def reach(self) -> float:
        """Return the largest distance of the interval's ends from the median, as a fraction; NaN without samples."""
        return max(self.high - self.median, self.median - self.low) / self.median if self.median > 0 else nan

    @property
    def is_noisy(self) -> bool:
        return self.reach > _NOISY or self.spread > 2 * _NOISY

    @property
    def is_too_noisy(self) -> bool:
        """Return True if other programs disturbed the samples, or if `interval` reaches more than 10 % from the median.

        True without samples too. The confidence of `interval` is then unknown.
        """
        return self.is_disturbed or not self.reach <= _TOO_NOISY

    @property
    def noise(self) -> str:
        """Return the disturbances in words; empty without relevant ones."""
        parts: list[str] = []
        if self.is_disturbed:
            parts.append(self._disturbance)
        elif self.left_out:
            all_ = self.left_out + self.count
            parts.append(f"{self.left_out:,} of {all_:,} samples left out: other programs ran meanwhile")
        if self.attained < self.confidence:
            parts.append(self._few)
        elif self.is_noisy:
            parts.append(
                f"noisy: samples differ by ±{_percent(self.spread)}, their median is known to ±{_percent(self.reach)}"
            )
        if self._waking > _NOISY * self.median:
            parts.append("the call is so short that the time for threads to wake matters, and that time varies")
        if abs(self.drift) > _DRIFT:
            way = "slower" if self.drift > 0 else "faster"
            parts.append(f"it became {_percent(abs(self.drift))} {way} while it was measured")
        return "; ".join(parts)

    @property
    def _disturbance(self) -> str:
        """Return the disturbance by other programs or the processor, in words."""
        causes: list[str] = []
        if self.others > _SOME:
            causes.append(f"other programs used {self.others:.1f} cores")
        if self.slowed > _SLOWED:
            causes.append(f"fixed work took {_percent(self.slowed)} longer than before")
        return f"too noisy: {' and '.join(causes) or 'other programs ran'} while it was measured"

    @property
    def _few(self) -> str:
        if self.count < 2:
            return "only one sample: no error estimate" if self.count else "no samples"
        sure = f"their range holds the median with {_percent(self.attained)}"
        if int(self.worth) < self.count:
            return f"{self.count:,} samples that drift so slowly that they count as {int(self.worth)}: {sure}"
        return f"only {self.count} samples: {sure}"

    def __str__(self) -> str:
        too_noisy = ", too noisy" * self.is_too_noisy
        return f"{duration_text(self.median)}{too_noisy} ({range_text(self.low, self.high)})"

    def __repr__(self) -> str:
        if not self.samples:
            return "Samples(none)"
        each = f" of {self.calls:,} calls" if self.calls > 1 else ""
        return (
            f"Samples({duration_text(self.median)}: {range_text(self.low, self.high)} with {_percent(self.attained)}, "
            f"{self.count:,} sample{'s' * (self.count != 1)}{each})"
        )


@dataclass(frozen=True, repr=False, eq=False)
class Timing(Charted, Saved):
    """Result of `explorer.time` for one function and one set of arguments.

    Args:
        function: Name of the function.
        signature: Arguments with their types: `(x: f32[8,128])`.
        first_call: The call that traces, lowers, compiles and runs; one sample.
        steady: Compiled calls after the warm-up.
        eager: Calls without compilation; None if not requested or impossible.
        warm_up: Seconds of each call from the first on until they were stable, the first call included.
        stages: Seconds of `trace`, `lower`, `compile`, and of the first `run`, which make up the first call.
        notes: What the reader should know before trusting the figures: noise, a stopped warm-up, …
        environment: Versions, device, cores.

    Example:
        >>> import explorer as ex
        >>> ex.Timing("f", "(x: f32[8])", ex.types.Samples((0.2,)), ex.types.Samples((0.01,) * 9),
        ...     ex.types.Samples((0.03,) * 9))
        Timing(f(x: f32[8]))
          steady      10 ms     9.7 … 10.3 ms with 95 %, 9 samples
          eager       30 ms     29.1 … 30.9 ms with 95 %, 9 samples
          first call  200 ms
          3.0× faster than eager (2.8 … 3.2×); the first call pays off after 10 calls
    """

    function: str
    signature: str
    first_call: Samples
    steady: Samples
    eager: Samples | None = None
    warm_up: tuple[float, ...] = ()
    stages: Mapping[str, float] = field(default_factory=dict[str, float])
    notes: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def speedup(self) -> float | None:
        """Return eager over compiled time; None if eager was not measured."""
        if self.eager is None or not self.steady.median > 0:
            return None
        return self.eager.median / self.steady.median

    @property
    def speedup_interval(self) -> tuple[float, float] | None:
        """Return the lowest and the highest `speedup` within both intervals; None if eager was not measured."""
        if self.eager is None or not self.steady.low > 0:
            return None
        return self.eager.low / self.steady.high, self.eager.high / self.steady.low

    @property
    def break_even(self) -> int | None:
        """Return the number of calls after which compiling, the first call included, has paid off against eager.

        None if compiled calls aren't visibly faster, or if eager was not measured.
        """
        if self.eager is None or not self._is_different or (self.speedup or 0.0) <= 1:
            return None
        spared = self.eager.median - self.steady.median
        # A quotient that is whole but for rounding must not become the next number.
        return max(1, ceil((self.first_call.median - self.steady.median) / spared - 1e-9))

    @property
    def headline(self) -> str:
        """Return a sentence with the compiled time, the speedup over eager and the first call."""
        first = duration_text(self.first_call.median)
        rest = self.against_eager(f"the {first} first call") or f"the first call took {first}"
        separator = "; " if self.eager is None else ", "
        return f"{self.function}: {self.compiled_text}{separator}{rest}"

    @property
    def compiled_text(self) -> str:
        """Return the median compiled time in words, `41.2 ms compiled`, with its interval if that is too noisy."""
        steady = self.steady
        if not steady.is_too_noisy:
            return f"{duration_text(steady.median)} compiled"
        interval = range_text(steady.low, steady.high)
        return f"about {duration_text(steady.median)} compiled (median {interval}, too noisy)"

    @property
    def speedup_text(self) -> str:
        """Return the speedup as text, such as `3.0× faster than eager (2.9 … 3.1×)`.

        It is `as fast as eager (…)` if both surely differ by less than 10 %, and empty if the speedup is unknown or
        within the noise.
        """
        interval, factor = self.speedup_interval, self.speedup
        if interval is None or factor is None:
            return ""
        low, high = interval
        if low >= 1 / _ALIKE and high <= _ALIKE:
            return f"as fast as eager ({factors_text(low, high)})"
        if not self._is_different:
            return ""
        if factor < 1:
            factor, low, high = 1 / factor, 1 / high, 1 / low
        word = "faster" if self.steady.median < (self.eager or self.steady).median else "slower"
        return f"{factor_text(factor)} {word} than eager ({factors_text(low, high)})"

    @property
    def about(self) -> str:
        """Return `about ` if a count of calls depends on noisy times, else an empty string."""
        return "about " * any(one is not None and one.is_too_noisy for one in (self.steady, self.eager))

    @property
    def _is_different(self) -> bool:
        """Return True if compiled and eager calls differ by more than the noise."""
        if self.eager is None or self.speedup_interval is None:
            return False
        low, high = self.speedup_interval
        # Other programs may have disturbed only one of the two.
        slack = _UNSURE if self.steady.is_too_noisy or self.eager.is_too_noisy else 1.0
        return low > slack or high < 1 / slack

    @declared
    def to_frame(self, samples: bool = False) -> pd.DataFrame:
        """Return a pandas DataFrame with one row per figure, or per measurement if `samples` is True.

        Args:
            samples: False gives `what` (eager, trace, lower, compile, run, first call, steady), `median`, `low`,
                `high`, `fastest`, `spread`, `samples` and `calls`; True gives `what` (eager, warm-up, steady), `number`
                and `seconds`, in the order in which they were measured.

        Raises:
            MissingPackageError: pandas is not installed.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> timing = explorer.time(jnp.sin, jnp.ones(8), seconds=0.01)
            >>> len(timing.to_frame()) > 0
            True
        """
        ...

    def against_eager(self, first: str = "the first call") -> str:
        """Return the speedup over eager and the number of calls after which compiling pays off.

        Within the noise, return the eager time instead; empty if eager was not measured.
        """
        text, calls = self.speedup_text, self.break_even
        if self.eager is None:
            return ""
        if not text:
            eager = f"{duration_text(self.eager.median)} eager (median {range_text(self.eager.low, self.eager.high)})"
            return f"{eager}: no significant difference"
        if calls is not None:
            return f"{text}; {first} pays off after {self.about}{calls:,} call{'s' * (calls != 1)}"
        return f"{text}: {first} never pays off" if self._is_different else text

    def __repr__(self) -> str:
        # Elsewhere a repr has no times in it, for they differ from run to run. Here they are all there is to say: what
        # stays the same is the lines, their order and their words.
        rows = [("steady", self.steady), ("eager", self.eager)]
        lines = [
            f"  {what:<11} {duration_text(samples.median):<9} {_interval_text(samples)}"
            for what, samples in rows
            if samples is not None
        ]
        stages = ", ".join(f"{step} {duration_text(self.stages[step])}" for step in STEPS if step in self.stages)
        lines.append(f"  {'first call':<11} {duration_text(self.first_call.median):<9} {stages}".rstrip())
        if self.eager is not None:
            lines.append(f"  {self.against_eager()}")
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join([f"Timing({self.function}{self.signature})", *lines])


def _percent(part: float) -> str:
    return f"{part * 100:.0f} %"


def _interval_text(samples: Samples) -> str:
    return "too noisy: " * samples.is_too_noisy + repr(samples).partition(": ")[2].removesuffix(")")


@dataclass(frozen=True, slots=True)
class Ratio:
    """Time relative to the baseline.

    Args:
        name: Name of the compared function.
        ratio: Median of the ratios of all rounds: 2 takes twice as long.
        low, high: Interval of the median.

    Example:
        >>> import explorer
        >>> ratio = explorer.types.Ratio("new", 0.5, 0.48, 0.53)
        >>> ratio.is_same, explorer.types.Ratio("other", 1.01, 0.97, 1.04).is_same
        (False, True)
    """

    name: str
    ratio: float
    low: float
    high: float

    @property
    def is_same(self) -> bool:
        """Return True if the interval contains 1, so that no difference is visible."""
        return self.low <= 1 <= self.high

    def __str__(self) -> str:
        if self.is_same:
            return f"no difference seen ({_span(self.low, self.high)})"
        low, high = (self.low, self.high) if self.ratio > 1 else (1 / self.high, 1 / self.low)
        middle = self.ratio if self.ratio > 1 else 1 / self.ratio
        return f"{factor_text(middle)} {'slower' if self.ratio > 1 else 'faster'} ({_span(low, high)})"


@dataclass(frozen=True, repr=False, eq=False)
class Comparison(Charted, Saved):
    """Result of `explorer.compare`. Iteration yields a `Ratio` for each name except the baseline.

    Args:
        samples: Samples of each name; samples with one index come from the same round.
        baseline: Name of the baseline.
        signature: Arguments with their types; empty if each function has its own.
        notes: Notes on the reliability of the figures.
        environment: Versions, device, cores.

    Example:
        >>> import explorer
        >>> a, b = explorer.types.Samples((1.0, 1.1, 1.0) * 5), explorer.types.Samples((2.1, 2.0, 2.2) * 5)
        >>> compared = explorer.types.Comparison({"old": b, "new": a}, "old")
        >>> compared
        Comparison(new is 2.1× faster (1.82 … 2.20×) than old)
          old   2.1 s    the baseline
          new   1 s      2.1× faster (1.82 … 2.20×)
          15 rounds, each in its own order
        >>> compared["new"].is_same
        False
    """

    samples: Mapping[str, Samples]
    baseline: str
    signature: str = ""
    notes: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def ratios(self) -> dict[str, Ratio]:
        """Return the time of each name relative to the baseline's, without the baseline itself."""
        base = self.samples[self.baseline]
        return {
            name: Ratio(name, *ratio_interval(one.samples, base.samples, one.confidence))
            for name, one in self.samples.items()
            if name != self.baseline
        }

    def __getitem__(self, name: str) -> Ratio:
        return self.ratios[name]

    def __iter__(self) -> Iterator[Ratio]:
        return iter(self.ratios.values())

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def rounds(self) -> int:
        return min((one.count for one in self.samples.values()), default=0)

    @property
    def fastest(self) -> str:
        """Return the name with the smallest median."""
        return min(self.samples, key=lambda name: self.samples[name].median)

    @property
    def headline(self) -> str:
        """Return a sentence on the fastest name that differs from the baseline, or the slowest if none is faster; it
        says so if none differs.
        """
        different = [ratio for ratio in self if not ratio.is_same]
        if not different:
            others = " and ".join(self.ratios) if len(self) < 4 else f"{len(self) - 1} others"
            low, high = min(ratio.low for ratio in self), max(ratio.high for ratio in self)
            return f"no difference seen between {self.baseline} and {others} ({_span(low, high)})"
        # The fastest one against the baseline; where none is faster, the slowest.
        ratio = min(different, key=lambda ratio: ratio.ratio)
        if ratio.ratio > 1:
            ratio = max(different, key=lambda ratio: ratio.ratio)
        return f"{ratio.name} is {ratio} than {self.baseline}"

    @declared
    def to_frame(self, samples: bool = False) -> pd.DataFrame:
        """Return a pandas DataFrame with one row per name, or per round if `samples` is True.

        Args:
            samples: False gives `name`, `median`, `low`, `high`, `fastest`, `spread` in seconds, `ratio`, `ratio_low`,
                `ratio_high`, `samples` and `calls`; True gives a column of seconds for each name, a row for each round.

        Raises:
            MissingPackageError: pandas is not installed.
        """
        ...

    def __repr__(self) -> str:
        # Times, as in the repr of a Timing: they are what there is to say.
        widest = max(map(len, self.samples), default=0) + 2
        lines = [
            f"  {name:<{widest}} {duration_text(samples.median):<8} {self.ratios.get(name, 'the baseline')}"
            for name, samples in self.samples.items()
        ]
        lines.append(f"  {self.rounds:,} rounds, each in its own order")
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join([f"Comparison({self.headline})", *lines])


def _span(low: float, high: float) -> str:
    digits = 2 if high < 9.95 else 1 if high < 99.5 else 0
    return f"{low:,.{digits}f} … {high:,.{digits}f}×"
