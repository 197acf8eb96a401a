"""Shared parts of the magics: cells, options, completion, tracebacks, and magics over one call of the user's."""

from __future__ import annotations

import argparse
import ast
import inspect
import linecache
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from glob import glob
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast
from weakref import ref

from IPython.core.error import TryNext, UsageError
from IPython.core.magic import Magics
from IPython.core.magic_arguments import MagicArgumentParser
from IPython.display import display  # pyright: ignore[reportUnknownVariableType] - IPython annotates it in part

from explorer.capture.sources import WRAPPERS, keep_compiled_text, package_of, read_source
from explorer.errors import ExploreError, ExplorerError, ExpressionError

if TYPE_CHECKING:  # `%load_ext explorer` loads nothing that only a magic needs
    from explorer.capture.call import Call

_P = ParamSpec("_P")
_Result = TypeVar("_Result")


def calling_frame(shell: Any) -> FrameType | None:
    """Return the frame of the cell, or of the function defined in one, that runs the magic; None if no cell does."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals is not shell.user_global_ns:
        frame = frame.f_back
    return frame


# Cells ----------------------------------------------------------------------------------------------------------------


def parse_cell(shell: Any, magic: str, cell: str) -> tuple[ast.Module, str]:
    """Return the body of a `%%` cell, with its lines numbered as typed, and the file name to compile it under."""
    file = _name_cell(shell, f"{magic.rstrip()}\n{cell}")
    # Line 1 is the magic's; transform_cell drops blank lines after it.
    blank = next((i for i, row in enumerate(cell.splitlines()) if row.strip()), 0)
    source = "\n" * (1 + blank) + shell.transform_cell(cell)
    keep_compiled_text(file, source)
    return shell.transform_ast(shell.compile.ast_parse(source, file)), file


def run_cell(
    shell: Any, tree: ast.Module, file: str, cell: str, compile_cell: Callable[..., CodeType] | None = None
) -> None:
    """Run a parsed cell and display the value of its last expression, as IPython does.

    `compile_cell` compiles all but that expression: a function of tree, file, namespace and the shell's own `compile`.
    """
    __tracebackhide__ = True
    # `exec` gives no value, so the last expression is evaluated separately.
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        tree.body.pop()
    if compile_cell is None:
        code = shell.compile(tree, file, "exec")
    else:
        code = compile_cell(tree, file, shell.user_ns, shell.compile)
    exec(code, shell.user_ns)
    if isinstance(last, ast.Expr):
        value = eval(shell.compile(ast.Expression(last.value), file, "eval"), shell.user_ns)
        if value is not None and not cell.rstrip().endswith(";"):
            display(value)


def _name_cell(shell: Any, text: str) -> str:
    """Return IPython's file name of a `%%` cell, after registering the typed text under it."""
    # IPython registers one call of the magic with the whole body as a string, in which no line can be found.
    frame = calling_frame(shell)
    file = frame.f_code.co_filename if frame is not None else ""
    lines = linecache.getlines(file)
    if len(lines) == 1 and lines[0].startswith("get_ipython().run_cell_magic("):
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        return file
    return shell.compile.cache(text, shell.execution_count)  # the magic was called by a program


# Errors ---------------------------------------------------------------------------------------------------------------


def users_errors(magic: Callable[_P, _Result]) -> Callable[_P, _Result]:
    """Return a magic whose Explorer errors have only the user's lines in their traceback."""

    @wraps(magic)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _Result:
        __tracebackhide__ = True  # IPython leaves such a frame out of a traceback
        shell = cast(Any, args[0]).shell
        frame = calling_frame(shell)
        try:
            return magic(*args, **kwargs)
        except ExplorerError as error:
            raise ended_in_users_code(shell, error, frame)  # noqa: B904 - the same error, its cause is kept

    return run


def ended_in_users_code(shell: Any, error: ExplorerError, frame: FrameType | None) -> ExplorerError:
    """Return the error with only the user's lines as traceback, in the notebook without its cause."""
    # The message names the cause, whose own traceback would repeat the same lines.
    traceback = users_traceback(error, frame)
    reference = ref(error)  # a cycle would keep what the error holds until the next garbage collection

    def render() -> list[str]:
        shown = reference()
        assert shown is not None
        cause, shown.__cause__ = shown.__cause__, None
        try:
            return shell.InteractiveTB.structured_traceback(type(shown), shown, traceback)
        finally:
            shown.__cause__ = cause

    error._render_traceback_ = render  # pyright: ignore[reportAttributeAccessIssue] - IPython calls it
    return error.with_traceback(traceback)


def users_traceback(error: BaseException, frame: FrameType | None) -> TracebackType | None:
    """Return the user's lines in the tracebacks of an error and its cause, else the line of `frame`, else None."""
    steps: list[tuple[FrameType, int, int]] = []
    for part in (error, error.__cause__):
        walk = part.__traceback__ if part is not None else None
        while walk is not None:
            if package_of(walk.tb_frame) not in WRAPPERS:
                steps.append((walk.tb_frame, walk.tb_lasti, walk.tb_lineno))
            walk = walk.tb_next
    if not steps and frame is not None:
        steps = [(frame, frame.f_lasti, frame.f_lineno)]
    traceback: TracebackType | None = None
    for step in reversed(steps):
        traceback = TracebackType(traceback, *step)
    return traceback


# Options --------------------------------------------------------------------------------------------------------------


def writable_file(text: str) -> Path:
    """Return the path that an option names, an argparse type; ArgumentTypeError for a folder, or in a missing one."""
    path = Path(text).expanduser()
    try:
        if path.is_dir():
            raise argparse.ArgumentTypeError(f"{text!r} is a folder; name a file in it")
        if not path.parent.is_dir():
            raise argparse.ArgumentTypeError(f"there is no folder {str(path.parent)!r} to write {path.name!r} to")
    except OSError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return path


def parse_options(
    parser: MagicArgumentParser, magic: str, line: str, words: list[str] | None = None
) -> argparse.Namespace:
    """Return the options in a line, or in its `words`; ExpressionError if they are wrong."""
    try:
        return parser.parse_args(shlex.split(line) if words is None else words)
    except (UsageError, ValueError) as error:
        # IPython only prints a UsageError, so that the cell would pass in a notebook that runs unattended.
        raise ExpressionError(f"{magic} {line}: {error}.\n  Hint: {magic}? shows its options.") from None


def given(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return a dict of the named options that have a value; the defaults of a function serve for the others."""
    return {name: value for name in names if (value := getattr(options, name)) is not None}


def completer(
    parser: MagicArgumentParser,
    files: Sequence[str],
    flags: Sequence[str] = (),
    values: Mapping[str, Callable[[], list[str]]] | None = None,
    names: Callable[[Any], list[str]] | None = None,
) -> Callable[[Any, Any], list[str]]:
    """Return IPython's completer of a magic.

    The values of the options `files` are files, `flags` have no value, `values` are those of other options. `names` are
    the words that may follow the magic in a line, callables by default; None is for the magics of one call: inside the
    call IPython completes.
    """

    def complete(shell: Any, event: Any) -> list[str]:
        typed = event.text_until_cursor[len(event.command) :]
        value = re.search(r"(--[\w-]+)\s+\S*$", typed)  # the cursor is in an option's value
        if value and value[1] in files:
            return sorted(glob(event.symbol + "*"))
        if value and value[1] not in flags:
            return values[value[1]]() if values and value[1] in values else []
        if names is None:
            _, call = split_options(typed, flags)
            if "(" in call or "." in call:
                raise TryNext
        options = sorted(set(re.findall(r"--[\w-]+", parser.format_help())))
        return options if event.command.startswith("%%") else (names or _callables)(shell) + options

    return complete


def _callables(shell: Any) -> list[str]:
    names = (name for name in shell.user_ns if not name.startswith("_") and name not in shell.user_ns_hidden)
    return sorted(n for n in names if callable(shell.user_ns[n]) or inspect.ismodule(shell.user_ns[n]))


def written(
    result: _Result,
    what: str,
    *files: tuple[Path | None, Callable[[Path], object]],
    hint: str = "",
    is_shown: bool = False,
) -> _Result:
    """Write the result to each given file, and return it. If that fails, display it, unless it `is_shown`, and raise
    the error.
    """
    try:
        for file, write in files:
            if file is not None:
                write(file)
    except (ExplorerError, OSError) as error:
        if not is_shown:
            display(result)
        if isinstance(error, ExplorerError):
            raise
        raise ExpressionError(f"the {what} could not be written: {error}.{hint}") from error
    return result


# Magics ---------------------------------------------------------------------------------------------------------------


class ShellMagics(Magics):
    """Magics of one shell; `replaced` are other extensions' magics with the same names."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell=shell)
        self.shell: Any = shell
        self.replaced: dict[str, dict[str, Any]] = {}

    def stop(self) -> None:
        """End what the magics started, when the extension is unloaded."""


class _Callee:
    """Replacement for the callee of the user's call: applies a verb to the function and its arguments.

    If the value `is_assigned`, as in `y = f(x)`, the function is then also called. If it `is_explored`, an ExploreError
    comes after that call, so that the cell loses no value.
    """

    def __init__(self, verb: Callable[[Call], Any], is_assigned: bool, is_explored: bool) -> None:
        self.verb, self.is_assigned, self.is_explored = verb, is_assigned, is_explored
        self.result: Any = None
        self.failure: ExploreError | None = None

    # Positional-only, because the user's call may have a keyword `function` or `self`.
    def __call__(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # IPython leaves such a frame out of a traceback
        from explorer.capture.call import Call

        try:
            self.result = self.verb(Call(function, *args, **kwargs))
        except ExploreError as error:
            if self.is_explored:
                self.failure = error
            if not (self.is_explored and self.is_assigned):
                raise
        return function(*args, **kwargs) if self.is_assigned else None


class SingleCallMagics(ShellMagics):
    """Magics over one call: an expression on their own line, or the last statement of their cell."""

    def result_of(
        self,
        magic: str,
        verb: Callable[[Call], _Result],
        line: str,
        expression: str,
        cell: str | None,
        local_ns: Mapping[str, Any] | None,
    ) -> _Result:
        """Return the result of a verb for the user's call; raise ExpressionError if there is no such call.

        `expression` is the part of the magic's line after its options, `cell` the cell below it (None for a line
        magic), `local_ns` the names of the function that contains the magic.
        """
        __tracebackhide__ = True
        namespace = self.shell.user_ns
        if cell is None:
            frame = calling_frame(self.shell)
            file, number = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else (f"<{magic}>", 1)
            statement = single_call(expression, number, typed_column(file, number, expression), magic)
            if local_ns is not None and local_ns is not namespace:  # the magic is in a function
                namespace = {**namespace, **local_ns}
            return self._run(magic, verb, statement, file, namespace)
        if expression:
            raise ExpressionError(
                f"%%{magic} takes only options on its first line.\n  given:  {expression}\n"
                f"  Hint: make it the last line of the cell, or write %{magic} {expression}"
            )
        tree, file = parse_cell(self.shell, f"%%{magic} {line}", cell)
        statement = last_call(tree, magic)
        exec(self.shell.compile(tree, file, "exec"), namespace)
        return self._run(magic, verb, statement, file, namespace)

    def _run(
        self, magic: str, verb: Callable[[Call], _Result], statement: ast.stmt, file: str, namespace: dict[str, Any]
    ) -> _Result:
        __tracebackhide__ = True
        callee = namespace[CALLEE] = _Callee(verb, assigns(statement), magic == "explore")
        try:
            exec(self.shell.compile(redirect(statement), file, "exec"), namespace)
        except BaseException:
            if magic != "explore" and callee.result is not None:  # the function failed after the verb
                display(callee.result)
            raise
        finally:
            # The user's namespace must not keep the function, its arguments and the result.
            namespace.pop(CALLEE, None)
            if callee.failure is not None and callee.failure.capture.stages:
                display(callee.failure.capture)
        if callee.failure is not None:
            raise callee.failure
        return callee.result


def typed_column(file: str, line: int, expression: str) -> int:
    """Return the column, from 0, where an expression starts in a line of a file; 0 if the text is unknown."""
    source = read_source(file)
    lines = source.text.splitlines() if source is not None else []
    return max(lines[line - 1].find(expression), 0) if line <= len(lines) else 0


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
    """Return the words of a line's options, and the rest of the line; all options except `flags` take a value."""
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
    """Return the call in an expression, placed at its line and column in the file; else raise ExpressionError."""
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
    """Remove and return the last statement of a cell, `f(x)`, `y = f(x)` or `y += f(x)`; else raise ExpressionError."""
    last = cell.body[-1] if cell.body else None
    if not isinstance(last, (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign)) or not _is_call(last.value, magic):
        raise _usage_error(
            f"%%{magic} takes a cell that ends in a call, f(x) or y = f(x)",
            ast.unparse(last).partition("\n")[0] if last else "",
            f"the last statement is what is {_EFFECTS[magic][1]}; to explore a single call, use %{magic} f(x)",
        )
    return cell.body.pop()


def assigns(statement: ast.stmt) -> bool:
    """Return True if a statement keeps the value of its call."""
    return not isinstance(statement, ast.Expr)


def redirect(statement: ast.stmt) -> ast.Module:
    """Return `y = CALLEE(f, a, *b)` for `y = f(a, *b)`, changed in place: Python evaluates all, but calls `CALLEE`."""
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
