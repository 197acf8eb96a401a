"""`%explore` and `%%explore`: thin adapters over `explorer.explore`."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any, cast

from IPython.core.error import UsageError
from IPython.core.magic import line_cell_magic, magics_class, needs_local_scope, no_var_expand
from IPython.core.magic_arguments import MagicArgumentParser, argument, kwds, magic_arguments
from IPython.display import display  # pyright: ignore[reportUnknownVariableType] - IPython annotates it in part

from explorer.errors import ExploreError, ExplorerError, ExpressionError
from explorer.model.capture import Capture
from explorer.notebook.calls import CALLEE, Call, assigns, last_call, redirect, single_call, split_options
from explorer.notebook.place import calling_frame, ended_in_users_code, parse_cell, typed_column
from explorer.notebook.shell import ShellMagics


def writable_file(text: str) -> Path:
    """A file that can be written, which is better known before the work than after it."""
    path = Path(text).expanduser()
    try:
        if path.is_dir():
            raise argparse.ArgumentTypeError(f"{text!r} is a folder; name a file in it")
        if not path.parent.is_dir():
            raise argparse.ArgumentTypeError(f"there is no folder {str(path.parent)!r} to write {path.name!r} to")
    except OSError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return path


@magics_class
class ExplorerMagics(ShellMagics):
    """`%explore` and `%%explore`."""

    @magic_arguments()
    @argument(
        "--save", metavar="FILE", type=writable_file, help="also save the capture; explorer.load(FILE) gives it back"
    )
    @argument("--html", metavar="FILE", type=writable_file, help="also write the view as one self-contained page")
    @argument("--passes", action="store_true", help="also record the compiler's passes, however large the program is")
    @argument("--target", metavar="HARDWARE", help="compile for hardware that needn't be here: h100, 8xh100, v5e:4x4")
    # The call is no argument of the parser: IPython then completes inside it as in any code.
    @kwds(usage="%(prog)s [--save FILE] [--html FILE] [--passes] [--target HARDWARE] f(x, y=1)")  # pyright: ignore[reportUntypedFunctionDecorator] - IPython's
    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    def explore(self, line: str, cell: str | None = None, local_ns: Mapping[str, Any] | None = None) -> Capture:
        """Show what the compiler makes of a call: its jaxpr, StableHLO and optimised HLO, linked to your lines.

        As `%explore f(x, y=1)`, the function and its arguments are evaluated as Python would, and the call is traced,
        lowered and compiled, but not run. The capture is returned: `capture = %explore f(x)` keeps it.

        As `%%explore` on top of a cell, the cell runs as ever up to its last statement, which is the call. `f(x)`
        there is explored and not run; `y = f(x)` is explored and also run, so that `y` has its value.

        Errors are those of `explorer.explore`. If a step fails, what worked before it is shown, and the error
        has it as `.capture`.
        """
        __tracebackhide__ = True  # IPython leaves such a frame out of a traceback
        frame = calling_frame(self.shell)
        try:
            words, rest = split_options(line)
            options = _options(words)
            if cell is not None:
                if rest:
                    raise ExpressionError(
                        f"%%explore takes only options on its first line.\n  given:  {rest}\n"
                        f"  Hint: make it the last line of the cell, or write %explore {rest}"
                    )
                return _written(self._explore_cell(line, cell, frame, options.target), options)
            return _written(self._explore_line(rest, frame, local_ns, options.target), options)
        except ExplorerError as error:
            raise ended_in_users_code(self.shell, error, frame)  # noqa: B904 - the same error, its cause is kept

    def _explore_line(
        self, expression: str, frame: FrameType | None, local_ns: Mapping[str, Any] | None, target: str | None
    ) -> Capture:
        __tracebackhide__ = True
        file, line = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("<explore>", 1)
        statement = single_call(expression, line, typed_column(file, line, expression))
        namespace = self.shell.user_ns
        if local_ns is not None and local_ns is not namespace:  # the magic stands in a function
            namespace = {**namespace, **local_ns}
        return self._explore_statement(statement, file, namespace, target)

    def _explore_cell(self, line: str, cell: str, frame: FrameType | None, target: str | None) -> Capture:
        __tracebackhide__ = True
        tree, file = parse_cell(self.shell, frame, f"%%explore {line}", cell)
        statement = last_call(tree)
        exec(self.shell.compile(tree, file, "exec"), self.shell.user_ns)
        return self._explore_statement(statement, file, self.shell.user_ns, target)

    def _explore_statement(
        self, statement: ast.stmt, file: str, namespace: dict[str, Any], target: str | None
    ) -> Capture:
        """Run a statement whose call goes to explore(); what was captured before a failure is displayed."""
        __tracebackhide__ = True
        call = Call(assigns(statement), target)
        namespace[CALLEE] = call
        try:
            exec(self.shell.compile(redirect(statement), file, "exec"), namespace)
        finally:
            namespace.pop(CALLEE, None)
            if call.failure is not None and call.failure.capture.stages:
                display(call.failure.capture)
        if call.failure is not None:
            raise call.failure
        assert call.capture is not None
        return call.capture


explore_parser = cast(MagicArgumentParser, cast(Any, ExplorerMagics.explore).parser)


def _options(words: list[str]) -> argparse.Namespace:
    try:
        return explore_parser.parse_args(words)
    except UsageError as error:
        # IPython only prints a UsageError: who runs notebooks unattended would see a cell that passed.
        hint = "Hint: %explore? shows its options."
        raise ExpressionError(f"%explore {' '.join(words)}: {error}.\n  {hint}") from None


def _written(capture: Capture, options: argparse.Namespace) -> Capture:
    failed = "its passes could not be recorded"
    try:
        if options.passes:
            _ = capture.passes
        failed = "could not be written"
        if options.save:
            capture.save(options.save)
        if options.html:
            capture.to_html(options.html)
    except Exception as error:
        display(capture)
        message = f"{capture.function} was explored, but {failed}: {type(error).__name__}: {error}"
        raise ExploreError(f"{message}.\n  Hint: the capture is in `.capture` of this error.", capture) from error
    return capture
