"""Parts of static pictures: SVG with its own light background, readable on any page."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

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
