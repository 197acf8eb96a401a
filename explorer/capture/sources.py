"""The text behind a file name: a file, or the notebook cell that IPython compiled under it."""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import sys
from collections.abc import Iterator
from pathlib import PurePath
from types import FrameType
from typing import Any, NamedTuple

from explorer.model.source import Source

__all__ = ["Span", "called_at", "is_ours", "place", "read_source", "syntax_at", "users_frame"]

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


def users_frame() -> FrameType | None:
    """Where the user called: the innermost live frame outside Explorer, JAX and what stands between them and the user."""
    frame = inspect.currentframe()
    while frame is not None and is_ours(frame):
        frame = frame.f_back
    return frame


def called_at() -> str:
    """The line of an error that says where the user called."""
    frame = users_frame()
    return f"  called at  {place(frame.f_code.co_filename, frame.f_lineno)}\n" if frame is not None else ""


def is_ours(frame: FrameType) -> bool:
    """Whether a frame is Explorer's or JAX's, or of the standard library's wrappers that both use."""
    package = str(frame.f_globals.get("__name__")).partition(".")[0]
    return package in ("explorer", "jax", "jaxlib", "contextlib", "functools")


class Span(NamedTuple):
    """A piece of a file: lines from 1, columns from 0 in UTF-8 bytes, as Python's own positions are."""

    line: int
    column: int
    end_line: int
    end_column: int

    @classmethod
    def of(cls, node: Any) -> Span:
        return cls(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)

    def __contains__(self, other: object) -> bool:
        return isinstance(other, Span) and self[:2] <= other[:2] and other[2:] <= self[2:]


def syntax_at(file: str, span: Span) -> tuple[ast.AST, ...]:
    """The syntax tree's way from the whole file down to what stands at a span; empty if the text can't be had."""
    text = "".join(linecache.getlines(file))
    tree = _parsed(text) or _parsed(_MAGIC.sub("", text)) if 0 < len(text) <= _LARGEST else None
    if tree is None:
        return ()
    way: list[ast.AST] = [tree]
    while inner := next((node for node in _parts(way[-1]) if span in Span.of(node)), None):
        way.append(inner)
    return tuple(way)


_MAGIC = re.compile(r"(?m)^[ \t]*[%!].*$")


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """What a node is made of, through those parts that have no place of their own (such as a comprehension's `for`)."""
    for part in ast.iter_child_nodes(node):
        if hasattr(part, "lineno"):
            yield part
        else:
            yield from _parts(part)
