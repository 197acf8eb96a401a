"""What rich draws as text, and what the trees and tables of several views share."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

_BAR = 12  # characters
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def render(drawn: RenderableType, width: int | None = None) -> str:
    """What rich draws as text: `width` characters wide without colours, or as the terminal that runs this has it."""
    from rich.console import Console  # takes a tenth of a second to load, which a notebook has no need of

    here = Console()
    colours = here.color_system if width is None else None
    out = io.StringIO()
    # In a notebook, rich would display it instead.
    to = {"file": out, "force_terminal": colours is not None, "force_jupyter": False}
    Console(width=width or here.width, color_system=colours, **to).print(drawn)  # pyright: ignore[reportArgumentType]
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip().splitlines())


def bar(share: float) -> str:
    """A share of the whole in eighths of a character."""
    eighths = max(round(share * _BAR * 8), 1)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()
