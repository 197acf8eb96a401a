"""Static SVG pictures with their own background: parts of a picture on a light one, and a whole figure.

A figure's background is dark in dark mode. Each mark has its light color as an attribute, because some renderers ignore
media queries. In dark mode, CSS classes override the colors of text, lines and background. Colors of series are
readable on both backgrounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from explorer.model.text import code_parts
from explorer.view.figure import (
    BLUE,
    FIRST,
    GREY,
    GRID,
    INK,
    LIMIT,
    ORANGE,
    RUN,
    Band,
    Bars,
    Figure,
    Label,
    Mark,
    Panel,
    Path,
    Points,
)

# Steps of a compile: field name, displayed name, and color, dark enough for white text.
STEPS = (("trace", "trace", "#2f8f6d"), ("lower", "lower", "#7c5cbf"), ("compile", "XLA", "#3d6ea8"))
_STYLE = (
    # Fonts by name, because some SVG renderers don't know `monospace`.
    "text{font:12px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono','Noto Sans Mono','Courier New',"
    "monospace;fill:#1d2129}.m{fill:#656d78}.w{fill:#fff}"
    ".f{fill:#b45309;font-weight:600}.b{font-weight:600}"
)


def canvas(width: float, height: float, parts: Iterable[str], style: str = "") -> str:
    """Return an SVG picture of `parts` on a light background, with `style` as additional CSS.

    Classes of texts are `m` (muted), `w` (white), `f` (failure) and `b` (bold).
    """
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f'<style>{_STYLE}{style}</style><rect class="ground" x=".5" y=".5" width="{width - 1}" '
        f'height="{height - 1}" rx="8" fill="#fff" stroke="#e4e5e7"/>{"".join(parts)}</svg>'
    )


def box(x: float, y: float, width: float, height: float, fill: str, radius: float = 5, opacity: float = 1) -> str:
    faint = f' fill-opacity="{opacity}" stroke="{fill}" stroke-opacity=".5"' if opacity < 1 else ""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" rx="{radius}" fill="{fill}"{faint}/>'


def text(x: float, y: float, content: str, kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(content)}</text>'


_SANS = "system-ui,-apple-system,'Segoe UI','DejaVu Sans','Noto Sans',sans-serif"
_CODE = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"
_HALO = ' stroke="#fff" stroke-width="3" stroke-linejoin="round" paint-order="stroke"'
_CLASSES = {
    INK: "ink",
    GREY: "grey",
    GRID: "grid",
    BLUE: "blue",
    ORANGE: "orange",
    FIRST: "first",
    RUN: "run",
    LIMIT: "limit",
}
_DARK = {"ink": "#e6e8eb", "grey": "#9aa3ae", "grid": "#2c323a"}
_DARK_TEXT = {"blue": "#6fb1ea", "orange": "#e8963a", "first": "#b890e6", "run": "#9aa3ae", "limit": "#f0758c"}
# Texts have an inline style, which only `!important` overrides.
_DARK_STYLE = (
    "@media(prefers-color-scheme:dark){.ground,.hollow{fill:#15181d}.ground{stroke:#2c323a}.halo{stroke:#15181d}"
    + "".join(
        f"text.{name},rect.{name}{{fill:{colour}!important}}path.{name}{{stroke:{colour}}}"
        for name, colour in _DARK.items()
    )
    + "".join(f"text.{name}{{fill:{colour}!important}}" for name, colour in _DARK_TEXT.items())
    + "}"
)
_DASHES = {"dash": "6 4", "dot": "2 4"}
# Corners in units of the radius; a circle has no corners.
_CORNERS = {
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "diamond": ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
    "triangle-up": ((0, -1.2), (1.2, 0.9), (-1.2, 0.9)),
    "triangle-down": ((0, 1.2), (1.2, -0.9), (-1.2, -0.9)),
    "cross": ((-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4), (0.4, 1.2), (-0.4, 1.2),
              (-0.4, 0.4), (-1.2, 0.4), (-1.2, -0.4), (-0.4, -0.4)),
    "x": ((-1, -0.6), (-0.6, -1), (0, -0.4), (0.6, -1), (1, -0.6), (0.4, 0), (1, 0.6), (0.6, 1), (0, 0.4), (-0.6, 1),
          (-1, 0.6), (-0.4, 0)),
}  # fmt: skip


def svg_of(figure: Figure) -> str:
    """Return the SVG of a figure."""
    panels = [figure.page_panel(), *figure.panels]
    return canvas(figure.width, figure.height, [part for panel in panels for part in _panel(panel)], _DARK_STYLE)


def _panel(panel: Panel) -> Iterator[str]:
    yield from _axes(panel)
    for mark in panel.marks:
        yield from _mark(panel, mark)


def _axes(panel: Panel) -> Iterator[str]:
    for tick, text in zip(panel.y.ticks, panel.y.texts, strict=True):
        y = panel.y.at(tick, panel.bottom, panel.top)
        if panel.grid == "y":
            yield _line([(panel.left, y), (panel.right, y)], GRID)
        yield _text(panel.left - 8, y + 4, text, GREY, 11, "end")
    for tick, text in zip(panel.x.ticks, panel.x.texts, strict=True):
        x, is_strong = panel.x.at(tick, panel.left, panel.right), tick == panel.strong
        if panel.grid == "x":
            color, opacity = (INK, 0.75) if is_strong else (GREY, 0.18)
            yield _line([(x, panel.top - 4), (x, panel.bottom)], color, opacity)
        else:
            yield _line([(x, panel.bottom), (x, panel.bottom + 4)], GREY)
        yield _text(x, panel.bottom + 17, text, GREY, 11, "middle")
    if panel.grid == "y" and (panel.x.ticks or panel.y.ticks):
        yield _line([(panel.left, panel.bottom), (panel.right, panel.bottom)], GREY, 0.6)
    if panel.x_title:
        yield _text((panel.left + panel.right) / 2, panel.bottom + 34, panel.x_title, GREY, 11, "middle")


def _mark(panel: Panel, mark: Mark) -> Iterator[str]:
    match mark:
        case Points():
            for x, y, radius in zip(mark.x, mark.y, mark.radii(), strict=True):
                yield _symbol(*panel.place(x, y), radius, mark)
        case Path():
            points = [panel.place(x, y) for x, y in zip(mark.x, mark.y, strict=True)]
            yield _line(points, mark.colour, mark.opacity, mark.width, mark.dash)
        case Bars():
            for left, right, top, bottom in mark.boxes:
                yield _box(panel, (left, right, top, bottom), mark.colour, mark.opacity, mark.rounded, gap=1)
        case Band():
            box = (mark.left, mark.right, mark.top, mark.bottom)
            yield _box(panel, box, mark.colour, mark.opacity, mark.rounded, least=2, edge=0.5)
        case Label():
            x, y = panel.place(mark.x, mark.y)
            x, y = x + mark.dx, y + mark.dy
            yield _text(x, y, mark.text, mark.colour, mark.size, mark.anchor, mark.bold, mark.halo, mark.angle)


def _symbol(x: float, y: float, radius: float, mark: Points) -> str:
    look = f'fill="{mark.colour}" fill-opacity="{mark.opacity:g}" stroke="#fff" stroke-width=".6"'
    if mark.hollow:
        look = f'class="hollow" fill="#fff" stroke="{mark.colour}" stroke-width="1.6"'
    if mark.symbol == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" {look}/>'
    path = "L".join(f"{x + radius * dx:.1f} {y + radius * dy:.1f}" for dx, dy in _CORNERS[mark.symbol])
    return f'<path d="M{path}Z" {look}/>'


def _line(
    points: list[tuple[float, float]], colour: str, opacity: float = 1.0, width: float = 1.0, dash: str = ""
) -> str:
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    dashed = f' stroke-dasharray="{_DASHES[dash]}"' if dash else ""
    faint = f' stroke-opacity="{opacity:g}"' if opacity < 1 else ""
    return f'<path{_class(colour)} d="M{path}" fill="none" stroke="{colour}" stroke-width="{width:g}"{dashed}{faint}/>'


def _box(
    panel: Panel, box: tuple[float, float, float, float], colour: str, opacity: float, rounded: float,
    least: float = 0.8, gap: float = 0.0, edge: float = 0.0,
) -> str:  # fmt: skip
    """Return a box as SVG, with a free `gap` in pixels on its right, which separates adjacent boxes."""
    (x, y), (to_x, to_y) = panel.place(box[0], box[2]), panel.place(box[1], box[3])
    x, to_x, y, to_y = min(x, to_x), max(x, to_x), min(y, to_y), max(y, to_y)
    faint = f' fill-opacity="{opacity:g}"' if opacity < 1 else ""
    faint += f' stroke="{colour}" stroke-opacity="{edge:g}"' if edge else ""
    return (
        f'<rect{_class(colour)} x="{x:.1f}" y="{y:.1f}" width="{max(to_x - x - gap, least):.1f}" '
        f'height="{max(to_y - y, least):.1f}" rx="{rounded:g}" fill="{colour}"{faint}/>'
    )


def _text(
    x: float, y: float, text: str, colour: str, size: float, anchor: str, bold: bool = False, halo: bool = False,
    angle: float = 0.0,
) -> str:  # fmt: skip
    # XML has no way to write control characters, which a source line may have.
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    shown = "".join(
        f'<tspan style="font-family:{_CODE}">{escape(part)}</tspan>' if is_code else escape(part)
        for part, is_code in code_parts(printable)
    )
    turned = f' transform="rotate({angle:.1f} {x:.1f} {y:.1f})"' if angle else ""
    return (
        f'<text{_class(colour, "halo" * halo)} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turned}'
        f'{_HALO if halo else ""} style="font:{600 if bold else 400} {size:g}px {_SANS};fill:{colour}">{shown}</text>'
    )


def _class(colour: str, more: str = "") -> str:
    """Return the class attribute by which the dark style recolors a mark; empty for colors of series."""
    names = " ".join(filter(None, (_CLASSES.get(colour, ""), more)))
    return f' class="{names}"' if names else ""
