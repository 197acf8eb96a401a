"""`%recompiles` and `%%recompiles`: thin adapters over `explorer.watch`."""

from __future__ import annotations

import argparse
import re
import shlex
from glob import glob
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

from IPython.core.error import UsageError
from IPython.core.magic import line_cell_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import MagicArgumentParser, argument, magic_arguments
from IPython.display import display  # pyright: ignore[reportUnknownVariableType] - IPython annotates it in part

from explorer.errors import ExplorerError, ExpressionError
from explorer.notebook.magics import writable_file
from explorer.notebook.place import calling_frame, ended_in_users_code, parse_cell, run_cell
from explorer.notebook.shell import ShellMagics

if TYPE_CHECKING:  # `%load_ext explorer` loads nothing of what a magic gives
    from explorer.ledger.watch import Watch
    from explorer.model.events.ledger import Ledger

_ON = "What compiles is watched from here on: run cells, and %recompiles shows them. %recompiles off ends it."
_OFF = "Nothing was watched: %recompiles on starts it."
_VALUE = re.compile(r"--[\w-]+\s+\S*$")  # the cursor stands in an option's value, which is a file


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
            options = _options(line)
            if cell is None:
                return _written(self._session(options.what), options)
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
                print(_OFF)
            return stop_session()
        if watch is None:
            watch = self._started = start_session()
            print(_ON)
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
        return _written(ledger.only(options.what) if options.what else ledger, options)

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

    if _VALUE.search(event.text_until_cursor[len(event.command) :]):
        return sorted(glob(event.symbol + "*"))
    options = sorted(set(re.findall(r"--[\w-]+", recompiles_parser.format_help())))
    if event.command.startswith("%%"):
        return options
    watch = session()
    names = {event.function for event in watch.events} if watch is not None else set[str]()
    return ["off", "on", *sorted(names), *options]


def _options(line: str) -> argparse.Namespace:
    try:
        return recompiles_parser.parse_args(shlex.split(line))
    except (UsageError, ValueError) as error:
        # IPython only prints a UsageError: who runs notebooks unattended would see a cell that passed.
        hint = "Hint: %recompiles? shows its options."
        raise ExpressionError(f"%recompiles {line}: {error}.\n  {hint}") from None


def _written(ledger: Ledger | None, options: argparse.Namespace) -> Ledger | None:
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
