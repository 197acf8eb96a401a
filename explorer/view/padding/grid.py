"""Padding by two dimensions at once: a cell for each pair of sizes that was called, and the buckets around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from explorer.analysis.padding_summary import bucket_text, sizes_text, total_waste, waste_of
from explorer.model.results.dynamic_report import DynamicReport, PaddedSizes
from explorer.model.units import count_text, share_text
from explorer.view.scale import Scale, without_crowding

_CELLS = 32  # along a dimension; where it has more sizes, several share a cell
_ROOM, _LETTER, _HIGH, _LINE = 300.0, 7.0, 150.0, 7.0  # pixels across, of a letter, from bottom to top, of half a line
LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Cell:
    """Sizes that were called: from where to where along both dimensions, and which part of their calls is padding."""

    left: float
    right: float
    low: float
    high: float
    waste: float
    hover: str

    @property
    def level(self) -> float:
        """The nearest of the shares that the key shows."""
        return min(LEVELS, key=lambda level: abs(level - self.waste))


@dataclass(frozen=True)
class Grid:
    """What is drawn.

    Args:
        across, upwards: The names of the two dimensions.
        x, y: Their scales; a size has the place from half before it to half behind it.
        cells: The sizes that were called.
        buckets: Of each padded binary the ends along both dimensions, and its text.
        what: Of what the padding is a part: FLOPs or bytes.
    """

    across: str
    upwards: str
    x: Scale
    y: Scale
    cells: Sequence[Cell]
    buckets: Sequence[tuple[float, float, str]]
    what: str

    @property
    def title(self) -> str:
        return f"padding by {self.across} and {self.upwards}, part of the {self.what}"


def grid_of(report: DynamicReport) -> Grid | None:
    """The grid; None where nothing was padded, or other than two dimensions vary."""
    varying = [
        _Dimension(name, max(1, least), most) for name, (least, _, most) in report.dimensions.items() if least < most
    ]
    if len(varying) != 2 or not report.sizes:
        return None
    across, upwards = varying
    what, rungs = total_waste(report)[1], report.buckets or {}
    buckets = [
        (binary.sizes[across.name] + 0.5, binary.sizes[upwards.name] + 0.5, bucket_text(binary.sizes))
        for binary in report.binaries
        if binary.is_padded
    ]
    x = _scale(across, rungs.get(across.name, ()), _ROOM, _LETTER)
    y = _scale(upwards, rungs.get(upwards.name, ()), _HIGH, _LINE)
    cells = _cells(report.sizes, across, upwards, what)
    return Grid(across.name, upwards.name, x, y, cells, buckets, what)


class _Dimension(NamedTuple):
    name: str
    least: int
    most: int

    @property
    def step(self) -> int:
        """How many sizes share a cell."""
        return -(-(self.most - self.least + 1) // _CELLS)


def _scale(its: _Dimension, rungs: Sequence[int], room: float, letter: float) -> Scale:
    ticks = sorted({its.least, *(rung for rung in rungs if its.least < rung < its.most), its.most})
    scale = Scale(its.least - 0.5, its.most + 0.5, (), ())
    return without_crowding([(float(tick), f"{tick:,}") for tick in ticks], scale, room, letter)


def _cells(rows: Sequence[PaddedSizes], x: _Dimension, y: _Dimension, what: str) -> list[Cell]:
    together: dict[tuple[int, int], list[PaddedSizes]] = {}
    for row in rows:
        place = (row.sizes[x.name] - x.least) // x.step, (row.sizes[y.name] - y.least) // y.step
        together.setdefault(place, []).append(row)
    cells: list[Cell] = []
    for (column, line), members in sorted(together.items()):
        left, low = x.least + column * x.step - 0.5, y.least + line * y.step - 0.5
        right, high = min(left + x.step, x.most + 0.5), min(low + y.step, y.most + 0.5)
        calls = sum(row.calls for row in members)
        waste = sum(row.calls * waste_of(row, what) for row in members) / max(calls, 1)
        first, others = members[0], f" and {count_text(len(members) - 1, 'size')} near it" * (len(members) > 1)
        text = f"{sizes_text(first.sizes)}{others}: {share_text(waste)} padding, {count_text(calls, 'call')}"
        cells.append(Cell(left, right, low, high, waste, text))
    return cells


def grid_html(report: DynamicReport) -> str:
    """The grid as placed elements, like the plots beside it; empty where there is none."""
    grid = grid_of(report)
    if grid is None:
        return ""
    marks = [
        *(f'<i class="hp-tick pd-bare" style="bottom:{grid.y.at(tick, 0, 100):.1f}%"><b>{text}</b></i>'
          for tick, text in zip(grid.y.ticks, grid.y.texts, strict=True)),
        *(f'<i class="pd-x" style="left:{grid.x.at(tick, 0, 100):.1f}%">{text}</i>'
          for tick, text in zip(grid.x.ticks, grid.x.texts, strict=True)),
        *(_cell(cell, grid) for cell in grid.cells),
        *(f'<i class="pd-border" style="width:{grid.x.at(right, 0, 100):.1f}%;height:{grid.y.at(high, 0, 100):.1f}%"'
          f' title="bucket {escape(text)}"></i>' for right, high, text in grid.buckets),
    ]  # fmt: skip
    label = escape(f"{grid.title}, of {count_text(len(report.sizes), 'size')}; the table below has them")
    levels = "".join(
        f'<span><i class="pd-cell" style="--pd-waste:{level:.0%}"></i> {level:.0%}</span>' for level in LEVELS
    )
    axes = f"<span>across: {escape(grid.across)}, upwards: {escape(grid.upwards)}</span>"
    key = f'{axes}{levels}<span><i class="pd-box"></i> a bucket that is compiled</span>'
    return (
        f'<div class="pd-plot pd-grid"><p>{escape(grid.title)}</p><div class="hp-plot" role="img" aria-label="{label}">'
        f'{"".join(marks)}</div><div class="hp-key">{key}</div></div>'
    )


def _cell(cell: Cell, grid: Grid) -> str:
    left, right = (grid.x.at(at, 0, 100) for at in (cell.left, cell.right))
    low, high = (grid.y.at(at, 0, 100) for at in (cell.low, cell.high))
    return (
        f'<i class="pd-cell" style="left:{left:.2f}%;bottom:{low:.2f}%;width:{right - left:.2f}%;'
        f'height:{high - low:.2f}%;--pd-waste:{cell.waste:.0%}" title="{escape(cell.hover)}"></i>'
    )
