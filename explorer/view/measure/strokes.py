"""What the static pictures of measurements share: a logarithmic axis of time, marks, and lines of text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from explorer.model.units import duration_text

__all__ = [
    "BLUE",
    "FIRST",
    "GREY",
    "INK",
    "ORANGE",
    "RUN",
    "circle",
    "diamond",
    "line",
    "log_ticks",
    "words",
    "wrapped",
]

# Okabe and Ito's, darkened: told apart by who sees no red or green, and readable on light and dark pages.
BLUE, ORANGE, FIRST, RUN = "#2878b8", "#c8730a", "#8a4fbf", "#6b7785"
INK, GREY = "#1d2129", "#656d78"
_SANS = "system-ui,-apple-system,'Segoe UI','DejaVu Sans','Noto Sans',sans-serif"


def words(
    x: float, y: float, content: str, *, size: float = 12, fill: str = INK, bold: bool = False, at: str = "start"
) -> str:
    weight = 600 if bold else 400
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{at}" style="font:{weight} {size}px {_SANS};fill:{fill}">'
        f"{escape(_drawable(content))}</text>"
    )


def _drawable(content: str) -> str:
    """Without control characters, which a source line may have, and which XML has no way to say."""
    return "".join(character if character.isprintable() else " " for character in content)


def line(
    x: float, y: float, to_x: float, to_y: float, stroke: str, width: float = 1, dash: str = "", opacity: float = 1
) -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    faint = f' stroke-opacity="{opacity}"' if opacity < 1 else ""
    return (
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{stroke}" '
        f'stroke-width="{width}"{dashed}{faint}/>'
    )


def circle(x: float, y: float, radius: float, colour: str, hollow: bool = False, opacity: float = 0.75) -> str:
    look = (
        f'fill="#fff" stroke="{colour}" stroke-width="1.6"' if hollow else f'fill="{colour}" fill-opacity="{opacity}"'
    )
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" {look}/>'


def diamond(x: float, y: float, radius: float, colour: str) -> str:
    points = ((x, y - radius), (x + radius, y), (x, y + radius), (x - radius, y))
    return f'<polygon points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in points)}" fill="{colour}"/>'


def log_ticks(low: float, high: float, most: int = 5) -> list[tuple[float, str]]:
    """Round durations between two, evenly on a logarithmic axis, with their names.

    Example:
        >>> [name for _, name in log_ticks(2e-4, 0.3)]
        ['1 ms', '10 ms', '100 ms']
        >>> [name for _, name in log_ticks(0.004, 0.03)]
        ['5 ms', '10 ms', '20 ms']
    """
    for steps in ((1, 2, 5), (1, 3), (1,)):
        found = [
            step * 10.0**power
            for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            for step in steps
            if low <= step * 10.0**power <= high
        ]
        if len(found) <= most:
            break
    else:
        found = found[:: math.ceil(len(found) / most)]
    return [(at, duration_text(at)) for at in found]


def wrapped(lines: Sequence[str], width: int, most: int) -> list[str]:
    """Sentences, cut to so many characters, at most so many of them; the last says how many more there are."""
    cut = [one if len(one) <= width else one[: width - 1] + "…" for one in lines]
    return cut if len(cut) <= most else [*cut[: most - 1], f"and {len(cut) - most + 1} more notes in the text"]
