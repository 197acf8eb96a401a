"""Definitions of the declared display methods: find the value's view, and return or write the result.

A fault in a view never costs the user their result: a notebook then shows the value's repr, with one line that says
what failed. Files are written whole or not at all, and there a fault is raised.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from explorer.errors import MissingPackageError
from explorer.files.disk import write_text, write_whole
from explorer.model.declared import uncollected
from explorer.model.text import install_hint
from explorer.view.chart import Chart
from explorer.view.page import document
from explorer.view.registry import terminal_drawing_of, text_of, view_of
from explorer.view.session import in_terminal

if TYPE_CHECKING:
    from rich.console import RenderableType


def mimebundle(value: object, include: object = None, exclude: object = None) -> dict[str, Any]:
    """Return the MIME bundle for IPython: only text in a terminal; if the view fails, text with a line about the
    failure.
    """
    try:
        with uncollected():
            if in_terminal():
                return {"text/plain": _as_text(rich(value))}
            shown = {"text/plain": repr(value), **view_of(type(value)).output(value)}
            return shown | {"text/plain": inert(shown["text/plain"])}
    # A display that fails must not hide the value.
    except Exception as error:
        return {"text/plain": inert(f"{value!r}\n(the view failed: {type(error).__name__}: {error})")}


def rich(value: object) -> Any:
    """Return what `rich.print` shows: a text or a renderable, both without active control characters."""
    drawn = terminal_drawing_of(type(value))(value)
    return inert(drawn) if isinstance(drawn, str) else InertDrawing(drawn)


def to_text(value: object, width: int = 100) -> str:
    text = text_of(type(value))
    return _as_text(rich(value), width) if text is None else inert(text(value, width))


def to_html(value: object, path: str | PathLike[str]) -> Path:
    view = view_of(type(value))
    return write_text(path, document(f"{view.title(value)} – Explorer", view.html(value)))


def to_svg(value: object, path: str | PathLike[str]) -> Path:
    return write_text(path, view_of(type(value)).svg(value))


def to_png(value: object, path: str | PathLike[str], scale: float = 2) -> Path:
    try:
        import resvg_py
    except ImportError:
        raise MissingPackageError(
            "to_png needs the package resvg_py, which draws SVG. "
            f"Hint: {install_hint('resvg_py', 'png')}; to_svg needs no package."
        ) from None
    write_whole(path, bytes(resvg_py.svg_to_bytes(svg_string=view_of(type(value)).svg(value), zoom=scale)))
    return Path(path)


def chart(value: object) -> Chart:
    return view_of(type(value)).chart(value)


def _as_text(drawn: Any, width: int | None = None) -> str:
    """Return a text unchanged, a rich renderable as text of this width; None takes the terminal's width and colors."""
    return drawn if isinstance(drawn, str) else render(drawn, width)


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
