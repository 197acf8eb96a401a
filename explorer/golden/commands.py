"""`python -m explorer record`, `check` and `bisect`: a guard for CI."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import explorer as ex  # loads each module at first use: the other verbs start without JAX
from explorer.analysis.golden import compared
from explorer.capture.command_target import add_target, arguments_of, function_of
from explorer.errors import OptionError
from explorer.files.disk import project_settings
from explorer.files.findings import check_json, check_markdown, check_sarif
from explorer.files.reports import add_format, add_output, present
from explorer.golden.bisect import bisect_golden
from explorer.model.golden import CheckResult, Golden
from explorer.model.text import brief

_NOT_CHECKED = 2


def add_record(verbs: Any) -> None:
    about = "Compile a function, and write facts about the result as a small text file, for `check` to compare with."
    verb = verbs.add_parser("record", help="record facts about a compiled function", description=about)
    add_target(verb)
    verb.add_argument(
        "--target", dest="hardware", metavar="HARDWARE", action="append", default=[],
        help="compile for h100, v5e:4x4, …; may be given several times; `cpu` or `gpu` is this machine",
    )  # fmt: skip
    add_output(verb, "FUNCTION.golden if not given")
    add_format(verb)
    verb.set_defaults(run=_record)


def add_check(verbs: Any) -> None:
    about = (
        "Compile each function that a golden file records, and compare. Exit status: 1 if something grew beyond its "
        "tolerance, 2 if it could not be compared."
    )
    verb = verbs.add_parser("check", help="compare functions with their records", description=about)
    verb.add_argument("files", metavar="FILE", nargs="*", type=Path, help="the project's if none is given")
    verb.add_argument("--update", action="store_true", help="rewrite golden files that differ")
    add_format(verb, "sarif", "markdown")
    verb.set_defaults(run=_check, error_status=_NOT_CHECKED)


def add_bisect(verbs: Any) -> None:
    about = "Find the first commit, or release of JAX, at which the check of a golden file fails."
    verb = verbs.add_parser("bisect", help="find what made a check fail", description=about)
    verb.add_argument("file", metavar="FILE", type=Path, help="the golden file")
    verb.add_argument(
        "--between", nargs=2, metavar=("A", "B"), required=True,
        help="two commits, the older one first; or two releases of JAX, as 0.10.2 0.12.0. A passes, and B fails",
    )  # fmt: skip
    add_format(verb)
    verb.set_defaults(run=_bisect)


def _bisect(given: argparse.Namespace) -> int:
    bisection = bisect_golden(given.file, *given.between)
    present(given, "bisect", bisection, lambda: print(bisection.to_text()))
    return 0


def _record(given: argparse.Namespace) -> int:
    golden = _recorded(given.target, given.arg, given.hardware)
    path = given.output or Path(f"{given.target.rpartition(':')[2]}.golden")
    golden.save(path)
    present(given, "record", golden, lambda: None, [path])
    return 0


def _recorded(function: str, arguments: list[str], targets: list[str]) -> Golden:
    # Output of the user's code is no part of the report.
    with contextlib.redirect_stdout(sys.stderr):
        called, module = function_of(function)
        args, kwargs = arguments_of(called, arguments, vars(module))
        golden = ex.record(ex.Call(called, *args, **kwargs), targets=targets)
    return replace(golden, function=function, arguments=tuple(arguments))


def _check(given: argparse.Namespace) -> int:
    files = given.files or golden_files(Path.cwd())
    if not files:
        raise OptionError(
            "there is no golden file here.\n  Hint: `python -m explorer record module:function` writes one."
        )
    results = [_compared(path) for path in files]
    formats = {"json": check_json, "sarif": check_sarif, "markdown": check_markdown}
    to_text = formats.get(given.format, lambda *results: "\n\n".join(result.to_text() for result in results))
    print(to_text(*results))
    if not given.update:
        return 0 if all(result.passed for result in results) else 1
    for path, result in zip(files, results, strict=True):
        if result.now != Golden.load(path):
            result.now.save(path)
            print(f"{path}: updated", file=sys.stderr)
    return 0


def _compared(path: Path) -> CheckResult:
    before = Golden.load(path)
    if not before.function.rpartition(":")[0]:
        raise OptionError(f"{path} was recorded in a test: run that test with --update-golden to update it.")
    now = _recorded(before.function, list(before.arguments), [program.target for program in before.programs])
    return compared(before, now, str(path))


_HIDDEN = (".", "node_modules")  # environments and caches hold other people's files


def golden_files(folder: Path) -> list[Path]:
    """Return the golden files of the project that a folder is in, sorted.

    `files = ["tests/golden/*.golden"]` under `[tool.explorer.check]` in pyproject.toml names them, relative to its
    folder. By default they are all `*.golden` in and below that folder.

    Raises:
        OptionError: pyproject.toml can't be read, or its `files` is no list of patterns.
    """
    for above in (folder, *folder.parents):
        path = above / "pyproject.toml"
        if path.is_file():
            return _sorted(above, _patterns(path))
    return _sorted(folder, None)


def _sorted(folder: Path, patterns: Sequence[str] | None) -> list[Path]:
    if patterns is not None:
        try:
            return sorted({path for pattern in patterns for path in folder.glob(pattern)})
        except (ValueError, NotImplementedError, RecursionError, OSError) as error:  # an empty pattern, an absolute one
            raise OptionError(f"a path of [tool.explorer.check] is no pattern: {error!s:.200}.") from None
    paths = ((path, path.relative_to(folder).parts) for path in folder.rglob("*.golden"))
    return sorted(path for path, parts in paths if not any(part.startswith(_HIDDEN) for part in parts))


def _patterns(path: Path) -> Sequence[str] | None:
    table = project_settings(path, "check")
    files: object = cast(dict[str, Any], table).get("files") if isinstance(table, dict) else None
    if files is None:
        return None
    if not isinstance(files, list) or not all(isinstance(each, str) for each in cast(list[object], files)):
        raise OptionError(
            f"files is {brief(cast(object, files))} in [tool.explorer.check] of {path}; "
            'allowed is a list of paths: ["tests/*.golden"].'
        )
    return cast(list[str], files)
