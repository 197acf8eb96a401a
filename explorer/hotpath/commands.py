"""`python -m explorer hot script.py`: a script whose hot functions run compiled, and what became of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from explorer.capture.script import read_script, run_script
from explorer.files.reports import add_format, present, script_output

_WIDE = 120  # characters, where no terminal says how many there are
_MODES = ("default", "reduce-overhead", "max-autotune")


def add_hot(verbs: Any) -> None:
    """Add the verb that runs a script with hot paths on."""
    about = (
        "Run a script as Python would; functions that are called often run compiled, where that is proven safe and "
        "measured faster. At the end, on stderr: which, what it brought, and why others stay as they are."
    )
    verb = verbs.add_parser("hot", help="run a script, its hot functions compiled", description=about)
    verb.add_argument("--threshold", metavar="N", type=_count, help="compile from so many calls on; 10 otherwise")
    verb.add_argument("--mode", choices=_MODES, default="default", help="how much is done for a function")
    verb.add_argument("--wait", action="store_true", help="let the program wait for compiles")
    verb.add_argument("--save", metavar="FILE", type=_file(), help="also save what was seen, as JSON")
    verb.add_argument("--html", metavar="FILE", type=_file(".html"), help="also write it as one page")
    add_format(verb)
    add_script(verb)
    verb.set_defaults(run=_hot)


def add_script(verb: Any) -> None:
    """Add a script and its arguments to a verb."""
    verb.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module, as in python -m")
    verb.add_argument("script", metavar="SCRIPT", help="what to run")
    verb.add_argument("arguments", metavar="ARG", nargs=argparse.REMAINDER, help="what to pass to it")


def _hot(given: argparse.Namespace) -> int:
    from explorer.hotpath.auto import auto_compile
    from explorer.hotpath.environment import threshold

    text = None if given.module else read_script(given.script)
    hot = auto_compile(threshold=given.threshold or threshold(), mode=given.mode, background=not given.wait).start()
    try:
        with script_output(given):
            status = run_script(given.script, given.arguments, text, hot.compile_script)
    finally:
        hot.stop()
        report = hot.report()
        if given.save:
            _write(lambda: report.save(given.save))
        if given.html:
            _write(lambda: report.to_html(given.html))
        files = [path for path in (given.save, given.html) if path and path.is_file()]
        _write(lambda: present(given, "hot", report, lambda: _show(report), files, sys.stderr))
    return status


def _write(write: Callable[[], object]) -> None:
    """Do something with the report, of which a fault must not cost the script's end."""
    try:
        write()
    except Exception as error:
        with suppress(OSError, ValueError):
            print(f"explorer: the report failed: {type(error).__name__}: {error}", file=sys.stderr)


def _show(report: Any) -> None:
    from rich.console import Console

    Console(file=sys.stderr, width=None if sys.stderr.isatty() else _WIDE, soft_wrap=True).print(report)


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of calls from 1 on")
    return int(text)


def _file(ending: str = "") -> Callable[[str], Path]:
    def path_of(name: str) -> Path:
        path = Path(name).expanduser().absolute()  # a script may change the working directory
        if path.is_dir() or not path.parent.is_dir():
            raise argparse.ArgumentTypeError(f"{name!r} can't be written: it is a folder, or in none that is there")
        if not name.endswith(ending):
            raise argparse.ArgumentTypeError(f"{name!r} does not end in {ending}")
        return path

    return path_of
