"""`python -m explorer record`, `check` and `bisect`: a guard for CI.

`bisect` checks each candidate in another process: a commit in a git worktree, a release of JAX from a folder of
Explorer's own, which pip fills and the user's environment never sees.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import explorer as ex  # loads each module at first use: the other verbs start without JAX
from explorer.analysis.golden import compared
from explorer.capture.command_target import add_target, arguments_of, function_of
from explorer.errors import MissingPackageError, OptionError
from explorer.files.disk import cache_folder, project_settings
from explorer.files.findings import check_json, check_markdown, check_sarif
from explorer.files.reports import add_format, add_output, present
from explorer.hardware.installed import install_into
from explorer.model.golden import FAILS, PASSES, UNKNOWN, Bisection, CheckResult, Golden, Verdict
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


_RELEASE = re.compile(r"\d+(\.\d+)+")
_PATIENCE = 3600.0  # seconds for one candidate: its packages, and a compile


def bisect(candidates: Sequence[str], check: Callable[[str], Verdict]) -> Bisection:
    """Return the first candidate that fails, between the first one, which passes, and the last one, which fails.

    Candidates that can't be checked are skipped, and named if they are at the border.

    Raises:
        OptionError: The first doesn't pass, or the last doesn't fail.
    """
    tried: list[Verdict] = []

    def verdict(at: int) -> Verdict:
        tried.append(check(candidates[at]))
        return tried[-1]

    low, high = 0, len(candidates) - 1
    first, last = verdict(low), verdict(high)
    for end, wanted in ((first, PASSES), (last, FAILS)):
        if end.outcome != wanted:
            raise OptionError(
                f"{end.candidate} {end.outcome}; the search needs an A that passes and a B that fails.\n{end.text}"
            )
    unknown: set[int] = set()
    while open_ := [at for at in range(low + 1, high) if at not in unknown]:
        # The middle itself may be one that can't be checked.
        at = _nearest(open_, (low + high) / 2)
        middle = verdict(at)
        if middle.outcome == PASSES:
            low = at
        elif middle.outcome == FAILS:
            high, last = at, middle
        else:
            unknown.add(at)
    between = [candidates[at] for at in range(low + 1, high)]
    return Bisection(last, candidates[low], between, tried)


def _nearest(numbers: Sequence[int], to: float) -> int:
    return min(numbers, key=lambda number: abs(number - to))


def bisect_golden(path: Path, start: str, end: str) -> Bisection:
    """Return the commit, or the release of JAX, from which on a golden file's check fails.

    `start` and `end` are two releases of JAX (`0.10.2`), or two commits of the current folder's repository.

    Raises:
        OptionError: A release or commit is unknown, the check fails at the start, or it passes at the end.
    """
    path = path.resolve()
    if _RELEASE.fullmatch(start) and _RELEASE.fullmatch(end):
        return bisect(_releases(start, end), lambda release: _at_release(path, release))
    return bisect(_commits(start, end), lambda commit: _at_commit(path, commit))


def _check_candidate(path: Path, candidate: str, folder: Path, python_path: Sequence[str]) -> Verdict:
    here = str(Path(__file__).parents[2])  # this Explorer checks all candidates
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*python_path, here])}
    # -P: the candidate's folder is the working folder, and must not replace this Explorer.
    command = [sys.executable, "-P", "-m", "explorer", "check", str(path), "--format", "json"]
    done = _run(command, folder, environment)
    # The last lines of a traceback say what failed.
    if done.returncode not in (0, 1):
        return Verdict(candidate, UNKNOWN, done.stderr.strip()[-2000:])
    try:
        (checked,) = json.loads(done.stdout)["checks"]
    except (ValueError, KeyError):
        return Verdict(candidate, UNKNOWN, done.stderr.strip()[-2000:])
    text = "\n".join(
        f"{_place(change)}{change['text']}\n  cause: {change['cause']}" for change in checked["regressions"]
    )
    return Verdict(candidate, PASSES if checked["passed"] else FAILS, text)


def _place(change: Mapping[str, Any]) -> str:
    return f"{change['file']}:{change['line']}: " if change["file"] else ""


def _run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=_PATIENCE
    )


def _commits(start: str, end: str) -> Sequence[str]:
    done = _run(["git", "rev-list", "--first-parent", "--reverse", "--abbrev-commit", f"{start}..{end}"], Path.cwd())
    commits = done.stdout.split()
    if done.returncode or not commits:
        raise OptionError(
            f"there is nothing between {start!r} and {end!r}: {done.stderr.strip() or 'none follows from the other'}.\n"
            "  Hint: two releases of JAX, as 0.10.2 0.12.0, or two commits, the older one first."
        )
    return [start, *commits]


def _at_commit(path: Path, commit: str) -> Verdict:
    top = Path(_run(["git", "rev-parse", "--show-toplevel"], Path.cwd()).stdout.strip())
    with _worktree(top, commit) as tree:
        return _check_candidate(path, commit, tree / Path.cwd().relative_to(top), ())


@contextmanager
def _worktree(top: Path, commit: str) -> Generator[Path]:
    with TemporaryDirectory(prefix="explorer-bisect-") as folder:
        tree = Path(folder, "tree")
        done = _run(["git", "worktree", "add", "--detach", str(tree), commit], top)
        if done.returncode:
            raise OptionError(f"{commit} can't be checked out: {done.stderr.strip()}.")
        try:
            yield tree
        finally:
            # The end of the temporary folder would leave git's record of the worktree.
            _run(["git", "worktree", "remove", "--force", str(tree)], top)


def _releases(start: str, end: str) -> Sequence[str]:
    """Return the releases that pip offers for this Python, from `start` to `end`."""
    done = _run([sys.executable, "-m", "pip", "index", "versions", "jax"], Path.cwd())
    offered = re.search(r"Available versions: (.*)", done.stdout)
    names = [name.strip() for name in offered[1].split(",")] if offered else []
    releases = sorted(
        (name for name in names if _RELEASE.fullmatch(name)), key=lambda release: [*map(int, release.split("."))]
    )
    missing = [each for each in (start, end) if each not in releases]
    if missing:
        raise OptionError(
            f"pip offers no JAX {' and '.join(missing)} for this Python; it has: {', '.join(releases) or 'none'}."
        )
    at, to = releases.index(start), releases.index(end)
    return releases[at : to + 1] if at <= to else releases[to : at + 1][::-1]


def _at_release(path: Path, release: str) -> Verdict:
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    folder = cache_folder() / "jax" / f"{release}-{python}"
    try:
        install_into(folder, f"jax=={release}")
    except MissingPackageError as error:
        return Verdict(release, UNKNOWN, str(error))
    return _check_candidate(path, release, Path.cwd(), [str(folder)])
