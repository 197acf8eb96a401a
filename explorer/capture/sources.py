"""The text behind a file name: a file, or the notebook cell that IPython compiled under it."""

from __future__ import annotations

import linecache
import sys
from pathlib import PurePath
from typing import Any, cast

from explorer.model.source import Source

__all__ = ["place", "read_source"]

_LARGEST = 2_000_000  # characters: a generated file larger than this is not kept in every capture


def read_source(file: str) -> Source | None:
    """The source of a file that frames name; None if its text cannot be had."""
    lines = linecache.getlines(file)
    text = "".join(lines)
    return Source(file, label(file), text) if lines and len(text) <= _LARGEST else None


def label(file: str) -> str:
    """`cell [4]` for a notebook's cell, else the file's own name."""
    # IPython maps the name it compiled a cell under to the cell's execution count. It is asked only where it runs.
    ipython = sys.modules.get("IPython")
    shell = cast(Any, ipython).get_ipython() if ipython is not None else None
    counts: dict[str, Any] = getattr(getattr(shell, "compile", None), "_filename_map", None) or {}
    count = counts.get(file)
    return f"cell [{count}]" if count is not None else PurePath(file).name


def place(file: str, line: int) -> str:
    """`cell [7], line 3:   y = f(x)`: where something is, as a person finds it."""
    text = linecache.getline(file, line).strip()
    return f"{label(file)}, line {line}" + (f":   {text}" if text else "")
