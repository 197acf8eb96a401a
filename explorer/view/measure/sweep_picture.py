"""A sweep's static picture: three panels against a number, or a row of bars for each kind."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite

from explorer.analysis.sweep_summary import growths, is_power
from explorer.model.results.sweep import FIGURES, Series, Sweep, SweepRow
from explorer.model.units import bytes_text, duration_text
from explorer.view.chart import Chart, Table
from explorer.view.drawing import box, canvas, shortened
from explorer.view.measure.axes import COLOURS, Scale, marker, marker_of, scale_of, without_crowding
from explorer.view.measure.strokes import GREY, INK, ORANGE, line, words

__all__ = ["Panel", "clauses", "described", "kind", "panels", "picture", "static", "subtitle", "tables", "x_scale"]

WIDTH = 960
_LETTER, _BOLD = 6.6, 7.6  # pixels at 12
_TITLE, _REST = 92, 126  # characters of a line
_TOP, _HEIGHT, _GAP = 34, 196, 66  # pixels of a panel's title, of its plot, and left of each
_ROW = 26
_MOST = 40  # rows of bars
_GRID, _EDGE = "#e4e5e7", "#b6bcc4"


@dataclass(frozen=True)
class Panel:
    """One figure against what is swept.

    Args:
        figure: The name of a row's property.
        title: What it is.
        grows: `grows as n^2.9`; empty where that can't be told.
        scale: Of its values.
        text: What says one of them.
    """

    figure: str
    title: str
    grows: str
    scale: Scale
    text: Callable[[float], str]


def panels(sweep: Sweep) -> list[Panel]:
    """The figures that there is anything to show of."""
    found: list[Panel] = []
    for figure, title in FIGURES:
        values = [value for row in sweep.rows for value in reach(row, figure)]
        if not values:
            continue
        text_of = _bytes if figure == "peak" else duration_text
        found.append(Panel(figure, title, _grows(sweep, figure), scale_of(values, text_of, most=5), text_of))
    return found


def x_scale(sweep: Sweep, room: float = 230) -> Scale:
    """Where the swept numbers stand, with ticks for as many as there is room for."""
    axis = sweep.axes[sweep.over]
    numbers = axis.numbers or tuple(map(float, range(len(axis))))
    texts = [f"{number:,.0f}" for number in numbers] if axis.unit else [shortened(name, 14) for name in axis.labels]
    ticks = sorted(zip(numbers, texts, strict=True))
    return without_crowding(ticks, scale_of(numbers, "{:g}".format, marked=ticks), room, _LETTER)


def clauses(headline: str) -> tuple[str, str]:
    """What is said first, and the rest."""
    first, _, rest = headline.partition("; ")
    return first, rest


def subtitle(sweep: Sweep) -> str:
    """What was swept, on what."""
    known = sweep.environment
    where = " · ".join(filter(None, (known.get("device", ""), f"jax {known['jax']}" if "jax" in known else "")))
    names = ", ".join(axis.title for axis in sweep.axes)
    return f"{sweep.function} over {names}: {len(sweep.rows):,} points" + f" · {where}" * bool(where)


def reach(row: SweepRow, figure: str) -> list[float]:
    """The values that a row puts on a panel: time has an interval."""
    value = getattr(row, figure)
    if not isfinite(value):
        return []
    return [value, row.steady.low, row.steady.high] if figure == "seconds" and row.steady else [value]


def picture(sweep: Sweep) -> str:
    """The picture as SVG."""
    parts, y = _headline(sweep)
    if sweep.axes[sweep.over].numbers is None or not any(isfinite(row.compile_seconds) for row in sweep.rows):
        y = _bars(sweep, y, parts)
    else:
        y = _panels(sweep, y, parts)
    return canvas(WIDTH, y, parts)


def described(sweep: Sweep) -> str:
    """The picture in words."""
    return f"{sweep.function} over {', '.join(axis.name for axis in sweep.axes)}: {sweep.headline}"


def tables(sweep: Sweep) -> list[Table]:
    """Every figure as a table."""
    head, *rows = sweep.table()
    if any(len(row) > len(head) for row in rows):
        head = (*head, "error")
    keep = [i for i, name in enumerate(head) if name]  # bars are for terminals
    shown = [[row[i] if i < len(row) else "" for i in keep] for row in rows]
    title = f"{sweep.function}: {len(sweep.rows):,} points as a table"
    return [Table(title, [head[i] for i in keep], shown, " · ".join(sweep.notes))]


def static(sweep: Sweep) -> str:
    """Picture and table as HTML that needs no script."""
    return Chart(None, f"sweep of {sweep.function}", picture(sweep), described(sweep), tables(sweep)).static


def _headline(sweep: Sweep) -> tuple[list[str], float]:
    first, rest = clauses(sweep.headline)
    failed = len(sweep.failed) == len(sweep.rows)
    parts: list[str] = []
    y = 34.0
    for row in textwrap.wrap(first, _TITLE)[:2]:
        parts.append(words(24, y, row, size=18, fill=ORANGE if failed else INK, bold=True))
        y += 24
    for row in textwrap.wrap(rest, _REST)[:2]:
        parts.append(words(24, y - 2, row, size=13))
        y += 18
    parts.append(words(24, y, subtitle(sweep), fill=GREY))
    return parts, y + 8


def _panels(sweep: Sweep, y: float, parts: list[str]) -> float:
    series, shown, across = sweep.series, panels(sweep), x_scale(sweep)
    if len(series) > 1:
        y = _key(series, y + 14, parts)
    width = (WIDTH - 40) / max(len(shown), 2) - _GAP
    top, bottom = y + _TOP, y + _TOP + _HEIGHT
    for number, panel in enumerate(shown):
        left = 20 + _GAP + number * (width + _GAP)
        _frame(panel, across, left, left + width, top, bottom, parts)
        for i, one in enumerate(series):
            _line(sweep, panel, across, one, i, (left, left + width, top, bottom), parts)
        title = sweep.axes[sweep.over].title
        parts.append(words(left + width / 2, bottom + 36, title, size=11.5, fill=GREY, at="middle"))
    return _failures(sweep, bottom + 60, parts)


def _key(series: Sequence[Series], y: float, parts: list[str]) -> float:
    x = 24.0
    for number, one in enumerate(series):
        name = shortened(one.label, 48)
        if x + 24 + _LETTER * len(name) > WIDTH - 24:
            x, y = 24.0, y + 20
        parts += [marker(x + 6, y + 4, number, 5), words(x + 17, y + 8, name)]
        x += 36 + _LETTER * len(name)
    return y + 12


def _frame(panel: Panel, across: Scale, left: float, right: float, top: float, bottom: float, parts: list[str]) -> None:
    parts.append(words(left - _GAP + 4, top - 14, panel.title, size=13, bold=True))
    parts.append(words(left - _GAP + 4 + 9 * (len(panel.title) + 1), top - 14, panel.grows, fill=GREY))
    for tick, said in zip(panel.scale.ticks, panel.scale.texts, strict=True):
        at = panel.scale.at(tick, bottom, top)
        parts += [line(left, at, right, at, _GRID), words(left - 7, at + 4, said, size=11.5, fill=GREY, at="end")]
    for tick, said in zip(across.ticks, across.texts, strict=True):
        at = across.at(tick, left, right)
        parts += [line(at, bottom, at, bottom + 4, _EDGE)]
        parts.append(words(at, bottom + 18, said, size=11.5, fill=GREY, at="middle"))
    parts.append(line(left, bottom, right, bottom, _EDGE))


def _line(
    sweep: Sweep, panel: Panel, across: Scale, series: Series, number: int,
    plot: tuple[float, float, float, float], parts: list[str],
) -> None:  # fmt: skip
    """A series: a line through its points, each with its interval where it has one; a cross where one failed."""
    left, right, top, bottom = plot
    colour, numbers = marker_of(number)[1], sweep.axes[sweep.over].numbers or ()
    points: list[tuple[float, float]] = []
    for row in series.rows:
        x = across.at(numbers[row.at[sweep.over]], left, right)
        values = [panel.scale.at(value, bottom, top) for value in reach(row, panel.figure)]
        if values:
            points.append((x, values[0]))
        if len(values) > 1:
            parts.append(line(x, values[1], x, values[2], colour, 5, opacity=0.3))
        if row.error and panel.figure == "seconds":
            parts.append(words(x, bottom - 5, "×", size=16, fill=ORANGE, bold=True, at="middle"))
    if len(points) > 1:
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.8" stroke-opacity=".75"/>')
    parts += [marker(x, y, number) for x, y in points]


def _bars(sweep: Sweep, y: float, parts: list[str]) -> float:
    """Kinds: a row for each combination, with bars for its figures."""
    rows = [row for series in sweep.series for row in series.rows]
    names = [shortened(kind(sweep, row), 44) for row in rows[:_MOST]]
    left = 24 + min(max(map(len, names), default=0) * 7.2 + 24, 330)
    shown = panels(sweep)
    width = (WIDTH - 24 - left) / max(len(shown), 1)
    y += 26
    for number, panel in enumerate(shown):
        parts.append(words(left + number * width, y, panel.title, size=13, bold=True))
    y += 8
    for name, row in zip(names, rows, strict=False):
        parts.append(words(24, y + 16, name, size=12.5))
        if row.error:
            told = shortened(row.error, int((WIDTH - 24 - left) / _BOLD))
            parts.append(words(left, y + 16, told, fill=ORANGE, bold=True))
        for number, panel in enumerate([] if row.error else shown):
            most = max(value for other in rows for value in [*reach(other, panel.figure), 0.0])
            _bar(panel, row, most, left + number * width, min(width - 90, 220), y, parts)
        y += _ROW
    if len(rows) > _MOST:
        parts.append(words(24, y + 16, f"and {len(rows) - _MOST:,} more, in the table", fill=GREY))
        y += _ROW
    return y + 16


def kind(sweep: Sweep, row: SweepRow) -> str:
    """What a row is called where the others differ from it."""
    several = [(axis, at) for axis, at in zip(sweep.axes, row.at, strict=True) if len(axis) > 1]
    return ", ".join(axis.named(at) for axis, at in several or zip(sweep.axes, row.at, strict=True))


def _bar(panel: Panel, row: SweepRow, most: float, x: float, width: float, y: float, parts: list[str]) -> None:
    values = reach(row, panel.figure)
    if not values or not most > 0:
        return
    colour = COLOURS[0] if panel.figure == "seconds" else GREY
    end = x + max(width * values[0] / most, 1.5)
    parts.append(box(x, y + 4, end - x, 16, colour, 2, 1 if panel.figure == "seconds" else 0.45))
    if len(values) > 1:
        low, high = (x + width * value / most for value in values[1:])
        parts.append(line(low, y + 12, high, y + 12, INK, 1.5))
        end = max(end, high)
    strong = panel.figure == "seconds"
    parts.append(words(end + 7, y + 16, panel.text(values[0]), fill=INK if strong else GREY, bold=strong))


def _failures(sweep: Sweep, y: float, parts: list[str]) -> float:
    for row in sweep.failed[:3]:
        parts.append(words(24, y, shortened(f"× {sweep.label(row)}: {row.error}", 118), fill=ORANGE, bold=True))
        y += 18
    return y + 2


def _grows(sweep: Sweep, figure: str) -> str:
    """The power of each series where it is a good one."""
    known = [growth for _, growth in growths(sweep, figure)]
    good = [growth for growth in known if growth is not None and is_power(growth) and growth.spread > 1.5]
    if not good or len(good) < len(known):
        return ""
    name, powers = sweep.axes[sweep.over].name, sorted({f"{growth.power:.1f}" for growth in good}, key=float)
    return f"as {name}^{powers[0]}" + f" … {powers[-1]}" * (len(powers) > 1)


def _bytes(size: float) -> str:
    return bytes_text(int(size))
