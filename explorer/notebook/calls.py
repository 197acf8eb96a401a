"""Parsing of a magic's line: options, then one call, which is redirected before it runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any, cast

from explorer.errors import ExpressionError

CALLEE = "explore this call"  # the name that a redirected call calls; no identifier, so no user can have it
_OPTION = re.compile(r"""\s*(--[\w-]+)(?:(?:=|\s+)("[^"]*"|'[^']*'|\S+))?""")
_FLAG = re.compile(r"\s*(--[\w-]+)(?=\s|$)")
_OPTION_AFTER = re.compile(r"(\))\s+(--[A-Za-z][^()]*?)\s*$")  # allowed in the shell, not for a magic
_FLAGS = ("--passes",)
# Effects of each magic on the call and on its function, for errors.
_EFFECTS = {
    "explore": ("compiled instead of run", "explored"),
    "lint": ("traced instead of run", "looked at"),
    "jtime": ("run again and again", "timed"),
    "jprofile": ("run again and again", "profiled"),
}
_RUN = ("jtime", "jprofile")


def split_options(line: str, flags: Sequence[str] = _FLAGS) -> tuple[list[str], str]:
    """Split a line into the words of its options and the rest; all options except `flags` take a value."""
    words: list[str] = []
    at = 0
    while option := _flag(line, at, flags) or _OPTION.match(line, at):
        words += [word.strip("\"'") for word in option.groups() if word is not None]
        at = option.end()
    return words, line[at:].strip()


def _flag(line: str, at: int, flags: Sequence[str]) -> re.Match[str] | None:
    flag = _FLAG.match(line, at)
    return flag if flag is not None and flag[1] in flags else None


def single_call(expression: str, line: int, column: int, magic: str = "explore") -> ast.stmt:
    """Return the call in an expression, placed at its line and column in the file."""
    what = f"%{magic} takes one call"
    hint = f"write the call as ever, %{magic} f(x, y=1); it is {_EFFECTS[magic][0]}"
    if after := _OPTION_AFTER.search(expression):
        hint = f"options go before the call: %{magic} {after[2]} {expression[: after.end(1)].strip()}"
    try:
        body = ast.parse(expression).body
    except SyntaxError as error:
        caret = " " * (len("  given:  ") + (error.offset or 1) - 1)
        raise _usage_error(what, f"{expression}\n{caret}^ {error.msg}", hint) from None
    if len(body) != 1 or not isinstance(body[0], ast.Expr) or not _is_call(body[0].value, magic):
        raise _usage_error(what, expression, hint)
    ast.increment_lineno(body[0], line - 1)
    for node in ast.walk(body[0]):
        if isinstance(node, (ast.expr, ast.stmt, ast.keyword, ast.arg)):
            node.col_offset += column
            node.end_col_offset = (node.end_col_offset or 0) + column
    return body[0]


def last_call(cell: ast.Module, magic: str = "explore") -> ast.stmt:
    """Remove and return the last statement of a cell: `f(x)`, `y = f(x)`, `y: Array = f(x)` or `y += f(x)`."""
    last = cell.body[-1] if cell.body else None
    if not isinstance(last, (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign)) or not _is_call(last.value, magic):
        raise _usage_error(
            f"%%{magic} takes a cell that ends in a call, f(x) or y = f(x)",
            ast.unparse(last).partition("\n")[0] if last else "",
            f"the last statement is what is {_EFFECTS[magic][1]}; for no more than one call there is %{magic} f(x)",
        )
    return cell.body.pop()


def assigns(statement: ast.stmt) -> bool:
    """Return True if a statement keeps the value of its call."""
    return not isinstance(statement, ast.Expr)


def redirect(statement: ast.stmt) -> ast.Module:
    """Turn `y = f(a, *b)` into `y = CALLEE(f, a, *b)`: Python evaluates everything, but calls `CALLEE`."""
    call = cast(ast.Call, cast(Any, statement).value)
    call.args.insert(0, call.func)
    call.func = ast.copy_location(ast.Name(CALLEE, ast.Load()), call.func)
    return ast.Module([statement], [])


def _is_call(node: ast.expr | None, magic: str) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr == "block_until_ready" and not node.args:
        # Only this method of the finished array would be explored.
        waits = f"%{magic} waits for results itself"
        what = waits if magic in _RUN else f"a call that is {_EFFECTS[magic][1]} has no result to wait for"
        raise _usage_error(what, ast.unparse(node), f"leave the waiting out: {ast.unparse(node.func.value)}")
    return True


def _usage_error(what: str, given: str, hint: str) -> ExpressionError:
    return ExpressionError(f"{what}.\n  given:  {given or 'nothing'}\n  Hint: {hint}.")
