"""Syntax trees of files and cells, each parsed once."""

from __future__ import annotations

import ast
from functools import lru_cache

__all__ = ["parse"]


@lru_cache(maxsize=64)
def parse(text: str) -> ast.Module | None:
    """A text's syntax tree, lines of IPython's own left out; None if it has none."""
    for attempt in (text, _without_magics(text)):
        try:
            return ast.parse(attempt)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def _without_magics(text: str) -> str:
    return "\n".join("" if line.lstrip()[:1] in "%!" and line.strip() else line for line in text.split("\n"))
