"""Headlines and text of what was measured, for plotly and for the static picture."""

from __future__ import annotations

from html import escape
from textwrap import wrap

__all__ = ["headline_rows", "markup", "small"]


def headline_rows(headline: str, width: int) -> list[tuple[str, bool]]:
    """A headline as at most three rows, each with whether it is of its first sentence, which is the bold one.

    Example:
        >>> headline_rows("It is slow. The biggest loss is line 3.", 40)
        [('It is slow.', True), ('The biggest loss is line 3.', False)]
    """
    first, dot, rest = headline.partition(". ")
    bold, plain = wrap(first + dot.strip(), width), wrap(rest, width)
    return [*((row, True) for row in bold), *((row, False) for row in plain)][:3]


def markup(text: str) -> str:
    """Text for plotly, which reads `<…>` as markup."""
    return escape(text, quote=False)


def small(text: str) -> str:
    """The second line of a title of plotly's."""
    return f"<span style='font-size:12.5px;color:#7a828d'>{text}</span>"
