"""A headline of several sentences: the first one is the bold one."""

from __future__ import annotations

from explorer.view.figure import Figure, sentence_rows

_BOLD, _PLAIN = 98, 112  # characters of a line


def add_headline(page: Figure, headline: str) -> float:
    """Add the headline to a figure, each part in at most two rows, and return where that ends."""
    y = 28.0
    first, dot, rest = headline.partition(". ")
    for row in sentence_rows(first + dot.strip(), _BOLD, 2):
        page.text(20, y, row, size=15.0, bold=True)
        y += 21
    for row in sentence_rows(rest, _PLAIN, 2):
        page.text(20, y, row, size=14.0)
        y += 21
    return y
