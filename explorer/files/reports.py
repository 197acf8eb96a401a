"""Reports of the shell: `--format text` for people, `--format json` for programs.

A JSON report names its schema, `"schema": "explorer/lint/1"`, as printed by `python -m explorer schema lint`. New
fields keep the version, so readers must skip unknown fields. Renaming, removing or redefining a field raises it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from explorer.errors import UnknownNameError
from explorer.files.columns import Column, object_schema, plain, record

_JSON = "json"
_VERSIONS = {
    **{"explore": 1, "diff": 1, "recompiles": 1, "processes": 1, "lint": 1, "padding": 1, "time": 1, "profile": 1},
    **{"hot": 1, "timeline": 1, "targets": 1, "record": 1, "check": 1, "bisect": 1, "error": 1},
}
KINDS = tuple(_VERSIONS)
_FILES = Column("files", iter, [(Column("path", str), Column("bytes", int, int))], "Written files.")


def schema_name(kind: str) -> str:
    """Return the schema's name, such as `explorer/lint/1`; UnknownNameError if there is no such report."""
    if kind not in _VERSIONS:
        raise UnknownNameError(f"there is no report {kind!r}; there are: {', '.join(KINDS)}.")
    return f"explorer/{kind}/{_VERSIONS[kind]}"


def _report(kind: str) -> Any:
    """Return the `Report` that describes a kind of report; imported late, because that imports all result types."""
    return import_module("explorer.files.report_columns").REPORTS[kind]


def schema_text(kind: str) -> str:
    """Return the JSON Schema of a report as text; UnknownNameError if there is no such report."""
    name, report = schema_name(kind), _report(kind)
    schema = object_schema((*report.columns, *[_FILES] * report.has_files))
    schema["properties"] = {"schema": {"const": name}, **schema["properties"]}
    schema["required"] = ["schema", *schema["required"]]
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": name, "description": report.about}
    return json.dumps({**head, **schema, "additionalProperties": True}, indent=1)


def report_json(kind: str, value: object, **fields: object) -> str:
    """Return a report as JSON text.

    Args:
        kind: One of `KINDS`.
        value: Object of the report.
        fields: Further fields, which replace those of `value`.

    Example:
        >>> print(report_json("error", ValueError("--runs is 0")))
        {
         "schema": "explorer/error/1",
         "error": "ValueError",
         "message": "--runs is 0"
        }
    """
    # Only ASCII: file names may hold lone surrogates.
    body = {"schema": schema_name(kind), **record(value, _report(kind).columns), **plain(fields)}
    return json.dumps(body, indent=1, allow_nan=False)


def add_format(verb: Any, *others: str) -> None:
    """Add the option `--format` to a verb: text, json, and `others`."""
    verb.add_argument(
        "--format", choices=("text", _JSON, *others), default="text",
        help="text if not given; json is for programs: see `schema`",
    )  # fmt: skip


def is_json(given: argparse.Namespace) -> bool:
    """Return True if the command line has `--format json`."""
    return getattr(given, "format", "") == _JSON


def present(
    given: argparse.Namespace,
    kind: str,
    value: object,
    show: Callable[[], object],
    files: Sequence[Path] = (),
    to: TextIO | None = None,
    **fields: object,
) -> None:
    """Print a result in the chosen format.

    Args:
        given: The command line.
        kind: Kind of the report.
        value: Object of the report.
        show: Prints the text for a person.
        files: Files written: printed as lines, or listed as the report's `files`.
        to: Stream for these lines; standard output if None.
        fields: Further fields, which replace those of `value`.
    """
    sizes = [(path, path.stat().st_size) for path in files]
    if is_json(given):
        written = [{"path": str(path), "bytes": size} for path, size in sizes]
        print(report_json(kind, value, **fields, files=written))
        return
    show()
    for path, size in sizes:
        print(f"{path}: {size:,} bytes", file=to)


@contextmanager
def script_output(given: argparse.Namespace) -> Generator[None]:
    """Redirect standard output to standard error within the `with` block if the report is JSON."""
    with redirect_stdout(sys.stderr) if is_json(given) else nullcontext():
        yield


def add_schema(verbs: Any) -> None:
    """Add the verb `schema` to the command line."""
    about = "Print the JSON Schema of a verb's `--format json`; without one, the names of all."
    verb = verbs.add_parser("schema", help="print the schema of --format json", description=about)
    verb.add_argument("kind", metavar="REPORT", nargs="?", choices=KINDS, help=", ".join(KINDS))
    verb.set_defaults(run=_schema)


def _schema(given: argparse.Namespace) -> int:
    print(schema_text(given.kind) if given.kind else "\n".join(map(schema_name, KINDS)))
    return 0


def add_output(verb: Any, about: str, endings: Collection[str] = (), *, several: bool = False) -> None:
    """Add the option `-o FILE`, stored as `output`, to a verb.

    Args:
        verb: The verb's `argparse.ArgumentParser`.
        about: Help text.
        endings: Allowed file extensions, such as `.html`; empty allows all.
        several: Whether the option may be repeated; `output` is then a list, empty by default.
    """
    given: dict[str, Any] = {"action": "append", "default": []} if several else {}
    verb.add_argument("-o", "--output", metavar="FILE", type=writable(endings), help=about, **given)


def writable(endings: Collection[str] = ()) -> Callable[[str], Path]:
    """Return an argparse type that makes a file name an absolute path.

    It refuses a folder, a missing parent folder, and an ending that is not among `endings` if there are any.
    """

    def path_of(name: str) -> Path:
        path = Path(name).expanduser().absolute()  # a script may change the working directory
        if path.is_dir():
            raise argparse.ArgumentTypeError(f"{name!r} is a folder; name a file in it")
        if not path.parent.is_dir():
            raise argparse.ArgumentTypeError(f"there is no folder {str(path.parent)!r} to write {name!r} to")
        if endings and path.suffix not in endings:
            ending = " or ".join([", ".join([*endings][:-1])] * (len(endings) > 1) + [*endings][-1:])
            raise argparse.ArgumentTypeError(f"{name!r} doesn't end in {ending}")
        return path

    return path_of


def positive(text: str) -> float:
    """Return the finite number above 0 in a command-line argument; ArgumentTypeError if it holds none."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return value
