"""bisect: the commit, or the release of JAX, from which on a check fails.

Each candidate is checked in another process: a commit in a git worktree, a release of JAX from a folder of
Explorer's own, which pip fills and the user's environment never sees.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from explorer.errors import MissingPackageError, OptionError
from explorer.files.disk import cache_folder
from explorer.hardware.installed import install_into
from explorer.model.golden import FAILS, PASSES, UNKNOWN, Bisection, Verdict

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


def _check(path: Path, candidate: str, folder: Path, python_path: Sequence[str]) -> Verdict:
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


# Commits -------------------------------------------------------------------------------------------------------------


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
        return _check(path, commit, tree / Path.cwd().relative_to(top), ())


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


# Releases of JAX -----------------------------------------------------------------------------------------------------


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
    return _check(path, release, Path.cwd(), [str(folder)])
