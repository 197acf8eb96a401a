"""Text of rich renderables, without control sequences from values."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType


def render(drawn: RenderableType, width: int | None = None) -> str:
    """Return a renderable as text: `width` characters wide without colors, or as the current terminal shows it."""
    from rich.console import Console  # takes a tenth of a second to load, which a notebook has no need of

    here = Console()
    # Text of a given width may go anywhere, so it has no colors.
    colours = here.color_system if width is None else None
    out = io.StringIO()
    # In a notebook, rich would display it instead.
    to = {"file": out, "force_terminal": colours is not None, "force_jupyter": False}
    Console(width=width or here.width, color_system=colours, **to).print(drawn)  # pyright: ignore[reportArgumentType]
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip().splitlines())


# A name from a file may hold what clears a terminal or types into it: each is shown as its picture, or as �.
_PICTURES = {
    **{code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"},
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
    127: 0x2421,
}


def inert(text: str) -> str:
    """Return text with control characters replaced by visible symbols, so that a terminal ignores them.

    Tabs and newlines stay.

    Example:
        >>> inert("a\\x1b[2Jb")
        'a␛[2Jb'
    """
    return text.translate(_PICTURES)


class InertDrawing:
    """Renderable of a value with its colors, and with control characters removed from its texts."""

    def __init__(self, drawn: Any) -> None:
        self.drawn = drawn

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        for segment in console.render(self.drawn, options):
            yield segment if segment.control else type(segment)(inert(segment.text), segment.style)

    def __rich_measure__(self, console: Any, options: Any) -> Any:
        from rich.measure import Measurement

        return Measurement.get(console, options, self.drawn)
