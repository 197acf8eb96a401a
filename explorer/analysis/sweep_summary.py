"""A sweep in words: how time, compile time and memory grow, and which kind is faster."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from explorer.model.results.axis import Axis, Growth, growth_of
from explorer.model.results.sweep import FIGURES, Series, Sweep, SweepRow
from explorer.model.units import factor_text

_GOOD = 0.98  # R² from which growth is described as a power
_LEAST = 0.25  # the power from which it is
_CLEAR = 0.6  # R² from which compile time is said to grow at all
_LITTLE = 1.1  # the factor within which a figure stays the same
_ONCE = 1.5  # and compile time, which is measured once
_NOISY = 0.1  # of the median: an interval that reaches farther is mentioned


def headline(sweep: Sweep) -> str:
    """The sweep in a sentence; says so where nothing is to be seen."""
    if not sweep.rows or len(sweep.failed) == len(sweep.rows):
        what = f": {sweep.rows[0].error}" if sweep.rows else ""
        return f"all {len(sweep.rows):,} points failed{what}" if len(sweep.rows) > 1 else f"it failed{what}"
    axis = sweep.axes[sweep.over]
    parts = _kinds(sweep)
    if axis.numbers is not None:
        growth = _growth_texts(sweep, axis)
        parts = [*growth[:1], *_between(sweep, axis), *growth[1:]]
    parts += _noise(sweep) + _failures(sweep)
    return "; ".join(parts) or f"{len(sweep.rows):,} point{'s' * (len(sweep.rows) != 1)}"


def is_power(growth: Growth) -> bool:
    """True if a power describes it: one that fits, and no root so high that a factor says more."""
    return growth.fit >= _GOOD and growth.power >= _LEAST


def growths(sweep: Sweep, figure: str) -> list[tuple[Series, Growth | None]]:
    """How a figure grows along each series; None where that can't be told."""
    numbers = sweep.axes[sweep.over].numbers or ()
    pairs: list[tuple[Series, Growth | None]] = []
    for series in sweep.series:
        rows = _known(series.rows, figure)
        x = [numbers[row.at[sweep.over]] for row in rows] if numbers else []
        pairs.append((series, growth_of(x, [getattr(row, figure) for row in rows]) if numbers else None))
    return pairs


def _growth_texts(sweep: Sweep, axis: Axis) -> list[str]:
    """How each figure depends on a number."""
    texts: list[str] = []
    for figure, name in FIGURES:
        each = growths(sweep, figure)
        all_growth = [growth for _, growth in each if growth is not None]
        if not any(len(_known(series.rows, figure)) > 1 for series, _ in each):
            continue
        if all(_stays(series, growth, figure) for series, growth in each):
            texts.append(f"{name} doesn't depend on {axis.name}")
        elif len(all_growth) == len(each) and all(map(is_power, all_growth)):
            texts.append(f"{name} grows as {_powers(axis, all_growth)}")
        else:
            texts.append(_from_to(sweep, axis, figure, name))
    return list(filter(None, texts))


def _stays(series: Series, growth: Growth | None, figure: str) -> bool:
    """Whether a figure is the same all along, as far as that can be told."""
    rows = _known(series.rows, figure)
    values: list[float] = [getattr(row, figure) for row in rows]
    if figure == "seconds":
        steady = [row.steady for row in rows if row.steady]
        if max((one.low for one in steady), default=0.0) <= min((one.high for one in steady), default=0.0):
            return True
    if figure == "compile_seconds" and growth is not None and (growth.power <= 0 or growth.fit < _CLEAR):
        return True  # each was compiled once: what goes up and down is no growth
    return not values or max(values) <= (_ONCE if figure == "compile_seconds" else _LITTLE) * min(values)


def _powers(axis: Axis, growths: Sequence[Growth]) -> str:
    low, high = min(growth.power for growth in growths), max(growth.power for growth in growths)
    first, last = f"{axis.name}^{low:.1f}", f"{axis.name}^{high:.1f}"
    return first if first == last else f"{first} to {last}"


def _from_to(sweep: Sweep, axis: Axis, figure: str, name: str) -> str:
    """Where it is no power: the factor from the first to the last, of the series that changes most."""
    factors: list[tuple[float, list[SweepRow]]] = []
    for series in sweep.series:
        rows = _known(series.rows, figure)
        if len(rows) > 1 and getattr(rows[0], figure) > 0:
            factors.append((getattr(rows[-1], figure) / getattr(rows[0], figure), rows))
    if not factors:
        return ""
    factor, rows = max(factors, key=lambda pair: max(pair[0], 1 / pair[0]))
    way, times = ("grows", factor) if factor >= 1 else ("falls", 1 / factor)
    first, last = (axis.labels[row.at[sweep.over]] for row in (rows[0], rows[-1]))
    return (
        f"{name} {way} {factor_text(times)} from {axis.name} = {first} to {last}{_at_last(sweep, axis, figure, rows)}"
    )


def _at_last(sweep: Sweep, axis: Axis, figure: str, rows: Sequence[SweepRow]) -> str:
    """What begins as overhead may end as a power: that of the last values, three at least."""
    for end in (rows[i:] for i in range(1, len(rows) - 2)):
        growth = growth_of(
            [(axis.numbers or ())[row.at[sweep.over]] for row in end], [getattr(row, figure) for row in end]
        )
        if growth is not None and is_power(growth) and growth.spread > 2:
            return f", in the end as {axis.name}^{growth.power:.1f}"
    return ""


def _between(sweep: Sweep, axis: Axis) -> list[str]:
    """At the largest number that all series have: the slowest against the fastest."""
    if len(sweep.series) < 2:
        return []
    at = [{row.at[sweep.over]: row for row in _known(series.rows, "seconds")} for series in sweep.series]
    numbers = axis.numbers or ()
    common = [i for i in range(len(axis)) if all(i in rows for rows in at)]
    if not common:
        return []
    last = max(common, key=lambda i: numbers[i])
    rows = [(series.label, rows[last]) for series, rows in zip(sweep.series, at, strict=True)]
    text = _against(rows)
    return [f"at {axis.name} = {axis.labels[last]} {text}"] if text else []


def _kinds(sweep: Sweep) -> list[str]:
    """Where no number is swept: the slowest kind against the fastest."""
    if sweep.axes[sweep.over].numbers is not None:
        return []
    rows = [(_kind(sweep, row), row) for row in _known(sweep.rows, "seconds")]
    return list(filter(None, [_against(rows)]))


def _kind(sweep: Sweep, row: SweepRow) -> str:
    several = [(axis, at) for axis, at in zip(sweep.axes, row.at, strict=True) if len(axis) > 1]
    return ", ".join(
        axis.labels[at] if axis.numbers is None else f"{axis.name} = {axis.labels[at]}" for axis, at in several
    )


def _against(rows: Sequence[tuple[str, SweepRow]]) -> str:
    """`bfloat16 is 1.8× slower than float32`; said only where their intervals don't meet."""
    if len(rows) < 2:
        return ""
    (fast, first), (slow, last) = (pick(rows, key=lambda one: one[1].seconds) for pick in (min, max))
    if first.steady is None or last.steady is None:
        return ""
    if first.steady.high >= last.steady.low:
        return f"{' and '.join(label for label, _ in rows) if len(rows) == 2 else 'all'} take about the same time"
    return f"{slow} is {factor_text(last.seconds / first.seconds)} slower than {fast}"


def _noise(sweep: Sweep) -> list[str]:
    noisy = [row for row in sweep.rows if row.steady and row.steady.reach > _NOISY]
    if not noisy:
        return []
    worst = max(row.steady.reach for row in noisy if row.steady)
    return [f"{len(noisy):,} of {len(sweep.rows):,} medians are noisy, up to ±{100 * worst:.0f} %"]


def _failures(sweep: Sweep) -> list[str]:
    if not sweep.failed:
        return []
    first = sweep.failed[0]
    return [f"{len(sweep.failed):,} of {len(sweep.rows):,} points failed, the first at {sweep.label(first)}"]


def _known(rows: Sequence[SweepRow], figure: str) -> list[SweepRow]:
    return [row for row in rows if isfinite(getattr(row, figure))]
