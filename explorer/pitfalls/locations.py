"""Pieces of the user's text as the fields of a finding: file, label, text, line, column and where it ends."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from explorer.capture.sources import Span, label, parse, read_source
from explorer.model.graph import Frame


def span_of(frame: Frame) -> Span:
    return Span(frame.line, frame.column, frame.end_line, frame.end_column)


def frame_location(frame: Frame | None) -> dict[str, Any]:
    """The fields of a finding at a frame; none for None."""
    return span_location(frame.file, span_of(frame)) if frame is not None else {}


def span_location(file: str, span: Span) -> dict[str, Any]:
    """The fields of a finding at a piece of a file."""
    return {
        "file": file,
        "label": label(file),
        "text": _line(file, span.line).strip(),
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }


def expression_on_line(file: str, line: int, predicate: Callable[[ast.expr], bool]) -> Span:
    """The smallest expression on a line for which a predicate holds; all of the line where there is none."""
    source = read_source(file)
    tree = parse(source.text) if source is not None else None
    spans = [
        Span.of(node)
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.expr) and node.lineno <= line <= (node.end_lineno or 0) and predicate(node)
    ]
    text = _line(file, line)
    whole = Span(line, len(text) - len(text.lstrip()), line, len(text.rstrip().encode()))
    return min(spans, key=lambda span: (span.end_line - span.line, span.end_column - span.column), default=whole)


def _line(file: str, number: int) -> str:
    source = read_source(file)
    lines = source.text.splitlines() if source is not None else []
    return lines[number - 1] if 0 < number <= len(lines) else ""
