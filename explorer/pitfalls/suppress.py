"""`# explorer: ignore[EX001]`: that rule says nothing on this line, in this statement, or in the whole function.

The comment stands on any line of the statement, or of the head of a `def`, `for`, `if` or `with`; on a `def`, its
decorators too, it holds for all of the function. Without brackets it means every rule.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Mapping
from functools import lru_cache

from explorer.capture.sources import parse, read_source
from explorer.model.findings import Finding
from explorer.pitfalls.syntax_trees import first_line

_COMMENT = re.compile(r"#\s*explorer:\s*ignore\b(?:\s*\[([^\]]*)\])?", re.IGNORECASE)
_EVERY = frozenset({"*"})


def is_suppressed(finding: Finding) -> bool:
    """Whether a comment silences the finding's rule, by number or name, where it is."""
    source = read_source(finding.file) if finding.file and finding.line else None
    if source is None or not (comments := _comments(source.text)):
        return False
    none = frozenset[str]()
    silent = none.union(*(comments.get(line, none) for line in _lines(source.text, finding.line)))
    return bool(silent & {"*", finding.code.lower(), finding.rule})


@lru_cache(maxsize=32)
def _comments(text: str) -> Mapping[int, frozenset[str]]:
    """By line, the rules that its comment names."""
    if not _COMMENT.search(text):
        return {}
    matches = ((line, _COMMENT.search(comment)) for line, comment in _all_comments(text))
    return {line: _rules(match[1]) for line, match in matches if match is not None}


def _all_comments(text: str) -> list[tuple[int, str]]:
    """Every comment with its line; in a text that is no Python alone, such as a cell with magics, every line."""
    try:
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        return [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]
    except (tokenize.TokenError, SyntaxError, ValueError):
        return list(enumerate(text.splitlines(), 1))


def _rules(names: str | None) -> frozenset[str]:
    return _EVERY if names is None else frozenset(word.strip().lower() for word in names.split(",")) - {""}


def _lines(text: str, line: int) -> set[int]:
    """The lines whose comments hold for a line: those of its statement, and of the heads of the functions around it."""
    lines = {line}
    tree = parse(text)
    block: list[ast.AST] = [tree] if tree is not None else []
    while block:
        node = block.pop()
        for part in ast.iter_child_nodes(node):
            if isinstance(part, (ast.ExceptHandler, ast.match_case)):
                block.append(part)
            elif isinstance(part, ast.stmt) and first_line(part) <= line <= (part.end_lineno or 0):
                head = _head(part)
                if line in head or isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    lines.update(head)
                block.append(part)
    return lines


def _head(node: ast.stmt) -> range:
    """The lines of a statement before those of the statements inside it."""
    body: list[ast.stmt] = getattr(node, "body", [])
    last = max(first_line(body[0]) - 1, node.lineno) if body else node.end_lineno or node.lineno
    return range(first_line(node), last + 1)
