"""A what-if as a static picture: a row for each variant, its time against the plain one's, its memory and the rest."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from math import isfinite

from explorer.model.results.benchmark_comparison import Ratio
from explorer.model.results.measured import known_text, size_text
from explorer.model.results.what_if import Variant, WhatIf
from explorer.model.units import duration_text
from explorer.view.chart import Table
from explorer.view.drawing import box, canvas, shortened
from explorer.view.measure.strokes import BLUE, GREY, INK, ORANGE, circle, diamond, line, words

__all__ = ["colour_of", "described", "picture", "ratio_text", "span", "subtitle", "tables", "ticks"]

_WIDTH = 960
_TITLE, _REST = 92, 126  # characters of a line
_ROW = 32
_NAME, _LEFT, _RIGHT, _RATIO = 24, 216, 424, 440  # the names, the axis of ratios from and to, the ratios as text
_TIME, _MEMORY, _BAR, _COMPILE, _KERNELS, _DIFFERENCE = 590, 614, 72, 820, 872, 936
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
_FINE = (0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5)
_FARTHEST = 4.0  # an interval is drawn no farther than this factor beyond the ratios
_LETTER = 7.6


def picture(what_if: WhatIf) -> str:
    """The picture as SVG."""
    parts, y = _headline(what_if)
    is_timed = what_if.plain.steady is not None
    top = y + 40
    bottom = top + _ROW * len(what_if)
    if is_timed:
        _axis(what_if, top, bottom, parts)
    heads = (("memory", _MEMORY, "start"), ("compile", _COMPILE, "end"), ("kernels", _KERNELS, "end"))
    for head, x, at in (*heads, ("difference", _DIFFERENCE, "end"), *((("time", _TIME, "end"),) if is_timed else ())):
        parts.append(words(x, top - 12, head, size=11.5, fill=GREY, at=at))
    for number, row in enumerate(what_if):
        _variant(what_if, row, top + _ROW * (number + 0.5), parts)
    y = bottom + (34 if is_timed else 18)
    notes = [f"{row.name}: {note}" for row in what_if for note in row.notes] + [*what_if.notes]
    for note in notes[:4]:
        parts.append(words(_NAME, y + 4, shortened(f"note: {note}", 150), size=11.5, fill=GREY))
        y += 17
    return canvas(_WIDTH, y + 8, parts)


def described(what_if: WhatIf) -> str:
    """The picture in words."""
    told = (f"{row.name} {row.verdict(what_if.plain)}" for row in what_if.variants)
    return ". ".join([f"{what_if.function}: {what_if.headline}", *told])


def tables(what_if: WhatIf) -> list[Table]:
    """Every figure as a table."""
    head, *rows = what_if.table()
    verdicts = ["", *(row.verdict(what_if.plain) for row in what_if.variants)]
    shown = [[*row, said] for row, said in zip(rows, verdicts, strict=True)]
    title = f"{what_if.function}: {len(rows):,} variants as a table"
    return [Table(title, [*head, "what it brings"], shown, " · ".join(what_if.notes))]


def subtitle(what_if: WhatIf) -> str:
    """What was tried, how, and on what."""
    rounds = what_if.plain.steady.count if what_if.plain.steady else 0
    turns = f", {rounds:,} rounds in turns" if rounds and len(what_if) > 1 else ""
    known = what_if.environment
    where = " · ".join(filter(None, (known.get("device", ""), f"jax {known['jax']}" if "jax" in known else "")))
    return f"{shortened(f'{what_if.function}{what_if.signature}', 80)}: each against the plain one{turns}" + (
        f" · {where}" * bool(where)
    )


def span(what_if: WhatIf) -> tuple[float, float]:
    """What the axis of ratios spans: the ratios, their intervals as far as that is not much more, and 1."""
    ratios = [row.ratio for row in what_if if row.ratio is not None]
    low, high = (pick((ratio.ratio for ratio in ratios), default=1.0) for pick in (min, max))
    low = max(min([low, *(ratio.low for ratio in ratios)]), low / _FARTHEST)
    high = min(max([high, *(ratio.high for ratio in ratios)]), high * _FARTHEST)
    low, high = min(low, 0.95), max(high, 1.05)
    room = (high / low) ** 0.06
    return low / room, high * room


def ticks(low: float, high: float) -> list[float]:
    """Round ratios between two; 1 is among them."""
    found = [tick for tick in (_FINE if high / low < 3 else _TICKS) if low <= tick <= high]
    while len(found) > 5:
        found = found[found.index(1) % 2 :: 2]
    return found


def colour_of(row: Variant) -> str:
    """Blue for what is faster, orange for what is slower, grey where no difference is seen."""
    return GREY if not row.time_saved else BLUE if row.time_saved > 0 else ORANGE


def ratio_text(row: Variant) -> str:
    """`0.88×`, or that there can be no difference."""
    return "same program" if row.is_same else f"{row.ratio.ratio:.2f}×" if row.ratio is not None else ""


def _headline(what_if: WhatIf) -> tuple[list[str], float]:
    first, _, rest = what_if.headline.partition("; ")
    parts: list[str] = []
    y = 34.0
    for row in textwrap.wrap(first, _TITLE)[:2]:
        parts.append(words(_NAME, y, row, size=18, bold=True))
        y += 24
    for row in textwrap.wrap(rest, _REST)[:2]:
        parts.append(words(_NAME, y - 2, row, size=13))
        y += 18
    parts.append(words(_NAME, y, subtitle(what_if), fill=GREY))
    return parts, y


def _place(what_if: WhatIf) -> Callable[[float], float]:
    low, high = span(what_if)

    def x(ratio: float) -> float:
        part = math.log(min(max(ratio, low), high) / low) / math.log(high / low)
        return _LEFT + (_RIGHT - _LEFT) * part

    return x


def _axis(what_if: WhatIf, top: float, bottom: float, parts: list[str]) -> None:
    x = _place(what_if)
    parts.append(words(x(1) - 8, top - 12, "← faster", size=11.5, fill=GREY, at="end"))
    parts.append(words(x(1) + 8, top - 12, "slower →", size=11.5, fill=GREY))
    for tick in ticks(*span(what_if)):
        strong = tick == 1
        parts.append(line(x(tick), top - 4, x(tick), bottom, INK if strong else GREY, opacity=0.75 if strong else 0.18))
        parts.append(words(x(tick), bottom + 16, f"{tick:g}×", size=11, fill=GREY, at="middle"))


def _variant(what_if: WhatIf, row: Variant, y: float, parts: list[str]) -> None:
    is_timed = what_if.plain.steady is not None
    parts.append(words(_NAME, y + 4, shortened(row.name, 25 if is_timed else 60), size=13, bold=True))
    if row.error:
        room = int((_DIFFERENCE - _LEFT) / _LETTER)
        parts.append(box(_LEFT - 6, y - 11, _DIFFERENCE - _LEFT + 12, 22, "#fff", 2))
        parts.append(words(_LEFT, y + 4, shortened(row.error, room), fill=ORANGE, bold=True))
        return
    if is_timed:
        _ratio(row, y, _place(what_if), parts)
        parts.append(words(_TIME, y + 4, known_text(row.seconds, duration_text), at="end"))
    _memory(what_if, row, y, parts)
    figures = (
        (known_text(row.compile_seconds, duration_text), _COMPILE),
        ("–" if row.kernels is None else f"{row.kernels:,}", _KERNELS),
        (str(row.difference or ""), _DIFFERENCE),
    )
    parts += [words(x, y + 4, said, fill=GREY, at="end") for said, x in figures]


def _ratio(row: Variant, y: float, x: Callable[[float], float], parts: list[str]) -> None:
    if row.ratio is None:
        parts.append(diamond(x(1), y, 6, INK))
        return
    ratio: Ratio = row.ratio
    colour, is_told = colour_of(row), row.time_saved != 0
    parts.append(box(x(ratio.low), y - 6, max(x(ratio.high) - x(ratio.low), 2), 12, colour, 6, 0.25))
    parts.append(circle(x(ratio.ratio), y, 5, colour, hollow=not is_told, opacity=1))
    parts.append(words(_RATIO, y + 4, ratio_text(row), fill=colour, bold=is_told))


def _memory(what_if: WhatIf, row: Variant, y: float, parts: list[str]) -> None:
    most = max((other.peak for other in what_if if isfinite(other.peak)), default=0.0)
    if not isfinite(row.peak) or not most > 0:
        return
    saved = row.saved(what_if.plain)
    colour = GREY if not saved else BLUE if saved > 0 else ORANGE
    parts.append(box(_MEMORY, y - 7, max(_BAR * row.peak / most, 1.5), 14, colour, 2, 1 if saved else 0.35))
    parts.append(words(_MEMORY + _BAR + 8, y + 4, size_text(row.peak), fill=colour if saved else INK, bold=bool(saved)))
