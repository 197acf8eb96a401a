"""Memory as figures: bars by use, or curves against the size, with the limit."""

from __future__ import annotations

import math
from collections.abc import Sequence

from explorer.model.results.memory_use import RUNTIME, USES, MemoryRow, MemoryUse
from explorer.model.text import cut_end
from explorer.model.units import bytes_text
from explorer.view.chart import Table
from explorer.view.figure import (
    GREY,
    INK,
    LIMIT,
    Bars,
    Figure,
    Label,
    Mark,
    Panel,
    Path,
    Points,
    add_headline,
    rows_of_text,
)
from explorer.view.interface import FigureView
from explorer.view.scale import Scale, rows_scale, scale_of

_WIDTH, _LEFT, _RIGHT, _HEIGHT = 960, 92, 840, 260
_COLOURS = {
    "argument": "#2f7fc1",
    "output": "#1a9474",
    "temp": "#d0640a",
    "generated code": "#9a7d0a",
    "runtime": "#8a63b8",
    "measured": "#8a63b8",
}
# Of lines that may coincide.
_WIDTHS = {"needed": 2.4, "measured": 2.4, "argument": 5.0, "output": 3.2, "temp": 1.6, "generated code": 1.0}
_ROW, _MOST = 26, 24


class MemoryView(FigureView[MemoryUse]):
    """View of memory as curves if one number was varied, else as a bar for each row."""

    def title(self, value: MemoryUse) -> str:
        return f"memory of {value.function}"

    def chart_text(self, value: MemoryUse) -> str:
        return f"memory: {value.function}, {len(value.rows):,} size{'s' * (len(value.rows) != 1)}"

    def description(self, value: MemoryUse) -> str:
        return value.headline

    def tables(self, value: MemoryUse) -> Sequence[Table]:
        """Return a table of all rows; for a single row also one of 20 buffers alive at its peak, if they are known."""
        head, *rows = value.table()
        tables = [Table(f"{value.function}: its memory as a table", head, rows, " · ".join(value.notes))]
        capture = value.rows[0].capture if len(value.rows) == 1 else None
        if capture is not None and not math.isnan(value.rows[0].live):
            alive = capture.live_memory.at()
            cells = [(bytes_text(buffer.bytes), buffer.kind, buffer.node.name, buffer.type) for buffer in alive[:20]]
            tables.append(Table("what is alive at the peak", ("size", "what it is", "made by", "type"), cells))
        return tables

    def figure(self, value: MemoryUse) -> Figure:
        page = Figure(_WIDTH)
        y = add_headline(page, value.headline) + 4
        if is_curve(value):
            y = _curves(page, value, y)
        elif rows := _known(value)[:_MOST]:
            y = _bars(page, value, rows, y)
        page.height = rows_of_text(page, y + 12, value.notes) + 2
        return page


def is_curve(use: MemoryUse) -> bool:
    """Return True if the figure is a curve: one numeric axis, and at least two rows with known memory."""
    return len(use.axes) == 1 and use.axes[0].numbers is not None and len(_known(use)) > 1


def _known(use: MemoryUse) -> list[MemoryRow]:
    """Return the rows whose memory is known."""
    return [row for row in use.rows if not math.isnan(row.needed)]


def _series(use: MemoryUse) -> list[tuple[str, str, list[float], list[float]]]:
    """Return (key, name, sizes, bytes) of the total, of each use large enough to see, and of measurements."""
    numbers = use.axes[0].numbers or ()
    rows = sorted(_known(use), key=lambda row: numbers[row.at[0]])
    sizes = [numbers[row.at[0]] for row in rows]
    series = [("needed", "all together", sizes, [row.needed for row in rows])]
    for key, name in USES:
        values = [float(use.parts(row)[key]) for row in rows]
        # A smaller use would be a line along the axis.
        if any(value > 0.005 * row.needed for value, row in zip(values, rows, strict=True)):
            series.append((key, name, sizes, values))
    measured = [(size, row.measured) for size, row in zip(sizes, rows, strict=True) if not math.isnan(row.measured)]
    if measured:
        series.append(("measured", "measured", [size for size, _ in measured], [bytes_ for _, bytes_ in measured]))
    return series


def _scales(use: MemoryUse) -> tuple[Scale, Scale]:
    """Return the scales of size and bytes, up to the limit if that is near or the largest fitting size was searched."""
    numbers = [*(use.axes[0].numbers or ())]
    needed = [row.needed for row in _known(use)]
    if use.largest is not None and use.largest.size:
        # The axes reach to where the curve meets the limit.
        numbers.append(float(use.largest.size))
        needed += [use.largest.needed, float(use.limit)]
    # A limit far above would press the curves flat.
    elif use.limit and use.limit < 20 * max(needed):
        needed.append(float(use.limit))
    positive = [value for *_, values in _series(use) for value in values if value > 0]
    return scale_of(numbers, "{:,g}".format), scale_of([*needed, *positive], bytes_text)


def _curves(page: Figure, use: MemoryUse, y: float) -> float:
    across, up = _scales(use)
    top, bottom = y + 10, y + 10 + _HEIGHT
    marks: list[Mark] = []
    names_at: list[float] = []  # pixels: places of the texts at the right end
    if use.limit and up.low <= use.limit <= up.high:
        marks.append(Path([across.low, across.high], [use.limit] * 2, LIMIT, 1.6, "dash"))
        text = f"limit {bytes_text(use.limit)}"
        marks.append(Label(across.high, use.limit, text, LIMIT, 11, bold=True, dx=8, dy=4))
        names_at.append(up.at(use.limit, bottom, top))
    for key, name, sizes, values in _series(use):
        colour, heights = _COLOURS.get(key, INK), [max(value, up.low) for value in values]
        axis = use.axes[0].name
        hover = [f"{axis} = {size:,g}\n{name} {bytes_text(value)}" for size, value in zip(sizes, values, strict=True)]
        marks.append(Path(sizes, heights, colour, _WIDTHS[key]))
        marks.append(Points(sizes, heights, colour, radius=4 if key == "needed" else 2.5, hover=hover))
        if key == "needed":
            marks += _largest(use, sizes[-1], heights[-1], up)
        level = up.at(heights[-1], bottom, top)
        # A name that would overlap another moves, or is left out.
        free = (shift for shift in (4, 18, -10, 32) if all(abs(level + shift - other) > 12 for other in names_at))
        shift = next(free, None)
        if shift is not None:
            names_at.append(level + shift)
            marks.append(Label(sizes[-1], heights[-1], name, colour, 11, bold=key == "needed", dx=9, dy=shift))
    page.panels.append(Panel(_LEFT, _RIGHT, top, bottom, across, up, marks, x_title=use.axes[0].title))
    return bottom + 44


def _largest(use: MemoryUse, x: float, y: float, up: Scale) -> list[Mark]:
    """Return the marks from the last requested size, at `x` and `y`, to the largest that fits; empty if unknown."""
    largest = use.largest
    if largest is None or not largest.size:
        return []
    to_x, to_y = float(largest.size), max(largest.needed, up.low)
    text = f"{largest.name} = {largest.size:,} fits"
    return [
        Path([x, to_x], [y, to_y], INK, 1.4, "dot"),
        Points([to_x], [to_y], INK, radius=5, hollow=True, hover=[f"{text}: {bytes_text(largest.needed)}"]),
        Label(to_x, to_y, text, INK, 11, bold=True, anchor="end", dy=-11),
    ]


def _bars(page: Figure, use: MemoryUse, rows: Sequence[MemoryRow], y: float) -> float:
    most = max(row.taken for row in rows)
    # A limit far beyond would leave no width to the bars.
    shows_limit = bool(use.limit) and use.limit < 3 * most
    span = max(most, use.limit if shows_limit else 0.0, 1.0)
    names = [use.label(row) for row in rows]
    left = 24 + min(max(6.6 * len(name) for name in names), 300)
    ends: list[float] = [0.0] * len(rows)
    marks: list[Mark] = []
    for key, name in (*USES, RUNTIME):
        boxes: list[tuple[float, float, float, float]] = []
        hover: list[str] = []
        for number, row in enumerate(rows):
            size = float(use.parts(row)[key])
            # Less than half a pixel isn't drawn.
            if size > 0.0004 * span:
                boxes.append((ends[number], ends[number] + size, number + 0.15, number + 0.85))
                hover.append(f"{name} {bytes_text(size)}")
            ends[number] += size
        marks.append(Bars(boxes, _COLOURS[key], hover=hover, rounded=0))
    for number, (name, row) in enumerate(zip(names, rows, strict=True)):
        page.text(16, y + _ROW * number + 17, cut_end(name, 45))
        colour = INK if use.fits(row) else LIMIT
        marks.append(Label(ends[number], number + 0.5, bytes_text(row.taken), colour, bold=True, dx=8, dy=4))
    bottom = y + _ROW * len(rows)
    if shows_limit:
        marks.append(Path([use.limit] * 2, [0.0, float(len(rows))], LIMIT, 1.6, "dash"))
        marks.append(Label(use.limit, 0.0, f"limit {bytes_text(use.limit)}", LIMIT, 11, bold=True, dx=5, dy=-2))
    across = Scale(0.0, span, (), ())
    page.panels.append(Panel(left, _WIDTH - 130, y, bottom, across, rows_scale(len(rows)), marks, grid=""))
    return _key(page, use, rows, bottom + 18)


def _key(page: Figure, use: MemoryUse, rows: Sequence[MemoryRow], y: float) -> float:
    x = 20.0
    for key, name in (*USES, RUNTIME):
        size = max(use.parts(row)[key] for row in rows)
        if size:
            text = f"{name} {bytes_text(size)}" if len(rows) == 1 else name
            page.swatch(x, y - 10, 11, _COLOURS[key])
            page.text(x + 17, y, text)
            x += 38 + 6.6 * len(text)
    alias = max(row.uses.get("alias", 0) for row in rows)
    if alias:
        page.text(x, y, f"and outputs of {bytes_text(alias)} where donated arguments were", colour=GREY)
    return y + 8
