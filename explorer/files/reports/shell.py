"""How a verb of the shell is answered: `--format text` for a person, `--format json` for a program."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from explorer.files.reports.report import KINDS, schema_name, schema_text, to_json

_JSON = "json"
# By report, what makes its body of a value: loaded where one is wanted, for they know all results there are.
_BODIES = {
    "explore": "programs:capture_body",
    "diff": "programs:diff_body",
    "targets": "programs:targets_body",
    "recompiles": "ledgers:ledger_body",
    "processes": "ledgers:processes_body",
    "padding": "measurements:padding_body",
    "time": "measurements:timing_body",
    "profile": "measurements:profile_body",
    "hot": "measurements:hot_body",
    "timeline": "measurements:timeline_body",
    "record": "goldens:record_body",
    "bisect": "goldens:bisect_body",
}


def add_format(verb: Any, *others: str) -> None:
    """Add `--format` to a verb: text, JSON, and what else it has."""
    verb.add_argument(
        "--format", choices=("text", _JSON, *others), default="text",
        help="text if not given; json is for programs: see `schema`",
    )  # fmt: skip


def is_json(given: argparse.Namespace) -> bool:
    """Whether a program reads the answer."""
    return getattr(given, "format", "") == _JSON


def present(
    given: argparse.Namespace,
    kind: str,
    value: object,
    show: Callable[[], object],
    files: Sequence[Path] = (),
    to: TextIO | None = None,
    **besides: object,
) -> None:
    """Print the answer in the format that was chosen.

    Args:
        given: The command line.
        kind: Of the report.
        value: What it is of.
        show: Prints the same for a person.
        files: What was written: a line for each, or the report's `files`.
        to: Where those lines go; standard output if not given.
        besides: Fields of the report, in place of those that the value gives.
    """
    sizes = [(path, path.stat().st_size) for path in files]
    if is_json(given):
        written = [{"path": str(path), "bytes": size} for path, size in sizes]
        print(to_json(kind, {**_body(kind, value), **besides, "files": written}))
        return
    show()
    for path, size in sizes:
        print(f"{path}: {size:,} bytes", file=to)


def _body(kind: str, value: object) -> Mapping[str, Any]:
    module, _, name = _BODIES[kind].partition(":")
    return getattr(import_module(f"explorer.files.reports.{module}"), name)(value)


@contextmanager
def script_output(given: argparse.Namespace) -> Generator[None]:
    """What a script prints stays what it is; where a program reads the answer, it goes to standard error instead."""
    with redirect_stdout(sys.stderr) if is_json(given) else nullcontext():
        yield


def add_schema(verbs: Any) -> None:
    """Add `schema` to the command line."""
    about = "Print the JSON Schema of a verb's `--format json`; without one, the names of all."
    verb = verbs.add_parser("schema", help="say what --format json gives", description=about)
    verb.add_argument("kind", metavar="REPORT", nargs="?", choices=KINDS, help=", ".join(KINDS))
    verb.set_defaults(run=_schema)


def _schema(given: argparse.Namespace) -> int:
    print(schema_text(given.kind).rstrip() if given.kind else "\n".join(map(schema_name, KINDS)))
    return 0
