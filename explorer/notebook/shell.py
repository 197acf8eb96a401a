"""What all our magics have in common, and those that stand over one call of the user's."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable, Mapping
from types import CodeType, FrameType, TracebackType
from typing import Any, Protocol, TypeVar
from weakref import ref

from IPython.core.magic import Magics
from IPython.display import display  # pyright: ignore[reportUnknownVariableType] - IPython annotates it in part

from explorer.capture.sources import keep_compiled_text, read_source
from explorer.errors import ExplorerError, ExpressionError
from explorer.notebook.calls import CALLEE, assigns, last_call, redirect, single_call

# An error passes these between the user's lines; IPython is not among them, for it is never inside.
_NOT_THE_USERS = ("explorer", "jax", "jaxlib", "contextlib", "functools")


def calling_frame(shell: Any) -> FrameType | None:
    """The frame of the cell, or of the function defined in one, that the running magic stands in."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals is not shell.user_global_ns:
        frame = frame.f_back
    return frame


def parse_cell(shell: Any, frame: FrameType | None, magic: str, cell: str) -> tuple[ast.Module, str]:
    """The body of a `%%` cell under the line `magic`, with its lines as typed, and the name to compile it under."""
    file = _name_cell(shell, frame, f"{magic.rstrip()}\n{cell}")
    # Lines count from the one with the magic; transform_cell drops the blank ones after it.
    blank = next((i for i, row in enumerate(cell.splitlines()) if row.strip()), 0)
    source = "\n" * (1 + blank) + shell.transform_cell(cell)
    keep_compiled_text(file, source)
    return shell.transform_ast(shell.compile.ast_parse(source, file)), file


def run_cell(
    shell: Any, tree: ast.Module, file: str, cell: str, compile_cell: Callable[..., CodeType] | None = None
) -> None:
    """Run a cell that was parsed; the value of its last expression is displayed, as without a magic.

    Args:
        shell: IPython's.
        tree: What was parsed, by `parse_cell`.
        file: The name to compile it under.
        cell: Its text.
        compile_cell: Gives the code of all but that expression, of its tree, its file, its namespace and the shell's
            own compile; None is that alone.
    """
    __tracebackhide__ = True
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


def _name_cell(shell: Any, frame: FrameType | None, text: str) -> str:
    """The file name to compile the body of a `%%` cell under, so that frames lead to `text`, the cell as it was typed.

    It is the name that IPython has for the cell. To IPython, the text under that name is one call of the magic, with
    the whole body in a string; nobody can find a line in that, so it is replaced.
    """
    file = frame.f_code.co_filename if frame is not None else ""
    lines = linecache.getlines(file)
    if len(lines) == 1 and lines[0].startswith("get_ipython().run_cell_magic("):
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        return file
    return shell.compile.cache(text, shell.execution_count)  # a program called the magic: there is no such cell


def ended_in_users_code(shell: Any, error: ExplorerError, frame: FrameType | None) -> ExplorerError:
    """The error with the user's own lines as its traceback. A notebook shows that alone: its message names its cause,
    and with the cause's own traceback the same lines would stand there twice."""
    traceback = users_traceback(error, frame)
    reference = ref(error)  # of the error itself, what it holds would wait for the garbage collector

    def render() -> list[str]:
        shown = reference()
        assert shown is not None
        cause, shown.__cause__ = shown.__cause__, None
        try:
            return shell.InteractiveTB.structured_traceback(type(shown), shown, traceback)
        finally:
            shown.__cause__ = cause

    error._render_traceback_ = render  # pyright: ignore[reportAttributeAccessIssue] - what IPython asks an error for
    return error.with_traceback(traceback)


def users_traceback(error: BaseException, frame: FrameType | None) -> TracebackType | None:
    """The user's own lines that an error and its cause went through; the line of the magic if there are none."""
    steps: list[tuple[FrameType, int, int]] = []
    for part in (error, error.__cause__):
        walk = part.__traceback__ if part is not None else None
        while walk is not None:
            if str(walk.tb_frame.f_globals.get("__name__")).partition(".")[0] not in _NOT_THE_USERS:
                steps.append((walk.tb_frame, walk.tb_lasti, walk.tb_lineno))
            walk = walk.tb_next
    if not steps and frame is not None:
        steps = [(frame, frame.f_lasti, frame.f_lineno)]
    traceback: TracebackType | None = None
    for step in reversed(steps):
        traceback = TracebackType(traceback, *step)
    return traceback


def typed_column(file: str, line: int, expression: str) -> int:
    """Where an expression stands in a line as the source pane will show it."""
    source = read_source(file)
    lines = source.text.splitlines() if source is not None else []
    return max(lines[line - 1].find(expression), 0) if line <= len(lines) else 0


_Found = TypeVar("_Found", covariant=True)


class StandIn(Protocol[_Found]):
    """Stands in for the callee of the user's call; `result` is what came of it, None before."""

    @property
    def result(self) -> _Found | None: ...
    def __call__(self, function: Any, /, *args: Any, **kwargs: Any) -> Any: ...


class ShellMagics(Magics):
    """The magics of one shell; `replaced` are those of others whose names they took."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell=shell)
        self.shell: Any = shell
        self.replaced: dict[str, dict[str, Any]] = {}

    def stop(self) -> None:
        """End what goes on by itself, when the extension is unloaded; for most nothing does."""


class CallMagics(ShellMagics):
    """Magics over one call: an expression on their own line, or the last statement of their cell."""

    def result_of(
        self,
        magic: str,
        stand_in: Callable[[bool], StandIn[_Found]],
        line: str,
        expression: str,
        cell: str | None,
        frame: FrameType | None,
        local_ns: Mapping[str, Any] | None,
    ) -> _Found:
        """Run the user's call with a stand-in for its callee, and return what that found.

        Args:
            magic: The magic's name, for what is said.
            stand_in: Makes the stand-in, told whether the user wants the call's value too: `y = f(x)`.
            line, expression: The magic's line, and what is left of it without options.
            cell: The cell below the line; None for a line magic.
            frame: The user's, where there is one.
            local_ns: The names of the function that the magic stands in.

        Raises:
            ExpressionError: There is no such call.
        """
        __tracebackhide__ = True
        if cell is None:
            return self._line(magic, stand_in, expression, frame, local_ns)
        if expression:
            raise ExpressionError(
                f"%%{magic} takes only options on its first line.\n  given:  {expression}\n"
                f"  Hint: make it the last line of the cell, or write %{magic} {expression}"
            )
        tree, file = parse_cell(self.shell, frame, f"%%{magic} {line}", cell)
        statement = last_call(tree, magic)
        exec(self.shell.compile(tree, file, "exec"), self.shell.user_ns)
        return self._run(stand_in, statement, file, self.shell.user_ns)

    def _line(
        self,
        magic: str,
        stand_in: Callable[[bool], StandIn[_Found]],
        expression: str,
        frame: FrameType | None,
        local_ns: Mapping[str, Any] | None,
    ) -> _Found:
        __tracebackhide__ = True
        file, line = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else (f"<{magic}>", 1)
        statement = single_call(expression, line, typed_column(file, line, expression), magic)
        namespace = self.shell.user_ns
        if local_ns is not None and local_ns is not namespace:  # the magic stands in a function
            namespace = {**namespace, **local_ns}
        return self._run(stand_in, statement, file, namespace)

    def _run(
        self,
        stand_in: Callable[[bool], StandIn[_Found]],
        statement: ast.stmt,
        file: str,
        namespace: dict[str, Any],
    ) -> _Found:
        """What was found is displayed also where the call itself fails after it."""
        __tracebackhide__ = True
        call = stand_in(assigns(statement))
        namespace[CALLEE] = call
        ended = False
        try:
            exec(self.shell.compile(redirect(statement), file, "exec"), namespace)
            ended = True
        finally:
            namespace.pop(CALLEE, None)
            if not ended and call.result is not None:
                display(call.result)
        assert call.result is not None
        return call.result
