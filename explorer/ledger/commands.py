"""`python -m explorer recompiles script.py` and `python -m explorer ledger FILE…`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from explorer.capture.script import add_script, read_script, run_script, show
from explorer.files.reports import add_format, add_output, present, script_output, writable
from explorer.model.events.ledger import Ledger
from explorer.model.events.process_ledger import ProcessLedger


def add_recompiles(verbs: Any) -> None:
    """Add `recompiles` to the command line."""
    about = "Run a script as Python would, and show what it compiled, why again, what it cost, and what would stop it."
    verb = verbs.add_parser("recompiles", help="run a script, show what it compiled and why", description=about)
    verb.add_argument(
        "--save", metavar="FILE", type=writable(), help="also save the ledger, an event per line, as JSON"
    )
    verb.add_argument("--html", metavar="FILE", type=writable(), help="also write the view as one self-contained page")
    add_format(verb)
    add_script(verb)
    verb.set_defaults(run=_recompiles)


def add_ledger(verbs: Any) -> None:
    """Add `ledger` to the command line."""
    about = "Show a saved ledger, or several processes' ledgers as one."
    verb = verbs.add_parser("ledger", help="show a saved ledger, or several as one", description=about)
    verb.add_argument(
        "paths",
        metavar="FILE",
        nargs="+",
        help="file written by ledger.save, --save or Ledger(spill=…), or a folder of them",
    )
    verb.add_argument(
        "--by-process",
        action="store_true",
        help="show each program once, the processes that compiled it, and those that compiled a different one; for "
        "thousands of files, one per process",
    )
    verb.add_argument("--function", metavar="NAME", help="show this function alone")
    add_output(verb, "write it there instead: as a page (.html), or else as a ledger", several=True)
    add_format(verb)
    verb.set_defaults(run=_ledger)


def _recompiles(given: argparse.Namespace) -> int:
    from explorer.ledger.watch import watch

    text = None if given.module else read_script(given.script)
    ledger = watch()
    try:
        with script_output(given):
            status = run_script(given.script, given.arguments, text)
    # Also for a script that fails: what it compiled until then is reported.
    finally:
        ledger.stop()
        files = [path for path in (given.save, given.html) if path]
        if given.save:
            ledger.save(given.save)
        if given.html:
            ledger.to_html(given.html)
        # A person's report goes where the script's own output doesn't, which stays what it is.
        present(given, "recompiles", ledger, lambda: show(ledger, sys.stderr), files, sys.stderr)
    return status


def _ledger(given: argparse.Namespace) -> int:
    if given.by_process or any(Path(path).is_dir() for path in given.paths):
        from explorer.ledger.processes import merge_ledgers

        return _write(given, merge_ledgers(given.paths))
    ledgers = [Ledger.load(path) for path in given.paths]
    ledger = ledgers[0] if len(ledgers) == 1 else Ledger.merge(*ledgers, names=_names(given.paths))
    if given.function:
        ledger = ledger.only(given.function)
    return _write(given, ledger)


def _write(given: argparse.Namespace, ledger: Ledger | ProcessLedger) -> int:
    for path in given.output:
        (ledger.to_html if path.suffix == ".html" else ledger.save)(path)
    print_it = (lambda: None) if given.output else (lambda: show(ledger, sys.stdout))
    present(given, "recompiles" if isinstance(ledger, Ledger) else "processes", ledger, print_it, given.output)
    return 0


def _names(paths: Sequence[str]) -> list[str] | None:
    """Return the file names without suffix, to name processes; None if two are equal."""
    names = [Path(path).stem for path in paths]
    return names if len(set(names)) == len(names) else None
