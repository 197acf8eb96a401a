"""`python -m explorer VERB …`: captures, ledgers, pitfalls, timings and profiles in the terminal."""

from __future__ import annotations

import argparse
import inspect
import os
import re
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from types import FrameType
from typing import Any

import explorer as ex
from explorer import errors
from explorer.aot.commands import add_padding
from explorer.assistants.tools import add_mcp
from explorer.capture.commands import add_diff, add_explore, add_open
from explorer.errors import UnknownNameError
from explorer.files.reports import add_schema, is_json, report_json
from explorer.golden.commands import add_bisect, add_check, add_record
from explorer.hardware.table import add_targets
from explorer.hotpath.commands import add_hot, add_trace, add_visualize
from explorer.ledger.commands import add_ledger, add_recompiles
from explorer.measure.commands import add_profile, add_time
from explorer.model.text import did_you_mean
from explorer.pitfalls.commands import add_lint


def add_explain(verbs: Any) -> None:
    about = "Print what there is to know of an error, a rule or a public name: meaning, what to do, an example."
    verb = verbs.add_parser("explain", help="say what an error, a rule or a name is", description=about)
    verb.add_argument("name", metavar="NAME", help="InputShapeError, EX012, unrolled-loop, explore, Capture.fate")
    verb.set_defaults(run=_explain)


def _explain(given: argparse.Namespace) -> int:
    print(explain(given.name))
    return 0


def explain(name: str) -> str:
    """Return the documentation of an error, a rule, a public name, or a method or property of a public type.

    Raises:
        UnknownNameError: Nothing has this name.

    Example:
        >>> print(explain("OptionError").splitlines()[2])
        An option of compile(), lint(), time(), sweep(), watch(), … is out of range, or one in pyproject.toml.
    """
    name = name.removeprefix("explorer.")
    public, _, member = re.sub(r"^(types|errors|compat\.tripy)\.", "", name).partition(".")
    if text := _documentation(public, member, ("explorer", "explorer.types", "explorer.errors")):
        return text
    from explorer.pitfalls.rule import all_rules, explain_rule, rule_named  # the verbs start without JAX

    if rule := rule_named(name):
        return explain_rule(rule)
    if text := _documentation(public, member, ("explorer.compat.tripy",)):
        return text
    names = (*dir(ex), *dir(ex.types), *errors.__all__)
    near = did_you_mean(name, (*names, *(name for rule in all_rules() for name in (rule.code, rule.name))))
    raise UnknownNameError(f"there is no error, rule or public name {name!r}.{near}")


def _documentation(public: str, member: str, modules: Sequence[str]) -> str:
    for module in map(import_module, modules):
        if public in module.__all__:
            value = getattr(module, public)
            documented = getattr(value, member, None) if member else value
            if documented is not None and (text := inspect.getdoc(documented)):
                name = ".".join(filter(None, (module.__name__, public, member)))
                return f"{name}{_signature(documented)}\n\n{text}"
    return ""


def _signature(value: Any) -> str:
    if not callable(value) or value in (getattr(errors, name) for name in errors.__all__):
        return ""
    return str(inspect.signature(value)).replace("'", "")


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
