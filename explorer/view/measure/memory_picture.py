"""Memory's static picture: bars by use, or curves against the size, with the limit; its description and its table."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence

from explorer.model.results.memory_use import USES, MemoryRow, MemoryUse
from explorer.model.units import bytes_text
from explorer.view.chart import Table
from explorer.view.drawing import canvas, shortened
from explorer.view.measure.axes import Scale, scale_of
from explorer.view.measure.showing import headline_rows
from explorer.view.measure.strokes import GREY, INK, circle, line, words

__all__ = [
    "COLOURS",
    "LIMIT",
    "WIDTHS",
    "curves",
    "described",
    "is_curve",
    "known",
    "picture",
    "scales",
    "tables",
]

WIDTH = 960
COLOURS = {"argument": "#2f7fc1", "output": "#1a9474", "temp": "#d0640a", "generated code": "#9a7d0a"}
WIDTHS = {"needed": 2.4, "argument": 5.0, "output": 3.2, "temp": 1.6, "generated code": 1.0}  # they may coincide
LIMIT = "#c02f4a"
_LEFT, _RIGHT, _HEIGHT = 92, 120, 260
_ROW, _MOST = 26, 24
_HEAD = 100


def known(use: MemoryUse) -> list[MemoryRow]:
    """The rows that there is anything to draw of."""
    return [row for row in use.rows if not math.isnan(row.needed)]


def is_curve(use: MemoryUse) -> bool:
    """Whether it is drawn against a number."""
    return len(use.axes) == 1 and use.axes[0].numbers is not None and len(known(use)) > 1


def curves(use: MemoryUse) -> list[tuple[str, str, list[tuple[float, float]]]]:
    """By use, and for all together, what is needed at each size: key, name, points."""
    numbers = use.axes[0].numbers or ()
    rows = sorted(known(use), key=lambda row: numbers[row.at[0]])

    def points(of: Callable[[MemoryRow], float]) -> list[tuple[float, float]]:
        return [(numbers[row.at[0]], of(row)) for row in rows]

    found = [("needed", "all together", points(lambda row: row.needed))]
    for key, name in USES:
        one = points(lambda row, key=key: float(use.parts(row)[key]))
        if any(size > 0.005 * row.needed for (_, size), row in zip(one, rows, strict=True)):
            found.append((key, name, one))
    return found


def scales(use: MemoryUse) -> tuple[Scale, Scale]:
    """Across, what is varied; up, bytes, with the limit if a size was looked for that reaches it."""
    numbers = [number for number in use.axes[0].numbers or ()]
    needed = [row.needed for row in known(use)]
    largest = use.largest
    if largest is not None and largest.size:
        numbers.append(float(largest.size))
        needed += [largest.needed, float(use.limit)]
    elif use.limit and use.limit < 20 * max(needed):
        needed.append(float(use.limit))
    positive = [size for _, _, points in curves(use) for _, size in points if size > 0]
    return scale_of(numbers, "{:,g}".format), scale_of([*needed, *positive], lambda size: bytes_text(round(size)))


def picture(use: MemoryUse) -> str:
    """The picture as SVG."""
    parts: list[str] = []
    y = 28.0
    for row, is_bold in headline_rows(use.headline, _HEAD):
        parts.append(words(20, y, row, size=15 if is_bold else 14, bold=is_bold))
        y += 21
    if is_curve(use):
        y = _curves(use, y + 4, parts)
    elif known(use):
        y = _bars(use, y + 4, parts)
    for row in [row for note in use.notes for row in textwrap.wrap(note, 128)][:4]:
        parts.append(words(20, y + 12, row, fill=GREY))
        y += 18
    return canvas(WIDTH, y + 14, parts)


def described(use: MemoryUse) -> str:
    """The picture in words."""
    return use.headline


def tables(use: MemoryUse) -> list[Table]:
    """Every row, and of a single one what is alive at its peak."""
    head, *rows = use.table()
    found = [Table(f"{use.function}: its memory as a table", head, rows, " · ".join(use.notes))]
    capture = use.rows[0].capture if len(use.rows) == 1 else None
    if capture is not None and not math.isnan(use.rows[0].live):
        alive = capture.live_memory.at()
        cells = [(bytes_text(one.bytes), one.kind, one.node.name, one.type) for one in alive[:20]]
        found.append(Table("what is alive at the peak", ("size", "what it is", "made by", "type"), cells))
    return found


def _curves(use: MemoryUse, y: float, parts: list[str]) -> float:
    across, up = scales(use)
    left, right, top, bottom = _LEFT, WIDTH - _RIGHT, y + 10, y + 10 + _HEIGHT
    for tick, said in zip(up.ticks, up.texts, strict=True):
        at = up.at(tick, bottom, top)
        parts += [line(left, at, right, at, "#e9ebee"), words(left - 8, at + 4, said, size=11, fill=GREY, at="end")]
    for tick, said in zip(across.ticks, across.texts, strict=True):
        at = across.at(tick, left, right)
        parts += [line(at, bottom, at, bottom + 4, GREY), words(at, bottom + 17, said, size=11, fill=GREY, at="middle")]
    parts.append(line(left, bottom, right, bottom, GREY))
    parts.append(words((left + right) / 2, bottom + 34, use.axes[0].title, size=11, fill=GREY, at="middle"))
    if use.limit and up.low <= use.limit <= up.high:
        at = up.at(use.limit, bottom, top)
        parts.append(line(left, at, right, at, LIMIT, 1.6, "6 4"))
        parts.append(words(right + 8, at + 4, f"limit {bytes_text(use.limit)}", size=11, fill=LIMIT, bold=True))
    taken: list[float] = [up.at(use.limit, bottom, top)] if use.limit and up.low <= use.limit <= up.high else []
    for key, name, points in curves(use):
        colour, width = COLOURS.get(key, INK), WIDTHS[key]
        spots = [(across.at(x, left, right), _clipped(up, size, bottom, top)) for x, size in points]
        path = "L".join(f"{x:.1f} {level:.1f}" for x, level in spots)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>')
        parts += [circle(x, level, 4 if key == "needed" else 2.5, colour) for x, level in spots]
        parts += _found(use, across, up, spots[-1], (left, right, top, bottom)) if key == "needed" else []
        x, level = spots[-1]
        free = next((level + shift for shift in (4, 18, -10, 32) if all(abs(level + shift - t) > 12 for t in taken)), 0)
        if free:
            taken.append(free)
            parts.append(words(x + 9, free, name, size=11, fill=colour, bold=key == "needed"))
    return bottom + 44


def _found(
    use: MemoryUse, across: Scale, up: Scale, end: tuple[float, float], plot: tuple[float, float, float, float]
) -> list[str]:
    """From the last size that was asked for to the largest that fits."""
    left, right, top, bottom = plot
    largest = use.largest
    if largest is None or not largest.size:
        return []
    x, level = across.at(largest.size, left, right), _clipped(up, largest.needed, bottom, top)
    return [
        line(*end, x, level, INK, 1.4, "2 4"),
        circle(x, level, 5, INK, hollow=True),
        words(x, level - 11, f"{largest.name} = {largest.size:,} fits", size=11, bold=True, at="end"),
    ]


def _clipped(up: Scale, size: float, bottom: float, top: float) -> float:
    return up.at(max(size, up.low), bottom, top)


def _bars(use: MemoryUse, y: float, parts: list[str]) -> float:
    rows = known(use)[:_MOST]
    most = max(row.needed for row in rows)
    shows_limit = bool(use.limit) and use.limit < 3 * most
    names = [use.label(row) for row in rows]
    left = 24 + min(max((6.6 * len(name) for name in names), default=0), 300)
    wide = (WIDTH - left - 130) / max(most, use.limit if shows_limit else 0.0, 1.0)
    top = y
    for name, row in zip(names, rows, strict=True):
        parts.append(words(16, y + 17, shortened(name, 45)))
        x = left
        for key, _ in USES:
            size = wide * use.parts(row)[key]
            if size > 0.3:
                parts.append(
                    f'<rect x="{x:.1f}" y="{y + 4:.1f}" width="{max(size - 1, 0.3):.1f}" height="18" '
                    f'fill="{COLOURS[key]}"/>'
                )
            x += size
        parts.append(
            words(x + 8, y + 17, bytes_text(round(row.needed)), fill=INK if use.fits(row) else LIMIT, bold=True)
        )
        y += _ROW
    if shows_limit:
        x = left + wide * use.limit
        parts.append(line(x, top, x, y, LIMIT, 1.6, "6 4"))
        parts.append(words(x + 5, top - 2, f"limit {bytes_text(use.limit)}", size=11, fill=LIMIT, bold=True))
    return _key(use, rows, y + 18, parts)


def _key(use: MemoryUse, rows: Sequence[MemoryRow], y: float, parts: list[str]) -> float:
    x = 20.0
    for key, name in USES:
        size = max(use.parts(row)[key] for row in rows)
        if size:
            said = f"{name} {bytes_text(size)}" if len(rows) == 1 else name
            parts.append(f'<rect x="{x:.1f}" y="{y - 10:.1f}" width="11" height="11" fill="{COLOURS[key]}"/>')
            parts.append(words(x + 17, y, said))
            x += 38 + 6.6 * len(said)
    alias = max(row.uses.get("alias", 0) for row in rows)
    if alias:
        parts.append(words(x, y, f"and outputs of {bytes_text(alias)} where donated arguments were", fill=GREY))
    return y + 8
