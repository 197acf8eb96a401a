"""How a verb of the shell is answered: `--format text` for a person, `--format json` for a program."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import Any, TextIO

from explorer.files.reports.report import KINDS, schema_name, schema_text, to_json

_JSON = "json"


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
    body: Callable[[], Mapping[str, Any]],
    show: Callable[[], object],
    files: Sequence[Path] = (),
    to: TextIO | None = None,
) -> None:
    """Print the answer in the format that was chosen.

    Args:
        given: The command line.
        kind: Of the report.
        body: Makes it.
        show: Prints the same for a person.
        files: What was written: a line for each, or the report's `files`.
        to: Where those lines go; standard output if not given.
    """
    sizes = [(path, path.stat().st_size) for path in files]
    if is_json(given):
        print(to_json(kind, {**body(), "files": [{"path": str(path), "bytes": size} for path, size in sizes]}))
        return
    show()
    for path, size in sizes:
        print(f"{path}: {size:,} bytes", file=to)


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
