"""`%explore`, `%recompiles`, `%explorer`, `%%hotpaths`: thin adapters over functions of the package."""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import shlex
from collections.abc import Mapping
from glob import glob
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

from IPython.core.error import TryNext, UsageError
from IPython.core.magic import cell_magic, line_cell_magic, line_magic, magics_class, needs_local_scope, no_var_expand
from IPython.core.magic_arguments import MagicArgumentParser, argument, kwds, magic_arguments
from IPython.display import display  # pyright: ignore[reportUnknownVariableType] - IPython annotates it in part

import explorer as ex  # which loads a room where it is first used
from explorer.errors import ExploreError, ExplorerError, ExpressionError
from explorer.model.capture import Capture
from explorer.notebook.calls import CALLEE, Call, assigns, last_call, redirect, single_call, split_options
from explorer.notebook.shell import ShellMagics, calling_frame, ended_in_users_code, parse_cell, run_cell, typed_column
from explorer.view.session import in_kernel

if TYPE_CHECKING:  # `%load_ext explorer` loads nothing of what a magic gives
    from explorer.hotpath.auto import AutoCompile
    from explorer.ledger.watch import Watch
    from explorer.model.events.ledger import Ledger
    from explorer.sessions.session import Session


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


_WATCH_IS_ON = "What compiles is watched from here on: run cells, and %recompiles shows them. %recompiles off ends it."
_WATCH_IS_OFF = "Nothing was watched: %recompiles on starts it."
_IN_A_VALUE = re.compile(r"--[\w-]+\s+\S*$")  # the cursor stands in an option's value, which is a file


@magics_class
class RecompilesMagics(ShellMagics):
    """`%recompiles` and `%%recompiles`."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._started: Watch | None = None  # not what a script or the environment had turned on

    @magic_arguments()
    @argument("--save", metavar="FILE", type=writable_file, help="also save the ledger, one event per line, as JSON")
    @argument("--html", metavar="FILE", type=writable_file, help="also write the view as one self-contained page")
    @argument("what", nargs="?", help="on, off, or the name of the one function to show")  # pyright: ignore[reportUntypedFunctionDecorator] - IPython's
    @no_var_expand
    @line_cell_magic
    def recompiles(self, line: str, cell: str | None = None) -> Ledger | None:
        """Show what JAX compiled, when, why again, what it cost, and what would stop it.

        `%recompiles` shows the session's ledger; if nothing was watched, it starts to and says so. `%recompiles on`
        and `%recompiles off` only do that, and `%recompiles step` shows the function `step` alone.

        As `%%recompiles` on top of a cell, the cell runs as ever, and what compiled in it is shown, session or not.

        The ledger is returned, as `explorer.watch()` returns it: `ledger = %recompiles` keeps it.
        """
        __tracebackhide__ = True  # IPython leaves such a frame out of a traceback
        frame = calling_frame(self.shell)
        try:
            options = _recompiles_options(line)
            if cell is None:
                return _written_ledger(self._session(options.what), options)
            if options.what in ("on", "off"):
                raise ExpressionError(
                    f"%%recompiles watches its cell alone; it can't be turned {options.what}.\n"
                    f"  Hint: %recompiles {options.what} is for the session."
                )
            return self._cell(line, cell, frame, options)
        except ExplorerError as error:
            raise ended_in_users_code(self.shell, error, frame)  # noqa: B904 - the same error, its cause is kept

    def _session(self, what: str | None) -> Ledger | None:
        from explorer.ledger.watch import session, start_session, stop_session

        watch = session()
        if what == "off":
            if watch is None:
                print(_WATCH_IS_OFF)
            return stop_session()
        if watch is None:
            watch = self._started = start_session()
            print(_WATCH_IS_ON)
        return watch if what in (None, "on") else watch.only(what)

    def _cell(self, line: str, cell: str, frame: FrameType | None, options: argparse.Namespace) -> Ledger | None:
        __tracebackhide__ = True
        from explorer.ledger.watch import watch

        tree, file = parse_cell(self.shell, frame, f"%%recompiles {line}", cell)
        ended = False
        ledger = watch()
        try:
            run_cell(self.shell, tree, file, cell)
            ended = True
        finally:
            ledger.stop()
            if not ended:
                display(ledger)
        return _written_ledger(ledger.only(options.what) if options.what else ledger, options)

    def stop(self) -> None:
        """Turn off what these magics turned on."""
        if self._started is not None:
            from explorer.ledger.watch import session, stop_session

            if session() is self._started:
                stop_session()


recompiles_parser = cast(MagicArgumentParser, cast(Any, RecompilesMagics.recompiles).parser)


def complete_recompiles(shell: Any, event: Any) -> list[str]:
    """What may come next: options, `on` and `off`, the functions of the session's ledger; files after an option."""
    from explorer.ledger.watch import session

    if _IN_A_VALUE.search(event.text_until_cursor[len(event.command) :]):
        return sorted(glob(event.symbol + "*"))
    options = sorted(set(re.findall(r"--[\w-]+", recompiles_parser.format_help())))
    if event.command.startswith("%%"):
        return options
    watch = session()
    names = {event.function for event in watch.events} if watch is not None else set[str]()
    return ["off", "on", *sorted(names), *options]


def _recompiles_options(line: str) -> argparse.Namespace:
    try:
        return recompiles_parser.parse_args(shlex.split(line))
    except (UsageError, ValueError) as error:
        # IPython only prints a UsageError: who runs notebooks unattended would see a cell that passed.
        hint = "Hint: %recompiles? shows its options."
        raise ExpressionError(f"%recompiles {line}: {error}.\n  {hint}") from None


def _written_ledger(ledger: Ledger | None, options: argparse.Namespace) -> Ledger | None:
    if ledger is None:
        return None
    try:
        if options.save:
            ledger.save(options.save)
        if options.html:
            ledger.to_html(options.html)
    except OSError as error:
        display(ledger)
        hint = "Hint: the ledger is still there: ledger = %recompiles"
        raise ExpressionError(f"the ledger could not be written: {error}.\n  {hint}") from error
    return ledger


_SESSION_IS_ON = "What compiles is watched from here on. %recompiles off ends it."


@magics_class
class SessionMagics(ShellMagics):
    """`%explorer`."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._started: Watch | None = None  # not what a script or %recompiles had turned on

    @no_var_expand
    @line_magic
    def explorer(self, line: str) -> Session:
        """Show one page for the session: every function that was compiled, by cost, with what there is of it.

        If nothing was watched, it starts to, and says so. `%explorer session.html` also writes the page to a file. What
        is returned is `explorer.session()`.

        Raises:
            ExpressionError: The file can't be written.
        """
        __tracebackhide__ = True
        from explorer.ledger.watch import start_session
        from explorer.sessions.session import session

        shown = session()
        if shown.ledger is None or not shown.ledger.on:
            self._started = start_session()
            print(_SESSION_IS_ON)
        path = line.strip().strip("'\"")
        if path:
            try:
                shown.save(path)
            except OSError as error:
                raise ExpressionError(f"%explorer {path}: the page can't be written: {error}.") from None
        return shown

    def stop(self) -> None:
        """Turn off what this magic turned on."""
        if self._started is not None:
            from explorer.ledger.watch import session, stop_session

            if session() is self._started:
                stop_session()


_IN_A_FILE = re.compile(r"--(?:save|html)\s+\S*$")  # the cursor stands in an option's value, which is a file


@magics_class
class HotPathsMagics(ShellMagics):
    """`%%hotpaths`."""

    @magic_arguments()
    @argument("--threshold", metavar="N", type=int, help="from how many calls of a function on it is compiled")
    @argument("--seconds", metavar="S", type=float, help="and from how many seconds of its eager calls on")
    @argument("--mode", metavar="MODE", help="default, reduce-overhead or max-autotune")
    @argument("--wait", action="store_true", help="wait for compiles, instead of compiling beside the program")
    @argument(
        "--save", metavar="FILE", type=writable_file, help="also save what happened; HotPaths.load(FILE) opens it"
    )
    @argument("--html", metavar="FILE", type=writable_file, help="also write the view as one self-contained page")
    @argument("name", nargs="?", help="keep the hot paths under this name")  # pyright: ignore[reportUntypedFunctionDecorator] - IPython's
    @no_var_expand
    @cell_magic
    def hotpaths(self, line: str, cell: str) -> AutoCompile | None:
        """Run a cell with hot paths on: functions that it calls often are compiled, where that is safe and faster.

        The cell runs as ever, and gives what it gives without the magic. Above its output stands, while it runs and
        afterwards, which functions run compiled, what that saved, and what keeps the others as they are written.

        `%%hotpaths hot` keeps it under the name `hot`: `hot.functions` has a row for each function, and `hot.report()`
        is all of it as a value. Errors are the cell's own, and those of `explorer.auto_compile`.
        """
        __tracebackhide__ = True  # IPython leaves such a frame out of a traceback
        frame = calling_frame(self.shell)
        try:
            options = _hotpaths_options(line)
            tree, file = parse_cell(self.shell, frame, f"%%hotpaths {line}", cell)
            given = {
                key: value for key in ("threshold", "seconds", "mode") if (value := getattr(options, key)) is not None
            }
            hot = ex.auto_compile(background=not options.wait, **given)
            if options.name:
                self.shell.user_ns[options.name] = hot
            hot.record_operations()
            is_live = in_kernel()
            with hot:
                if is_live:
                    display(hot)
                run_cell(self.shell, tree, file, cell, hot.compile_module)
            _write(hot, options)
            return None if is_live else hot
        except ExplorerError as error:
            raise ended_in_users_code(self.shell, error, frame)  # noqa: B904 - the same error, its cause is kept


hotpaths_parser = cast(MagicArgumentParser, cast(Any, HotPathsMagics.hotpaths).parser)


def complete_hotpaths(shell: Any, event: Any) -> list[str]:
    """What may come next: options; files after some of them."""
    if _IN_A_FILE.search(event.text_until_cursor[len(event.command) :]):
        return sorted(glob(event.symbol + "*"))
    return sorted(set(re.findall(r"--[\w-]+", hotpaths_parser.format_help())))


def _hotpaths_options(line: str) -> argparse.Namespace:
    try:
        options = hotpaths_parser.parse_args(shlex.split(line))
    except (UsageError, ValueError) as error:
        # IPython only prints a UsageError: who runs notebooks unattended would see a cell that passed.
        hint = "Hint: %%hotpaths? shows its options."
        raise ExpressionError(f"%%hotpaths {line}: {error}.\n  {hint}") from None
    if options.name is not None and not options.name.isidentifier():
        raise ExpressionError(
            f"%%hotpaths keeps the hot paths under a name.\n  given:  {options.name}\n"
            "  Hint: write %%hotpaths hot, and the code in the lines below."
        )
    return options


def _write(hot: AutoCompile, options: argparse.Namespace) -> None:
    try:
        if options.save:
            hot.report().save(options.save)
        if options.html:
            hot.report().to_html(options.html)
    except OSError as error:
        raise ExpressionError(f"the hot paths could not be written: {error}.") from error


_VALUE = re.compile(r"--(?!passes\b)[\w-]+\s+\S*$")  # the cursor stands in an option's value, which is a file


def complete(shell: Any, event: Any) -> list[str]:
    """What may come next; TryNext where IPython itself knows better: attributes, and what goes into a call."""
    typed = event.text_until_cursor[len(event.command) :]
    if _VALUE.search(typed):
        return sorted(glob(event.symbol + "*"))
    _, call = split_options(typed)
    if "(" in call or "." in call:
        raise TryNext
    options = sorted(set(re.findall(r"--[\w-]+", explore_parser.format_help())))
    if event.command.startswith("%%"):
        return options
    return callables(shell) + options


def callables(shell: Any) -> list[str]:
    """The user's names of what can be called, or has what can be."""
    names = (name for name in shell.user_ns if not name.startswith("_") and name not in shell.user_ns_hidden)
    return sorted(n for n in names if callable(shell.user_ns[n]) or inspect.ismodule(shell.user_ns[n]))
