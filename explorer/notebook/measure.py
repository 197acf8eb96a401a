"""`%jtime` and `%jprofile`: thin adapters over `explorer.time` and `explorer.profile`."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from types import FrameType
from typing import Any, Generic, TypeVar, cast

from IPython.core.error import TryNext, UsageError
from IPython.core.magic import line_cell_magic, magics_class, needs_local_scope, no_var_expand
from IPython.core.magic_arguments import MagicArgumentParser, argument, kwds, magic_arguments
from IPython.display import display  # pyright: ignore[reportUnknownVariableType] - IPython annotates it in part

from explorer.errors import ExplorerError, ExpressionError
from explorer.model.profile.profile import Profile
from explorer.model.timing import Timing
from explorer.notebook.calls import CALLEE, assigns, last_call, redirect, single_call, split_options
from explorer.notebook.completion import callables
from explorer.notebook.magics import typed_column, writable_file
from explorer.notebook.place import calling_frame, parse_cell, users_traceback
from explorer.notebook.shell import ShellMagics

__all__ = ["MeasureMagics", "complete_jprofile", "complete_jtime", "jprofile_parser", "jtime_parser"]

_Measured = TypeVar("_Measured", Timing, Profile)
_TIME_FLAGS = ("--no-eager",)
_PROFILE_FLAGS = ("--roofline",)


@dataclass(frozen=True)
class _Kind(Generic[_Measured]):
    """One of the two: its name, its function, its options by the names that the function has, and what it gives."""

    magic: str
    measure: Callable[..., _Measured]
    asked: Mapping[str, Any]


class _Call(Generic[_Measured]):
    """Stands in for the callee of the user's call: gets the function and its arguments, and measures them.

    Args:
        assigned: The user wants the value too: `y = f(x)`. Then the function is called once more.
    """

    def __init__(self, kind: _Kind[_Measured], assigned: bool) -> None:
        self.kind, self.assigned = kind, assigned
        self.found: _Measured | None = None

    def __call__(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # IPython leaves such a frame out of a traceback
        self.found = self.kind.measure(function, args, kwargs, **self.kind.asked)
        return function(*args, **kwargs) if self.assigned else None


@magics_class
class MeasureMagics(ShellMagics):
    """`%jtime`, `%%jtime`, `%jprofile` and `%%jprofile`."""

    @magic_arguments()
    @argument("--seconds", metavar="S", type=float, help="how long to measure, about")
    @argument("--no-eager", action="store_true", help="don't time the function operation by operation")
    @argument("--html", metavar="FILE", type=writable_file, help="also write the chart as one self-contained page")
    # The call is no argument of the parser: IPython then completes inside it as in any code.
    @kwds(usage="%(prog)s [--seconds S] [--no-eager] [--html FILE] f(x, y=1)")  # pyright: ignore[reportUntypedFunctionDecorator] - IPython's
    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    def jtime(self, line: str, cell: str | None = None, local_ns: Mapping[str, Any] | None = None) -> Timing:
        """Say how long a call takes: as written, the first time, and once it is compiled.

        As `%jtime f(x, y=1)`, the function and its arguments are evaluated once, as Python would, and the call runs
        again and again, each time until its result is there. `timing = %jtime f(x)` keeps what was measured.

        As `%%jtime` on top of a cell, the cell runs as ever up to its last statement, which is the call. Of `y = f(x)`
        there, `y` has its value afterwards.
        """
        __tracebackhide__ = True  # IPython leaves such a frame out of a traceback
        from explorer.measure.time import timed

        frame = calling_frame(self.shell)
        try:
            words, rest = split_options(line, _TIME_FLAGS)
            options = _options(jtime_parser, "jtime", words)
            asked = {"eager": not options.no_eager} | _given(options, "seconds")
            kind = _Kind("jtime", timed, asked)
            timing = self._measured(kind, line, rest, cell, frame, local_ns)
            return _written(timing, "timing", options.html, lambda file: timing.chart().to_html(file))
        except ExplorerError as error:
            raise error.with_traceback(users_traceback(error, frame))  # noqa: B904 - the same error, its cause is kept

    @magic_arguments()
    @argument("--runs", metavar="N", type=int, help="how many calls to record")
    @argument("--seconds", metavar="S", type=float, help="how long to record, about")
    @argument("--roofline", action="store_true", help="also say how much of the time the machine could have saved")
    @argument("--html", metavar="FILE", type=writable_file, help="also write the view as one self-contained page")
    @argument("--perfetto", metavar="FILE", type=writable_file, help="also write a trace for ui.perfetto.dev")
    @kwds(usage="%(prog)s [--runs N] [--seconds S] [--roofline] [--html FILE] [--perfetto FILE] f(x, y=1)")  # pyright: ignore[reportUntypedFunctionDecorator] - IPython's
    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    def jprofile(self, line: str, cell: str | None = None, local_ns: Mapping[str, Any] | None = None) -> Profile:
        """Say where the time of a compiled call goes: to which line of your source, and to which instruction.

        As `%jprofile f(x, y=1)`, the function and its arguments are evaluated once, as Python would, and the call runs
        some times while XLA's own profiler does. `found = %jprofile f(x)` keeps what was recorded.

        As `%%jprofile` on top of a cell, the cell runs as ever up to its last statement, which is the call. Of
        `y = f(x)` there, `y` has its value afterwards.
        """
        __tracebackhide__ = True
        from explorer.measure.profile import profiled

        frame = calling_frame(self.shell)
        try:
            words, rest = split_options(line, _PROFILE_FLAGS)
            options = _options(jprofile_parser, "jprofile", words)
            kind = _Kind("jprofile", profiled, _given(options, "runs", "seconds"))
            found = self._measured(kind, line, rest, cell, frame, local_ns)
            if options.roofline:
                found = _against_peaks(found)
            _written(found, "profile", options.html, found.to_html)
            return _written(found, "profile", options.perfetto, found.to_perfetto)
        except ExplorerError as error:
            raise error.with_traceback(users_traceback(error, frame))  # noqa: B904 - the same error, its cause is kept

    def _measured(
        self,
        kind: _Kind[_Measured],
        line: str,
        expression: str,
        cell: str | None,
        frame: FrameType | None,
        local_ns: Mapping[str, Any] | None,
    ) -> _Measured:
        __tracebackhide__ = True
        if cell is None:
            return self._line(kind, expression, frame, local_ns)
        if expression:
            raise ExpressionError(
                f"%%{kind.magic} takes only options on its first line.\n  given:  {expression}\n"
                f"  Hint: make it the last line of the cell, or write %{kind.magic} {expression}"
            )
        tree, file = parse_cell(self.shell, frame, f"%%{kind.magic} {line}", cell)
        statement = last_call(tree, kind.magic)
        exec(self.shell.compile(tree, file, "exec"), self.shell.user_ns)
        return self._run(kind, statement, file, self.shell.user_ns)

    def _line(
        self,
        kind: _Kind[_Measured],
        expression: str,
        frame: FrameType | None,
        local_ns: Mapping[str, Any] | None,
    ) -> _Measured:
        __tracebackhide__ = True
        file, line = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else (f"<{kind.magic}>", 1)
        statement = single_call(expression, line, typed_column(file, line, expression), kind.magic)
        namespace = self.shell.user_ns
        if local_ns is not None and local_ns is not namespace:  # the magic stands in a function
            namespace = {**namespace, **local_ns}
        return self._run(kind, statement, file, namespace)

    def _run(self, kind: _Kind[_Measured], statement: ast.stmt, file: str, namespace: dict[str, Any]) -> _Measured:
        """Run a statement whose call is measured; what was is displayed also where the call itself fails after it."""
        __tracebackhide__ = True
        call = _Call(kind, assigns(statement))
        namespace[CALLEE] = call
        ended = False
        try:
            exec(self.shell.compile(redirect(statement), file, "exec"), namespace)
            ended = True
        finally:
            namespace.pop(CALLEE, None)
            if not ended and call.found is not None:
                display(call.found)
        assert call.found is not None
        return call.found


jtime_parser = cast(MagicArgumentParser, cast(Any, MeasureMagics.jtime).parser)
jprofile_parser = cast(MagicArgumentParser, cast(Any, MeasureMagics.jprofile).parser)


def complete_jtime(shell: Any, event: Any) -> list[str]:
    """What may come next after `%jtime`: options, what can be called, files; TryNext where IPython knows better."""
    return _complete(shell, event, jtime_parser, _TIME_FLAGS)


def complete_jprofile(shell: Any, event: Any) -> list[str]:
    """The same after `%jprofile`."""
    return _complete(shell, event, jprofile_parser, _PROFILE_FLAGS)


def _complete(shell: Any, event: Any, parser: MagicArgumentParser, flags: Sequence[str]) -> list[str]:
    typed = event.text_until_cursor[len(event.command) :]
    if value := re.search(r"(--[\w-]+)\s+\S*$", typed):  # the cursor stands in an option's value
        if value[1] in ("--html", "--perfetto"):
            return sorted(glob(event.symbol + "*"))
        if value[1] not in flags:
            return []
    _, call = split_options(typed, flags)
    if "(" in call or "." in call:
        raise TryNext
    options = sorted(set(re.findall(r"--[\w-]+", parser.format_help())))
    return options if event.command.startswith("%%") else callables(shell) + options


def _options(parser: MagicArgumentParser, magic: str, words: list[str]) -> argparse.Namespace:
    try:
        return parser.parse_args(words)
    except UsageError as error:
        # IPython only prints a UsageError: who runs notebooks unattended would see a cell that passed.
        raise ExpressionError(f"%{magic} {' '.join(words)}: {error}.\n  Hint: %{magic}? shows its options.") from None


def _given(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(options, name)) is not None}


def _against_peaks(found: Profile) -> Profile:
    """With the time wasted; what was recorded is displayed also where the machine's peaks can't be measured."""
    from explorer.measure.peaks import peaks

    try:
        return found.with_peaks(peaks())
    except BaseException:
        display(found)
        raise


def _written(found: _Measured, name: str, file: Path | None, write: Callable[[Path], object]) -> _Measured:
    try:
        if file is not None:
            write(file)
    except ExplorerError:
        display(found)
        raise
    except OSError as error:
        display(found)
        raise ExpressionError(f"the {name} was made, but could not be written: {error}.") from error
    return found
