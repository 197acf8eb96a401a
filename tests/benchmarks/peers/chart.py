"""The table as a picture: how many times as long as Explorer's each variant takes, on a scale of powers of ten."""

import math
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from tests.benchmarks.peers.figures import OURS

__all__ = ["SHOWN", "drawn"]

# By library a colour and a shape; eager is hollow, and larger, so that neither hides the other.
SHOWN = {
    "jax": ("JAX, eager", "circle", False),
    "torch": ("torch, eager", "square", False),
    "torch.compile": ("torch.compile", "square", True),
    "mlx": ("mlx, eager", "diamond", False),
    "mlx.compile": ("mlx.compile", "diamond", True),
}
_COLOURS = {
    "light": {"ink": "#1f2430", "faint": "#6b7280", "rule": "#e2e5ea", "circle": "#0072b2", "square": "#c2410c"},
    "dark": {"ink": "#e6e9ef", "faint": "#9aa3b0", "rule": "#2c323c", "circle": "#56b4e9", "square": "#f59e5b"},
}
_DIAMOND = {"light": "#007a5a", "dark": "#3ecf9a"}
_WIDTH, _LEFT, _RIGHT, _TOP, _ROW = 900, 330, 40, 66, 26


def drawn(figures: Mapping[str, Any], theme: str) -> str:
    """An SVG of its own, without a background.

    Args:
        figures: Of a run.
        theme: `light` or `dark`.
    """
    colours = _COLOURS[theme] | {"diamond": _DIAMOND[theme]}
    rows = [row for row in figures["workloads"] if OURS in row["seconds"]]
    longer = [
        {one: row["seconds"][one]["median"] / row["seconds"][OURS]["median"] for one in SHOWN if one in row["seconds"]}
        for row in rows
    ]
    powers = [math.log10(value) for row in longer for value in row.values()] or [0.0]
    low, high = min(math.floor(min(powers)), -1), max(math.ceil(max(powers)), 1)

    def x(power: float) -> float:
        return _LEFT + (power - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    height = _TOP + _ROW * len(rows) + 34
    parts = [*_scale(x, range(low, high + 1), height, colours), *_legend(colours)]
    for place, (row, values) in enumerate(zip(rows, longer, strict=True)):
        y = _TOP + _ROW * (place + 0.5)
        label = escape(f"{row['title']}, {row['size']}")
        parts.append(f'<text x="{_LEFT - 14}" y="{y + 4:.1f}" text-anchor="end" fill="{colours["ink"]}">{label}</text>')
        parts += [_mark(x(math.log10(value)), y, one, colours) for one, value in values.items()]
    title = f"How many times as long as {OURS} others take, {figures['machine']['date']}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'font-family="system-ui, sans-serif" font-size="12.5" role="img"><title>{escape(title)}</title>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _scale(x: Any, powers: range, height: int, colours: Mapping[str, str]) -> Iterator[str]:
    """A rule for each power of ten, the one that is Explorer's own time strong and named."""
    for power in powers:
        ours = power == 0
        at = f'x1="{x(power):.1f}" x2="{x(power):.1f}" y1="{_TOP - 6}" y2="{height - 28}"'
        yield f'<line {at} stroke="{colours["ink" if ours else "rule"]}" stroke-width="{1.5 if ours else 1}"/>'
        name = OURS if ours else f"{10**power:,}×" if power > 0 else f"{10.0**power:g}×"
        look = f'fill="{colours["ink" if ours else "faint"]}"' + (' font-weight="600"' if ours else "")
        yield f'<text x="{x(power):.1f}" y="{height - 10}" text-anchor="middle" {look}>{name}</text>'
    sides = (("end", x(0) - 10, "← faster"), ("start", x(0) + 10, "slower →"))
    for anchor, at, name in sides:
        yield f'<text x="{at:.1f}" y="{_TOP - 14}" text-anchor="{anchor}" fill="{colours["faint"]}">{name}</text>'


def _legend(colours: Mapping[str, str]) -> Iterator[str]:
    at = 170.0
    for one, (name, _, _) in SHOWN.items():
        yield _mark(at, 18, one, colours)
        yield f'<text x="{at + 12:.0f}" y="22" fill="{colours["ink"]}">{name}</text>'
        at += 44 + 7.2 * len(name)


def _mark(x: float, y: float, variant: str, colours: Mapping[str, str]) -> str:
    _, shape, filled = SHOWN[variant]
    colour = colours[shape]
    look = f'fill="{colour if filled else "none"}" stroke="{colour}" stroke-width="1.75"'
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" {look}/>'
    turn = f' transform="rotate(45 {x:.1f} {y:.1f})"' if shape == "diamond" else ""
    half = 3.5 if filled else 6
    return f'<rect x="{x - half:.1f}" y="{y - half:.1f}" width="{2 * half:g}" height="{2 * half:g}" {look}{turn}/>'
