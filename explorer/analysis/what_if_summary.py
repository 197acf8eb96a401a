"""A what-if in words: what each variant saves and costs, and which ones are worth having."""

from __future__ import annotations

from math import isfinite, isnan

from explorer.analysis.diff.diff import Diff, diff
from explorer.errors import NotRecordedError
from explorer.model.results.sweep import Difference, Measured, Variant, WhatIf, size_text
from explorer.model.results.timing import Ratio
from explorer.model.units import factor_text, factors_text

_HIDDEN = 0.1  # of the time: a saving as large that the intervals don't exclude is worth a word
_ROUNDING = 1e-6  # of the largest value: what float32 and another order of sums make of equal results


def headline(what_if: WhatIf) -> str:
    """The two variants that save most, in a sentence; says so where none does."""
    plain, variants = what_if.plain, what_if.variants
    worth = [row for row in variants if row.time_saved > 0 or row.saved(plain) > 0]
    worth.sort(key=lambda row: (-max(row.time_saved, 0), -row.saved(plain)))
    if worth:
        return "; ".join(f"{row.doing} {verdict(row, plain)}" for row in worth[:2])
    failed = [row for row in variants if row.error]
    if len(failed) == len(variants):
        return f"nothing could be tried: {failed[0].doing} failed" if failed else "nothing was tried"
    hidden = max((1 - row.ratio.low for row in variants if row.ratio is not None and not row.is_same), default=0.0)
    unseen = f"; up to {100 * hidden:.0f} % of time could be hidden in the noise" if hidden > _HIDDEN else ""
    return f"nothing that was tried is seen to save {'time or memory' if plain.steady else 'memory'}{unseen}"


def verdict(row: Variant, plain: Measured) -> str:
    """What a variant brings, as the rest of a sentence: `saves 4.0 MB and 12 % of time`."""
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


def variant_diff(row: Variant) -> Diff:
    """What the compiler made of a variant and not of the plain function."""
    if row.capture is None or row.plain is None:
        raise NotRecordedError(f"there is nothing to compare: {row.name} was not compiled: {row.error}")
    return diff(row.plain, row.capture)


def _of_results(difference: Difference | None) -> str:
    if difference is None or difference.relative <= _ROUNDING:
        return ""
    differ = "can't be compared" if isnan(difference.relative) else f"differ by {difference} of the largest"
    return f" (results {differ})"


def _no_difference(row: Variant, plain: Measured) -> str:
    if row.ratio is not None:
        return f"makes no difference to the time that was seen ({factors_text(row.ratio.low, row.ratio.high)})"
    is_known = isfinite(row.peak) and isfinite(plain.peak)
    return "needs as much memory" if is_known else "was compiled: nobody tells its memory"


def _time_text(ratio: Ratio | None, saved: float) -> str:
    if ratio is None:
        return f"{100 * abs(saved):.0f} % of time"
    if ratio.ratio >= 1.995:  # which reads as 2.0×
        return f"{factor_text(ratio.ratio)} the time ({factors_text(ratio.low, ratio.high)})"
    least, most = sorted(100 * abs(1 - end) for end in (ratio.low, ratio.high))
    return f"{100 * abs(saved):.0f} % of time ({least:.0f} … {most:.0f} %)"
