"""`%jtime` and `%jprofile`: thin adapters over `explorer.time` and `explorer.profile`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from IPython.core.error import TryNext, UsageError
from IPython.core.magic import line_cell_magic, magics_class, needs_local_scope, no_var_expand
from IPython.core.magic_arguments import MagicArgumentParser, argument, kwds, magic_arguments
from IPython.display import display  # pyright: ignore[reportUnknownVariableType] - IPython annotates it in part

import explorer as ex  # which loads a room where it is first used
from explorer.errors import ExplorerError, ExpressionError
from explorer.notebook.calls import split_options
from explorer.notebook.magics import callables, writable_file
from explorer.notebook.shell import CallMagics, calling_frame, ended_in_users_code

if TYPE_CHECKING:  # `%load_ext explorer` loads nothing of what a magic gives
    from explorer.model.results.profile import Profile
    from explorer.model.results.timing import Timing

_Measured = TypeVar("_Measured", "Timing", "Profile")
_TIME_FLAGS = ("--no-eager",)
_PROFILE_FLAGS = ("--roofline",)


class _MeasuringCallee(Generic[_Measured]):
    """Stands in for the callee of the user's call: gets the function and its arguments, and measures them.

    Args:
        measure: `explorer.time` or `explorer.profile`.
        options: Of `measure`, by name.
        assigned: The user wants the value too: `y = f(x)`. Then the function is called once more.
    """

    def __init__(self, measure: Callable[..., _Measured], options: Mapping[str, Any], assigned: bool) -> None:
        self.measure, self.options, self.assigned = measure, options, assigned
        self.result: _Measured | None = None

    def __call__(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # IPython leaves such a frame out of a traceback
        self.result = self.measure(ex.Call(function, *args, **kwargs), **self.options)
        return function(*args, **kwargs) if self.assigned else None


@magics_class
class MeasureMagics(CallMagics):
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
        frame = calling_frame(self.shell)
        try:
            words, rest = split_options(line, _TIME_FLAGS)
            options = _options(jtime_parser, "jtime", words)
            callee = partial(
                _MeasuringCallee[ex.Timing], ex.time, {"eager": not options.no_eager, **_given(options, "seconds")}
            )
            timing = self.result_of("jtime", callee, line, rest, cell, frame, local_ns)
            return _written(timing, "timing", options.html, lambda file: timing.chart().to_html(file))
        except ExplorerError as error:
            raise ended_in_users_code(self.shell, error, frame)  # noqa: B904 - the same error, its cause is kept

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
        some times while XLA's own profiler does. `profile = %jprofile f(x)` keeps what was recorded.

        As `%%jprofile` on top of a cell, the cell runs as ever up to its last statement, which is the call. Of
        `y = f(x)` there, `y` has its value afterwards.
        """
        __tracebackhide__ = True
        frame = calling_frame(self.shell)
        try:
            words, rest = split_options(line, _PROFILE_FLAGS)
            options = _options(jprofile_parser, "jprofile", words)
            callee = partial(_MeasuringCallee[ex.Profile], ex.profile, _given(options, "runs", "seconds"))
            profile = self.result_of("jprofile", callee, line, rest, cell, frame, local_ns)
            if options.roofline:
                profile = _against_peaks(profile)
            _written(profile, "profile", options.html, profile.to_html)
            return _written(profile, "profile", options.perfetto, profile.to_perfetto)
        except ExplorerError as error:
            raise ended_in_users_code(self.shell, error, frame)  # noqa: B904 - the same error, its cause is kept


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


def _against_peaks(result: Profile) -> Profile:
    """With the time wasted; what was recorded is displayed also where the machine's peaks can't be measured."""
    try:
        return result.with_peaks(ex.peaks())
    except BaseException:
        display(result)
        raise


def _written(result: _Measured, name: str, file: Path | None, write: Callable[[Path], object]) -> _Measured:
    try:
        if file is not None:
            write(file)
    except ExplorerError:
        display(result)
        raise
    except OSError as error:
        display(result)
        raise ExpressionError(f"the {name} was made, but could not be written: {error}.") from error
    return result
