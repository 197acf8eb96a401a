"""The text behind a file name (a file, or the notebook cell that IPython compiled under it), and its syntax."""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, reduce
from itertools import pairwise
from pathlib import PurePath
from types import FrameType
from typing import Any, NamedTuple, cast

from explorer.model.stage import Source, is_library_file

_MAX_CHARACTERS = 2_000_000  # characters: a generated file larger than this is not kept in every capture


def read_source(file: str) -> Source | None:
    """Return the source of a file that frames name; None if its text can't be read or is too long."""
    if "\0" in file:  # no file has such a name, and Python refuses to look
        return None
    linecache.checkcache(file)  # a module that was edited and loaded again has other lines than before
    text = _typed(file) or "".join(linecache.getlines(file))
    return Source(file, label(file), text) if text and len(text) <= _MAX_CHARACTERS else None


_compiled: dict[str, str] = {}  # what cells were compiled from, where that is neither typed nor IPython's own


def compiled_text(file: str) -> str:
    """Return the text that a file's code was compiled from, of a cell without its magics; empty if it
    can't be read or is too long (2,000,000 characters).

    Its lines are those of `read_source`, which has a cell as it was typed.
    """
    if "\0" in file:
        return ""
    text = _compiled.get(file) or "".join(linecache.getlines(file))
    return text if len(text) <= _MAX_CHARACTERS else ""


def keep_compiled_text(file: str, text: str) -> None:
    """Remember the text that a cell is compiled from, where the typed lines differ: the body of a `%%` magic."""
    _compiled[file] = text


class ForeignSources:
    """The sources that a foreign module names, if allowed: Python files below a folder, links resolved, and cells."""

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder = os.path.realpath(os.curdir if folder is None else folder)
        self._above = self.folder.rstrip(os.sep) + os.sep

    def read(self, file: str) -> Source | None:
        return read_source(file) if self._is_session(file) or (self._is_there(file) and self._is_below(file)) else None

    def left_out(self, files: Iterable[str]) -> list[str]:
        return [file for file in files if self._is_there(file) and not self._is_below(file)]

    def _is_session(self, file: str) -> bool:
        return file.startswith("<") or file in _cells()

    def _is_there(self, file: str) -> bool:
        return file.endswith(".py") and "\0" not in file and not self._is_session(file) and os.path.isfile(file)

    def _is_below(self, file: str) -> bool:
        return os.path.realpath(file).startswith(self._above)


def label(file: str) -> str:
    """Return `cell [4]` for a notebook's cell, else the file's name without its folders."""
    count = _cells().get(file)
    return f"cell [{count}]" if count is not None else _name(file)


@lru_cache(maxsize=1024)  # a path takes longer to parse than the rest of a frame
def _name(file: str) -> str:
    return PurePath(file).name


def _shell() -> Any:
    # Only if IPython is loaded: a script pays nothing for notebooks.
    ipython: Any = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def _cells() -> dict[str, int]:
    """Return IPython's map from the name it compiled a cell under to the cell's execution count."""
    return getattr(getattr(_shell(), "compile", None), "_filename_map", None) or {}


def later_cells(file: str) -> list[tuple[str, str]]:
    """Return name and text of the cells that ran after this one, in order; empty for a file."""
    cells = _cells()
    count = cells.get(file)
    later = sorted((number, name) for name, number in cells.items() if count is not None and number > count)
    return [(name, "".join(linecache.getlines(name))) for _, name in later]


def _typed(file: str) -> str:
    """Return a cell as it was typed, empty if unknown: linecache has IPython's version, with magics as calls."""
    count = _cells().get(file)
    typed: list[str] = getattr(getattr(_shell(), "history_manager", None), "input_hist_raw", None) or []
    text = typed[count] if count is not None and 0 < count < len(typed) else ""
    # Without history (nbval runs cells so) the count names another cell: the line numbers must fit.
    lines = linecache.getlines(file)
    if len(text.splitlines()) != len(lines):
        return ""
    return text + "\n" if lines[-1:] and lines[-1].endswith("\n") and not text.endswith("\n") else text


def place(file: str, line: int) -> str:
    """Return a line of a file as text: `cell [7], line 3:   y = f(x)`."""
    text = linecache.getline(file, line).strip()
    return f"{label(file)}, line {line}" + (f":   {text}" if text else "")


def place_with_carets(before: str, file: str, span: Span) -> list[str]:
    """Return `before` and the place with its source line, then carets under the span unless it is all of the line."""
    line = before + place(file, span.line)
    text = linecache.getline(file, span.line).rstrip()
    shown = text.strip()
    start = _characters(text, span.column)
    end = _characters(text, span.end_column) if span.end_line == span.line else len(text)
    if not start < end or end - start >= len(shown):
        return [line]
    return [line, " " * (len(line) - len(text) + start) + "^" * (end - start)]


def _characters(text: str, column: int) -> int:
    # Python's columns count UTF-8 bytes.
    return len(text.encode()[:column].decode(errors="ignore"))


# Packages that put frames around every call, between the user's line and what it calls.
WRAPPERS = frozenset(("explorer", "jax", "jaxlib", "contextlib", "functools"))


def package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def users_frame() -> FrameType | None:
    """Return the innermost live frame of the user's own code; None if only libraries run."""
    frame = inspect.currentframe()
    while frame is not None and is_library_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def called_at() -> str:
    """Return a line of an error's text with the user's calling line; empty if only libraries run."""
    frame = users_frame()
    return f"  called at  {place(frame.f_code.co_filename, frame.f_lineno)}\n" if frame is not None else ""


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
    """Return the syntax nodes from the whole file down to a span; empty if the text is unreadable or has changed."""
    text = "".join(linecache.getlines(file))
    tree = parse(text) if 0 < len(text) <= _MAX_CHARACTERS else None
    if tree is None:
        return ()
    path: list[ast.AST] = [tree]
    while inner := next((node for node in _parts(path[-1]) if span in Span.of(node)), None):
        path.append(inner)
    # A file that was edited since it was loaded has other code there. The start of a call over several lines is
    # given as the start of its last name.
    return tuple(path) if len(path) > 1 and Span.of(path[-1])[2:] == span[2:] else ()


_MAGIC = re.compile(r"(?m)^[ \t]*[%!].*$")


@lru_cache(maxsize=64)
def parse(text: str) -> ast.Module | None:
    """Return a text's syntax tree without IPython's own lines, None if invalid. The tree is shared: don't change it."""
    for attempt in (text, _MAGIC.sub("", text)):
        try:
            return ast.parse(attempt)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node that have a place, descending through others, such as a comprehension's `for`."""
    for part in ast.iter_child_nodes(node):
        if hasattr(part, "lineno"):
            yield part
            yield from getattr(part, "decorator_list", ())  # which are above their function's first line
        else:
            yield from _parts(part)


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Module)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# Statements whose later parts may have run before, in another iteration.
_NONLINEAR = (ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.Match)
_COMPOUND = (*_NONLINEAR, ast.If, ast.With, ast.AsyncWith)


def bound_at(path: Sequence[ast.AST], name: str) -> int | None:
    """Return the line that gave a name its value at the end of a path of `syntax_at`.

    0: no line of the function, so it is a parameter or comes from outside. None: it depends on how the code ran.
    """
    for outer, inner in reversed(list(pairwise(path))):
        for statement in reversed(_above(outer, inner)):
            if _binds(statement, name):
                return None if isinstance(statement, _COMPOUND) else statement.lineno
        if any(_binds(head, name) for head in _heads(outer)):
            return cast(ast.stmt | ast.expr, outer).lineno
        # Inside an expression `:=` binds. The iterable of a `for` is evaluated once, before.
        is_winding = isinstance(outer, (*_NONLINEAR, ast.expr)) and inner is not getattr(outer, "iter", None)
        if is_winding and _binds(outer, name):
            return None
        if isinstance(outer, _SCOPES):
            break
    return 0


def _above(outer: ast.AST, inner: ast.AST) -> list[ast.stmt]:
    if not isinstance(inner, ast.stmt):
        return []
    blocks = [cast(list[ast.stmt], part) for _, part in ast.iter_fields(outer) if isinstance(part, list)]
    return next((block[: block.index(inner)] for block in blocks if inner in block), list[ast.stmt]())


def _heads(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a statement or comprehension that bind names for what is inside."""
    match node:
        case ast.For() | ast.AsyncFor():
            return [node.target]
        case ast.With() | ast.AsyncWith():
            return [*node.items]
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return [generator.target for generator in node.generators]
        case _:
            return []


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and isinstance(node.ctx, ast.Store)
    if isinstance(node, (*_SCOPES, *_COMPREHENSIONS)):
        return False
    return any(_binds(part, name) for part in ast.iter_child_nodes(node))


def as_arrays(node: ast.expr) -> str:
    """Return a condition's text as JAX can compute it: functions for `and`, `or`, `not`, and no chained comparisons."""
    match node:
        case ast.BoolOp(op=op, values=values):
            name = "jnp.logical_and" if isinstance(op, ast.And) else "jnp.logical_or"
            return reduce(lambda left, right: f"{name}({left}, {right})", map(as_arrays, values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"jnp.logical_not({as_arrays(operand)})"
        case ast.Compare(left=left, ops=[_, _, *_] as ops, comparators=others):
            links = [ast.Compare(a, [op], [b]) for (a, b), op in zip(pairwise([left, *others]), ops, strict=True)]
            return as_arrays(ast.BoolOp(ast.And(), cast(list[ast.expr], links)))
        case _:
            return ast.unparse(node)
