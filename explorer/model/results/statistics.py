"""Statistics of repeated measurements: medians with intervals, and how a figure grows with a size.

Timings have a floor and a long tail, so medians are reported and not means; nothing is taken to be normal or
independent. On a machine that does other things as well, what is slow now is slow a moment later too, so a hundred
samples may say no more than ten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, isfinite, lgamma, log, nan
from statistics import correlation, linear_regression

import numpy as np

_FLOOR = 1e-12
_TO_SIGMA = 1.4826  # of a normal distribution, the median absolute deviation times this is the standard deviation
# Parts of a run whose medians show drift, if each has three samples.
_BLOCKS = 10
_TELLING = 12  # samples; fewer don't tell whether they follow each other
# However many samples a run has, the medians of runs differ: by half of the spread, and by a hundredth where that is
# none, as where code and data lie in memory alone makes as much (Mytkowicz et al. 2009, Producing Wrong Data
# Without Doing Anything Obviously Wrong!; Kalibera & Jones 2013, Rigorous Benchmarking in Reasonable Time).
_BETWEEN_RUNS, _LEAST = 0.5, 0.01


def interval_of_median(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Return an interval (low, high) that contains the median with at least this confidence.

    For independent samples, the interval from the k-th smallest to the k-th largest is exact for any distribution,
    because the number of samples below the median is binomial (David & Nagaraja, *Order Statistics*, 3rd ed., section
    7.1). Consecutive samples are not independent. The ranks are therefore those of the effective number of samples
    (`effective_count`), after Woodruff (1952), *Confidence Intervals for Medians and Other Position Measures*. The
    interval also contains the medians of ten parts of the run, which detect slow drift. It is no narrower than the
    difference between runs: half of the spread, and 1 % of the median.

    Args:
        values: Measurements in order; at least one.
        confidence: 0 to 1, both excluded.

    Example:
        >>> interval_of_median([5.0, 1.0, 4.0, 2.0, 3.0, 6.0, 7.0, 8.0, 9.0])
        (2.0, 8.0)
    """
    ordered = np.sort(np.asarray(values, float))
    count = len(ordered)
    worth = effective_count(values)
    low, high = _between(ordered, worth, confidence)
    if count >= 3 * _BLOCKS:
        medians = [float(np.median(block)) for block in np.array_split(np.asarray(values, float), _BLOCKS)]
        low, high = min(low, *medians), max(high, *medians)
    middle = float(np.median(ordered))
    least = max(_BETWEEN_RUNS * spread_of(values), _LEAST) * middle
    return min(low, middle - least), max(high, middle + least)


def attained(count: int, confidence: float) -> float:
    """Return `confidence`, or the most that `count` independent samples reach if that is less: below 95 % for five.

    0 without samples.
    """
    return max(0.0, min(confidence, 1 - 2 * 0.5**count))


def effective_count(values: Sequence[float]) -> float:
    """Return the effective number of independent samples: their number over the autocorrelation time.

    Fewer than twelve samples, and equal ones, count as independent.

    The autocorrelation is that of the sign of each deviation from the median, since only the sign matters for a median.
    Terms are added while the sums of adjacent pairs are positive (Geyer 1992, *Practical Markov Chain Monte Carlo*,
    initial monotone sequence).

    Example:
        >>> effective_count([1.0, 2.0] * 50)
        100.0
        >>> effective_count([1.0] * 25 + [2.0] * 25 + [1.0] * 25 + [2.0] * 25) < 10
        True
    """
    signs = np.sign(np.asarray(values, float) - np.median(values))
    count = len(signs)
    power = float(signs @ signs)
    # Without a sample unlike the median, there is no correlation to estimate.
    if count < _TELLING or power < _FLOOR:
        return float(count)
    # Padded to twice the length, because the correlation by a Fourier transform is circular.
    spectrum = np.fft.rfft(signs, 2 * count)
    correlations = np.fft.irfft(spectrum * spectrum.conj())[:count] / power
    pairs = correlations[: count // 2 * 2].reshape(-1, 2).sum(axis=1)
    until = int(np.argmax(pairs <= 0)) if (pairs <= 0).any() else len(pairs)
    time = 2 * float(np.minimum.accumulate(pairs[:until]).sum()) - 1
    return count / max(time, 1.0)


def spread_of(values: Sequence[float]) -> float:
    """Return the typical relative deviation of samples from their median: 0.03 is 3 %; NaN for a median of 0 or less.

    A few outliers don't change it.

    Example:
        >>> spread_of([9.9, 10.0, 10.1, 99.0])
        0.014752238805970225
    """
    middle = float(np.median(values))
    return _TO_SIGMA * float(np.median(np.abs(np.asarray(values, float) - middle))) / middle if middle > 0 else nan


def drift_of(values: Sequence[float]) -> float:
    """Return the increase from the first third's median to the last third's, as a fraction of the median of all.

    The result is 0 if the intervals of the two medians overlap, or for fewer than 18 values.

    Example:
        >>> drift_of([1.0, 1.1] * 30), round(drift_of([1 + i / 100 for i in range(60)]), 2)
        (0.0, 0.31)
    """
    third = len(values) // 3
    if third < 6:
        return 0.0
    first, last = values[:third], values[-third:]
    (low, high), (later_low, later_high) = interval_of_median(first), interval_of_median(last)
    if low <= later_high and later_low <= high:
        return 0.0
    return float((np.median(last) - np.median(first)) / np.median(values))


def ratio_interval(
    values: Sequence[float], baseline: Sequence[float], confidence: float = 0.95
) -> tuple[float, float, float]:
    """Return the median ratio of interleaved samples and its interval: `(ratio, low, high)`.

    Each sample is divided by the baseline's sample of the same round, so that common slowdowns cancel.
    """
    ratios = np.asarray(values, float) / np.asarray(baseline, float)
    low, high = interval_of_median(ratios.tolist(), confidence)
    return float(np.median(ratios)), low, high


def _between(ordered: np.ndarray, worth: float, confidence: float) -> tuple[float, float]:
    """Return the samples at the ranks of the median's interval, rounded outwards: (low, high).

    The ranks are those of `worth` independent samples, scaled to the number of samples.
    """
    count = len(ordered)
    independent = max(1, min(count, int(worth)))
    level = _rank(independent, confidence) / (independent + 1)  # 0, which is their range, where no rank is sure enough
    at = max(0, min((count - 1) // 2, int(level * (count + 1) + 1e-9) - 1))
    return float(ordered[at]), float(ordered[count - 1 - at])


@lru_cache(4096)
def _rank(count: int, confidence: float) -> int:
    """Return the largest k whose k-th smallest and k-th largest sample enclose the median; 0 if none does.

    They enclose it with probability `confidence` or more, for `count` independent samples.
    """
    below, rank = 0.0, 0
    while rank < count // 2:
        # By logarithms, because binomial coefficients of thousands of samples overflow.
        below += exp(lgamma(count + 1) - lgamma(rank + 1) - lgamma(count - rank + 1) - count * log(2))
        if below > (1 - confidence) / 2:
            break
        rank += 1
    return rank


@dataclass(frozen=True)
class Axis:
    """One varied quantity.

    Args:
        name: `n`, `dtype`, `options.xla_cpu_prefer_vector_width`.
        labels: Labels of the values; all different.
        numbers: Values as numbers; None for values such as dtypes.
        unit: Unit of the numbers, if the values themselves aren't numbers: `elements` of arrays.
    """

    name: str
    labels: tuple[str, ...]
    numbers: tuple[float, ...] | None = None
    unit: str = ""

    def __len__(self) -> int:
        return len(self.labels)

    def named(self, at: int) -> str:
        """Return the label of the value at index `at`. A number follows the axis name: `bfloat16`, but `heads = 8`."""
        return self.labels[at] if self.numbers is None else f"{self.name} = {self.labels[at]}"

    @property
    def title(self) -> str:
        """Return the axis name, followed by its unit in parentheses if it has one."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


@dataclass(frozen=True)
class Growth:
    """Growth of a quantity as a power of the varied size.

    Args:
        power: The exponent.
        fit: R² of the straight line through the logarithms, 0 to 1.
        spread: Ratio of the largest to the smallest measured value.
    """

    power: float
    fit: float
    spread: float


def growth_of(x: Sequence[float], y: Sequence[float]) -> Growth | None:
    """Return the growth of y as a power of x, by least squares on the logarithms.

    Returns:
        None for fewer than three different x, or for values that are not positive numbers.

    Raises:
        ValueError: `x` and `y` have different lengths.

    Example:
        >>> growth_of([1, 2, 4, 8], [3, 12, 48, 192])
        Growth(power=2.0, fit=1.0, spread=64.0)
    """
    pairs = list(zip(x, y, strict=True))
    if len(set(x)) < 3 or not all(value > 0 and isfinite(value) for pair in pairs for value in pair):
        return None
    xs, ys = [log(a) for a, _ in pairs], [log(b) for _, b in pairs]
    if len(set(xs)) == 1:  # different numbers, so near to each other that their logarithms are one
        return None
    power = linear_regression(xs, ys).slope
    fit = correlation(xs, ys) ** 2 if len(set(ys)) > 1 else 1.0
    # Adding 0.0 turns -0.0 into 0.0.
    return Growth(round(power, 9) + 0.0, round(fit, 9), max(y) / min(y))
