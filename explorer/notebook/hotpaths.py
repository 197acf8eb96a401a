"""`%%hotpaths`: a thin adapter over `explorer.auto_compile`."""

from __future__ import annotations

import argparse
import re
import shlex
from glob import glob
from typing import TYPE_CHECKING, Any, cast

from IPython.core.error import UsageError
from IPython.core.magic import cell_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import MagicArgumentParser, argument, magic_arguments
from IPython.display import display  # pyright: ignore[reportUnknownVariableType] - IPython annotates it in part

import explorer as ex  # which loads a room where it is first used
from explorer.errors import ExplorerError, ExpressionError
from explorer.notebook.magics import writable_file
from explorer.notebook.place import calling_frame, ended_in_users_code, parse_cell, run_cell
from explorer.notebook.shell import ShellMagics
from explorer.view.session import in_kernel

if TYPE_CHECKING:  # `%load_ext explorer` loads nothing of what a magic gives
    from explorer.hotpath.auto import AutoCompile

_FILES = re.compile(r"--(?:save|html)\s+\S*$")  # the cursor stands in an option's value, which is a file


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
            options = _options(line)
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
    if _FILES.search(event.text_until_cursor[len(event.command) :]):
        return sorted(glob(event.symbol + "*"))
    return sorted(set(re.findall(r"--[\w-]+", hotpaths_parser.format_help())))


def _options(line: str) -> argparse.Namespace:
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
