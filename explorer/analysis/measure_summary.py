"""Sweeps and what-ifs in words: how time, compile time and memory grow, and what each variant saves and costs."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isnan, log, sqrt

from explorer.analysis.diff.diff import Diff, diff
from explorer.errors import NotRecordedError
from explorer.model.results.statistics import Axis, Growth, growth_of
from explorer.model.results.sweep import (
    FIGURES,
    Difference,
    Measured,
    Series,
    Sweep,
    SweepRow,
    Variant,
    WhatIf,
    size_text,
)
from explorer.model.results.timing import Ratio
from explorer.model.units import factor_text, factors_text, range_text

_MIN_FIT = 0.98  # R² of growth that is described as a power
_MIN_POWER = 0.25
_EQUIVALENCE = 0.1  # times within ± this share of one value don't depend on the axis
_EQUAL_BYTES = 1.01  # byte counts, which the compiler reports exactly, are equal within this factor
_SHOWN_ERROR = 0.05  # of an exponent: smaller errors are hidden by rounding to a tenth


def headline(sweep: Sweep) -> str:
    if len(sweep.failed) == len(sweep.rows):
        what = f": {sweep.rows[0].error}" if sweep.rows else ""
        return f"all {len(sweep.rows):,} points failed{what}" if len(sweep.rows) > 1 else f"it failed{what}"
    axis = sweep.axes[sweep.over]
    parts = _kinds(sweep)
    if axis.numbers is not None:
        growth = _growth_texts(sweep, axis)
        parts = [*growth[:1], *_between(sweep, axis), *growth[1:]]
    parts += _noise(sweep)
    if sweep.failed:
        first = sweep.label(sweep.failed[0])
        parts.append(f"{len(sweep.failed):,} of {len(sweep.rows):,} points failed, the first at {first}")
    return "; ".join(parts) or f"{len(sweep.rows):,} point{'s' * (len(sweep.rows) != 1)}"


def is_power(growth: Growth) -> bool:
    """Return True if a power law describes the growth well: a good fit, and not close to constant."""
    return growth.fit >= _MIN_FIT and growth.power >= _MIN_POWER


def growths(sweep: Sweep, figure: str) -> list[tuple[Series, Growth | None]]:
    """Return each series with the growth of a figure along it, None if unknown."""
    numbers = sweep.axes[sweep.over].numbers or ()
    pairs: list[tuple[Series, Growth | None]] = []
    for series in sweep.series:
        rows = _known(series.rows, figure)
        x = [numbers[row.at[sweep.over]] for row in rows] if numbers else []
        pairs.append((series, growth_of(x, [getattr(row, figure) for row in rows]) if numbers else None))
    return pairs


def _growth_texts(sweep: Sweep, axis: Axis) -> list[str]:
    texts: list[str] = []
    for figure, name in FIGURES:
        each = growths(sweep, figure)
        if any(len(_known(series.rows, figure)) > 1 for series, _ in each):
            texts.append(_growth_text(sweep, axis, figure, name, each))
    return list(filter(None, texts))


def _growth_text(sweep: Sweep, axis: Axis, figure: str, name: str, each: Sequence[tuple[Series, Growth | None]]) -> str:
    powers = [growth for _, growth in each if growth is not None and is_power(growth)]
    # Each program was compiled only once, so differences may be chance.
    once = ", each measured once" if figure == "compile_seconds" else ""
    values = [[float(getattr(row, figure)) for row in _known(series.rows, figure)] for series, _ in each]
    if constant := _constant_text(axis, figure, name, each, values):
        return constant
    if len(powers) == len(each):
        unsure = max(_power_error(axis, figure, _known(series.rows, figure), sweep.over) for series, _ in each)
        if unsure <= 0.5:
            return f"{name} grows as {_powers(axis, powers, unsure)}{once}"
    if figure == "compile_seconds":
        seconds = [value for several in values for value in several]
        return f"{name} is {range_text(min(seconds), max(seconds))}{once}"
    return _from_to(sweep, axis, figure, name)


def _constant_text(
    axis: Axis, figure: str, name: str, each: Sequence[tuple[Series, Growth | None]], values: Sequence[list[float]]
) -> str:
    """Return the sentence for a time or a peak memory that is the same at all sizes; empty otherwise."""
    if figure == "seconds" and all(_is_equivalent(_known(series.rows, figure)) for series, _ in each):
        return f"{name} doesn't depend on {axis.name}: all within ±{100 * _EQUIVALENCE:.0f} %"
    if figure == "peak" and all(max(several) <= _EQUAL_BYTES * min(several) for several in values if several):
        return f"{name} doesn't depend on {axis.name}"
    return ""


def _is_equivalent(rows: Sequence[SweepRow]) -> bool:
    """Return True if all intervals are within 10 % of one value: a proof of equality, not a lack of evidence.

    False without measured times, or if one is too noisy.
    """
    samples = [row.steady for row in rows if row.steady is not None]
    if not samples or any(one.is_too_noisy for one in samples):
        return False
    return max(one.high for one in samples) * (1 - _EQUIVALENCE) <= min(one.low for one in samples) * (1 + _EQUIVALENCE)


def _power_error(axis: Axis, figure: str, rows: Sequence[SweepRow], over: int) -> float:
    """Return the error ± of a fitted exponent, from intervals of values and two standard errors of residuals."""
    xs = [log((axis.numbers or ())[row.at[over]]) for row in rows]
    ys = [log(getattr(row, figure)) for row in rows]
    centre, middle = sum(xs) / len(xs), sum(ys) / len(ys)
    across = sum((x - centre) ** 2 for x in xs)
    power = sum((x - centre) * (y - middle) for x, y in zip(xs, ys, strict=True)) / across
    halves = [log(row.steady.high / row.steady.low) / 2 if figure == "seconds" and row.steady else 0.0 for row in rows]
    measured = sum(((x - centre) / across * half) ** 2 for x, half in zip(xs, halves, strict=True))
    left = sum((y - middle - power * (x - centre)) ** 2 for x, y in zip(xs, ys, strict=True))
    # Four, because two standard errors are squared.
    return sqrt(measured + 4 * left / max(len(xs) - 2, 1) / across)


def _powers(axis: Axis, growths: Sequence[Growth], unsure: float) -> str:
    first, last = (f"{axis.name}^{pick(growth.power for growth in growths):.1f}" for pick in (min, max))
    both = first if first == last else f"{first} to {last}"
    return f"{both} (± {unsure:.1f})" if unsure > _SHOWN_ERROR else both


def _from_to(sweep: Sweep, axis: Axis, figure: str, name: str) -> str:
    """Return the growth factor of a figure, from first to last value of the series that changes most, as text.

    If noise may hide the change, the text says that the dependence is unknown. Empty without two values.
    """
    factors: list[tuple[float, list[SweepRow]]] = []
    for series in sweep.series:
        rows = _known(series.rows, figure)
        if len(rows) > 1 and getattr(rows[0], figure) > 0:
            factors.append((getattr(rows[-1], figure) / getattr(rows[0], figure), rows))
    if not factors:
        return ""
    factor, rows = max(factors, key=lambda pair: max(pair[0], 1 / pair[0]))
    ends = _factor_interval(rows) if figure == "seconds" else None
    if ends is not None and ends[0] <= 1 <= ends[1]:
        return f"whether {name} depends on {axis.name} can't be told"
    way, times = ("grows", factor) if factor >= 1 else ("falls", 1 / factor)
    if ends is not None and factor < 1:
        ends = 1 / ends[1], 1 / ends[0]
    first, last = (axis.labels[row.at[sweep.over]] for row in (rows[0], rows[-1]))
    if ends is not None and _are_noisy(rows):
        return f"{name} {way} at least {factor_text(ends[0])} from {axis.name} = {first} to {last}"
    between = f" ({factors_text(*ends)})" if ends is not None else ""
    return (
        f"{name} {way} {factor_text(times)}{between} from {axis.name} = {first} to {last}"
        f"{_at_last(sweep, axis, figure, rows)}"
    )


def _factor_interval(rows: Sequence[SweepRow]) -> tuple[float, float] | None:
    first, last = rows[0].steady, rows[-1].steady
    if first is None or last is None or not first.low > 0:
        return None
    return last.low / first.high, last.high / first.low


def _at_last(sweep: Sweep, axis: Axis, figure: str, rows: Sequence[SweepRow]) -> str:
    """Return the power law of the last values as the end of a sentence: `, for the largest values as n^2.0`.

    Growth may begin as overhead, so the first values are dropped until a law fits; empty if none does.
    """
    for end in (rows[i:] for i in range(1, len(rows))):
        growth = growth_of(
            [(axis.numbers or ())[row.at[sweep.over]] for row in end], [getattr(row, figure) for row in end]
        )
        if growth is not None and is_power(growth) and growth.spread > 2:
            return f", for the largest values as {axis.name}^{growth.power:.1f}"
    return ""


def _between(sweep: Sweep, axis: Axis) -> list[str]:
    if len(sweep.series) < 2:
        return []
    at = [{row.at[sweep.over]: row for row in _known(series.rows, "seconds")} for series in sweep.series]
    numbers = axis.numbers or ()
    common = [i for i in range(len(axis)) if all(i in rows for rows in at)]
    if not common:
        return []
    last = max(common, key=lambda i: numbers[i])
    rows = [(series.label, rows[last]) for series, rows in zip(sweep.series, at, strict=True)]
    return [f"at {axis.name} = {axis.labels[last]} {_against(rows)}"]


def _kinds(sweep: Sweep) -> list[str]:
    if sweep.axes[sweep.over].numbers is not None:
        return []
    rows = [
        (", ".join(axis.labels[at] for axis, at in zip(sweep.axes, row.at, strict=True) if len(axis) > 1), row)
        for row in _known(sweep.rows, "seconds")
    ]
    return list(filter(None, [_against(rows)]))


def _against(rows: Sequence[tuple[str, SweepRow]]) -> str:
    """Return slowest against fastest, `bfloat16 is 1.80× (1.70 … 1.91×) slower than float32`, or that none differs.

    Empty for fewer than two rows, or without measured times.
    """
    if len(rows) < 2:
        return ""
    (fast, first), (slow, last) = (pick(rows, key=lambda one: one[1].seconds) for pick in (min, max))
    if first.steady is None or last.steady is None:
        return ""
    names = " and ".join(label for label, _ in rows) if len(rows) == 2 else "all"
    if _is_equivalent([row for _, row in rows]):
        return f"{names} take the same time within ±{100 * _EQUIVALENCE:.0f} %"
    low, high = last.steady.low / first.steady.high, last.steady.high / first.steady.low
    if low <= 1:
        return f"no difference was seen between {names if len(rows) == 2 else f'the {len(rows):,}'}"
    if _are_noisy((first, last)):
        return f"{slow} is at least {factor_text(low)} slower than {fast}"
    return f"{slow} is {factor_text(last.seconds / first.seconds)} ({factors_text(low, high)}) slower than {fast}"


def _are_noisy(rows: Sequence[SweepRow]) -> bool:
    """Return True if a time is too noisy for a factor: only the range of its samples is known."""
    return any(row.steady is not None and row.steady.is_too_noisy for row in rows)


def _noise(sweep: Sweep) -> list[str]:
    noisy = [row for row in sweep.rows if row.steady and row.steady.is_too_noisy]
    if not noisy:
        return []
    worst = max(row.steady.reach for row in noisy if row.steady)
    verb = "is" if len(noisy) == 1 else "are"
    return [f"{len(noisy):,} of {len(sweep.rows):,} times {verb} too noisy, known only to ±{100 * worst:.0f} %"]


def _known(rows: Sequence[SweepRow], figure: str) -> list[SweepRow]:
    return [row for row in rows if isfinite(getattr(row, figure))]


_MIN_HIDDEN = 0.1  # share of the time: a possible saving this large that the noise hides is mentioned
_ROUNDING_ERROR = 1e-6  # of the largest value: difference of equal float32 results, summed in another order


def what_if_headline(what_if: WhatIf) -> str:
    """Return what the two best variants save as text, or that none is seen to save anything, or that all failed."""
    plain, variants = what_if.plain, what_if.variants
    worth = [row for row in variants if row.time_saved > 0 or row.saved(plain) > 0]
    worth.sort(key=lambda row: (-max(row.time_saved, 0), -row.saved(plain)))
    if worth:
        return "; ".join(f"{row.doing} {verdict(row, plain)}" for row in worth[:2])
    failed = [row for row in variants if row.error]
    if len(failed) == len(variants):
        return f"nothing could be tried: {failed[0].doing} failed" if failed else "nothing was tried"
    hidden = max((1 - row.ratio.low for row in variants if row.ratio is not None and not row.is_same), default=0.0)
    unseen = f"; up to {100 * hidden:.0f} % less time could be hidden in the noise" if hidden > _MIN_HIDDEN else ""
    return f"no variant measurably saves {'time or memory' if plain.steady else 'memory'}{unseen}"


def verdict(row: Variant, plain: Measured) -> str:
    """Return what a variant saves and costs: `saves 4.0 MB of memory and 12 % of time`.

    For a variant that failed or changes nothing, return that.
    """
    if row.error:
        return f"failed: {row.error}"
    if row.is_same:
        return "changes nothing: the program is the same"
    memory, time = row.saved(plain), row.time_saved
    amounts = [(memory, f"{size_text(abs(memory))} of memory"), (time, _time_text(row.ratio, time))]
    parts = [
        f"{verb} {' and '.join(texts)}"
        for verb, sign in (("saves", 1), ("costs", -1))
        if (texts := [text for amount, text in amounts if sign * amount > 0])
    ]
    return (", but ".join(parts) or _no_difference(row, plain)) + _of_results(row.difference)


def _of_results(difference: Difference | None) -> str:
    if difference is None or difference.relative <= _ROUNDING_ERROR:
        return ""
    differ = "can't be compared" if isnan(difference.relative) else f"differ by {difference} of the largest"
    return f" (results {differ})"


def variant_diff(row: Variant) -> Diff:
    if row.capture is None or row.plain is None:
        raise NotRecordedError(f"there is nothing to compare: {row.name} was not compiled: {row.error}")
    return diff(row.plain, row.capture)


def _no_difference(row: Variant, plain: Measured) -> str:
    if row.ratio is not None:
        return f"makes no measurable difference to the time ({factors_text(row.ratio.low, row.ratio.high)})"
    is_known = isfinite(row.peak) and isfinite(plain.peak)
    return "needs as much memory" if is_known else "was compiled; its memory is unknown"


def _time_text(ratio: Ratio | None, saved: float) -> str:
    if ratio is None:
        return f"{100 * abs(saved):.0f} % of time"
    if ratio.ratio >= 1.995:  # shown as 2.0×
        return f"{factor_text(ratio.ratio)} the time ({factors_text(ratio.low, ratio.high)})"
    least, most = sorted(100 * abs(1 - end) for end in (ratio.low, ratio.high))
    return f"{100 * abs(saved):.0f} % of time ({least:.0f} … {most:.0f} %)"
