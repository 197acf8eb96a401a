"""The text behind a file name: a file, or the notebook cell that IPython compiled under it."""

from __future__ import annotations

import linecache
import sys
from pathlib import PurePath
from typing import Any

from explorer.model.source import Source

__all__ = ["place", "read_source"]

_LARGEST = 2_000_000  # characters: a generated file larger than this is not kept in every capture


def read_source(file: str) -> Source | None:
    """The source of a file that frames name; None if its text cannot be had."""
    text = _typed(file) or "".join(linecache.getlines(file))
    return Source(file, label(file), text) if text and len(text) <= _LARGEST else None


def label(file: str) -> str:
    """`cell [4]` for a notebook's cell, else the file's own name."""
    count = _cells().get(file)
    return f"cell [{count}]" if count is not None else PurePath(file).name


def _shell() -> Any:
    # Asked only where it runs: a script pays nothing for notebooks.
    ipython: Any = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def _cells() -> dict[str, int]:
    """IPython's map from the name it compiled a cell under to the cell's execution count."""
    return getattr(getattr(_shell(), "compile", None), "_filename_map", None) or {}


def _typed(file: str) -> str:
    """A cell as it was typed: linecache has what IPython made of it, with magics turned into calls."""
    count = _cells().get(file)
    typed: list[str] = getattr(getattr(_shell(), "history_manager", None), "input_hist_raw", None) or []
    text = typed[count] if count is not None and 0 < count < len(typed) else ""
    # Without history (nbval runs cells so) the count names another cell: the line numbers must fit.
    lines = linecache.getlines(file)
    if len(text.splitlines()) != len(lines):
        return ""
    return text + "\n" if lines[-1:] and lines[-1].endswith("\n") and not text.endswith("\n") else text


def place(file: str, line: int) -> str:
    """`cell [7], line 3:   y = f(x)`: where something is, as a person finds it."""
    text = linecache.getline(file, line).strip()
    return f"{label(file)}, line {line}" + (f":   {text}" if text else "")
