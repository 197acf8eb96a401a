"""A headline of several sentences: the first one is the bold one."""

from __future__ import annotations

from textwrap import wrap

from explorer.view.figure import Figure

_WIDTH = 98  # characters of a line


def add_headline(page: Figure, headline: str) -> float:
    """Add the headline to a figure, and return where that ends."""
    y = 28.0
    for row, is_bold in headline_rows(headline, _WIDTH):
        page.text(20, y, row, size=15.0 if is_bold else 14.0, bold=is_bold)
        y += 21
    return y


def headline_rows(headline: str, width: int) -> list[tuple[str, bool]]:
    """A headline as at most three rows, each with whether it is of its first sentence.

    Example:
        >>> headline_rows("It is slow. The biggest loss is line 3.", 40)
        [('It is slow.', True), ('The biggest loss is line 3.', False)]
    """
    first, dot, rest = headline.partition(". ")
    bold, plain = wrap(first + dot.strip(), width), wrap(rest, width)
    return [*((row, True) for row in bold), *((row, False) for row in plain)][:3]
