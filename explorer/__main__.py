"""`python -m explorer VERB …`: captures, ledgers, pitfalls, timings and profiles in the terminal."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

import explorer as ex
from explorer.aot.commands import add_padding
from explorer.assistants.tools import add_mcp
from explorer.capture.commands import add_diff, add_explore, add_open
from explorer.explain import add_explain
from explorer.files.reports import add_schema, is_json, report_json
from explorer.golden.commands import add_bisect, add_check, add_record
from explorer.hardware.table import add_targets
from explorer.hotpath.commands import add_hot, add_trace, add_visualize
from explorer.ledger.commands import add_ledger, add_recompiles
from explorer.measure.commands import add_profile, add_time
from explorer.pitfalls.commands import add_lint

_VERBS = (
    *(add_explore, add_open, add_diff, add_recompiles, add_ledger, add_lint, add_padding, add_time, add_profile),
    *(add_hot, add_trace, add_visualize, add_targets, add_record, add_check, add_bisect, add_schema, add_mcp),
    add_explain,
)


def command_line() -> argparse.ArgumentParser:
    """Return the parser of the command line, with every verb."""
    parser = argparse.ArgumentParser(prog="python -m explorer", description=ex.__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for add in _VERBS:
        add(verbs)
    return parser


_SIGNALED = 128  # exit status of a program ended by a signal, minus the signal's number


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the verb of the arguments, by default the command line's, and return the exit status."""
    given = command_line().parse_args(arguments)
    try:
        return given.run(given)
    except (ex.ExplorerError, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        if isinstance(error, ex.ExplorerError) and sys.stderr.isatty():  # not in a log
            print(f"  What it means: python -m explorer explain {type(error).__name__}", file=sys.stderr)
        if is_json(given):
            print(report_json("error", error))
        # `check` and `padding` exit with 1 for a negative answer, so their errors are 2.
        return getattr(given, "error_status", 1)
    except KeyboardInterrupt as interrupt:  # without a traceback: the user knows
        notes: list[str] = getattr(interrupt, "__notes__", [])
        print(notes[0].partition(";")[0] if notes else "interrupted", file=sys.stderr)
        return _SIGNALED + signal.SIGINT


def _end_on_termination() -> None:
    """Make SIGTERM raise SystemExit, so that results so far are written and temporary files removed.

    A second SIGTERM ends the process at once, and so does any in a process that the user's code forked.
    """
    if signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        return  # ignored, as under nohup
    owner = os.getpid()

    def end(number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        if os.getpid() != owner:
            os.kill(os.getpid(), number)
        sys.exit(_SIGNALED + number)

    signal.signal(signal.SIGTERM, end)


if __name__ == "__main__":
    _end_on_termination()
    sys.exit(main())
