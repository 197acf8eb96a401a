"""One description of a figure, which `figure_svg.py` draws as the static picture and `figure_plotly.py` as a chart.

A figure is a page in pixels with panels. A panel has two scales, and marks in their units. Headlines, keys and rows of
text are marks on the page, in pixels from its upper left corner. Both renderers therefore use the same positions, and
plotly adds hovering and zooming.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap

from explorer.view.scale import Scale

# Colors by role, after Okabe and Ito, darkened: distinguishable without red or green, readable on light and dark pages.
BLUE, ORANGE, FIRST, RUN, LIMIT = "#2878b8", "#c8730a", "#8a4fbf", "#6b7785", "#c02f4a"
# Colors of text and lines on the picture's light background. Plotly draws both in gray, for any background.
INK, GREY, GRID = "#1d2129", "#656d78", "#e4e6e9"
# Colors of series; each series has a symbol too.
COLOURS = ("#2f7fc1", "#d0640a", "#1a9474", "#b8548c", "#9a7d0a", "#7a6cd8")
_FIRST, _REST = 10.3, 7.2  # pixels of a letter of a headline, and of the rows below it, about
_LETTER = 6.3  # pixels of a small letter, about
_INDENT = 14.0  # pixels before the continuation lines of a row
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")


def series_style(number: int) -> tuple[str, str]:
    """Return the symbol and the color of a series. No two of the first 36 series have both alike."""
    return SYMBOLS[(number + number // len(COLOURS)) % len(SYMBOLS)], COLOURS[number % len(COLOURS)]


@dataclass(frozen=True)
class Points:
    """Symbols at points. `radius` is in pixels. `hover` has the tooltip of each symbol."""

    x: Sequence[float]
    y: Sequence[float]
    colour: str
    symbol: str = "circle"
    radius: float | Sequence[float] = 4.0
    hollow: bool = False
    opacity: float = 1.0
    hover: Sequence[str] = ()

    def radii(self) -> list[float]:
        return [self.radius] * len(self.x) if isinstance(self.radius, (int, float)) else list(self.radius)


@dataclass(frozen=True)
class Path:
    """A line through points; `dash` is empty, `dash` or `dot`."""

    x: Sequence[float]
    y: Sequence[float]
    colour: str
    width: float = 1.0
    dash: str = ""
    opacity: float = 1.0


@dataclass(frozen=True)
class Bars:
    """Boxes from `left` to `right` and from `top` to `bottom`, each with the lines of its tooltip."""

    boxes: Sequence[tuple[float, float, float, float]]  # left, right, top, bottom
    colour: str
    opacity: float = 1.0
    hover: Sequence[str] = ()
    rounded: float = 2.0


@dataclass(frozen=True)
class Band:
    """Faint box behind other marks for an interval, with round ends if `rounded`."""

    left: float
    right: float
    top: float
    bottom: float
    colour: str
    opacity: float = 0.25
    rounded: float = 2.0


@dataclass(frozen=True)
class Label:
    """Text at a point, `dx` and `dy` pixels right of and below it, on its baseline."""

    x: float
    y: float
    text: str
    colour: str = INK
    size: float = 12.0
    bold: bool = False
    anchor: str = "start"
    dx: float = 0.0
    dy: float = 0.0
    angle: float = 0.0
    halo: bool = False


Mark = Points | Path | Bars | Band | Label


@dataclass(frozen=True)
class Panel:
    """Part of a figure with its own scales.

    Args:
        left, right, top, bottom: Edges in pixels.
        x, y: Scales; a scale without ticks has no axis.
        marks: Marks in units of the scales, from back to front.
        x_title: Title below the ticks.
        grid: Axis whose ticks have lines across the panel: `x`, `y` or none.
        strong: Tick of `x` with a strong line.
    """

    left: float
    right: float
    top: float
    bottom: float
    x: Scale
    y: Scale
    marks: Sequence[Mark] = ()
    x_title: str = ""
    grid: str = "y"
    strong: float | None = None

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Return (x, y) in pixels for a point in units of the scales."""
        return self.x.at(x, self.left, self.right), self.y.at(y, self.bottom, self.top)


@dataclass
class Figure:
    """A page of pixels with panels on it."""

    width: float
    height: float = 0.0
    page: list[Mark] = field(default_factory=list[Mark])
    panels: list[Panel] = field(default_factory=list[Panel])

    def text(self, x: float, y: float, text: str, **style: object) -> None:
        """Add a text to the page; `style` as of a `Label`."""
        self.page.append(Label(x, y, text, **style))  # pyright: ignore[reportArgumentType]

    def swatch(self, x: float, y: float, size: float, colour: str) -> None:
        """Add the box of a key to the page."""
        self.page.append(Bars([(x, x + size, y, y + size)], colour))

    def page_panel(self) -> Panel:
        """Return the page as a panel whose units are pixels."""
        across, down = Scale(0.0, self.width, (), ()), Scale(self.height, 0.0, (), ())
        return Panel(0.0, self.width, 0.0, self.height, across, down, self.page, grid="")


def headline(figure: Figure, first: str, rest: str, subtitle: str, colour: str = INK) -> float:
    """Add a bold headline, the rest of it and a subtitle; return the y of the next row.

    `first` and `rest` get at most two rows each.
    """
    y = 34.0
    for row in sentence_rows(first, int((figure.width - 48) / _FIRST), 2):
        figure.text(24, y, row, size=18.0, bold=True, colour=colour)
        y += 24
    for row in sentence_rows(rest, int((figure.width - 48) / _REST), 2):
        figure.text(24, y - 2, row, size=13.0)
        y += 18
    figure.text(24, y, subtitle, colour=GREY)
    return y + 18


def sentence_rows(text: str, width: int, most: int) -> list[str]:
    """Return a sentence as at most `most` rows of `width` characters, cut with an ellipsis.

    Code that continues in the next row has backticks in both rows.

    Example:
        >>> sentence_rows("The biggest loss is line 3, `y = x @ w`: 2 ms.", 34, 3)
        ['The biggest loss is line 3, `y = x`', '`@ w`: 2 ms.']
    """
    rows: list[str] = []
    is_open = False
    for row in wrap(text, width, max_lines=most, placeholder=" …"):
        balanced = "`" * is_open + row
        is_open = balanced.count("`") % 2 == 1
        rows.append(balanced + "`" * is_open)
    return rows


def rows_of_text(figure: Figure, y: float, rows: Sequence[str], *, most: int = 4, x: float = 24) -> float:
    """Add at most `most` rows of small text, wrapped at the figure's edge; return the y of the next row."""
    more = len(rows) - most + 1
    shown = rows if len(rows) <= most else [*rows[: most - 1], f"and {more:,} more notes in the text"]
    for row in shown:
        for number, line in enumerate(wrap(row, int((figure.width - x) / _LETTER))):
            figure.text(x + _INDENT if number else x, y, line, size=11.5, colour=GREY)
            y += 17
    return y


def machine_text(environment: Mapping[str, str], has_cores: bool = False) -> str:
    """Return the known parts of device, cores and JAX version: `cpu · 2 cores · jax 0.10.2`.

    Without `has_cores` the number of cores is omitted.
    """
    cores = f"{environment['cores']} cores" if has_cores and "cores" in environment else ""
    jax = f"jax {environment['jax']}" if "jax" in environment else ""
    return " · ".join(filter(None, (environment.get("device", ""), cores, jax)))


_BOLD, _PLAIN = 98, 112  # characters of a line


def add_headline(page: Figure, headline: str) -> float:
    """Add a headline to a figure, its first sentence and the rest in at most two rows each; return the y of the next
    row.
    """
    y = 28.0
    first, dot, rest = headline.partition(". ")
    for row in sentence_rows(first + dot.strip(), _BOLD, 2):
        page.text(20, y, row, size=15.0, bold=True)
        y += 21
    for row in sentence_rows(rest, _PLAIN, 2):
        page.text(20, y, row, size=14.0)
        y += 21
    return y
