"""The pytest fixture `explorer_golden`: compares a function with its golden file, and counts the test's compiles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from explorer.analysis.golden import compared
from explorer.capture.call import Call
from explorer.errors import GoldenFileError
from explorer.files.golden import load
from explorer.golden.record import record
from explorer.model.events.ledger import Ledger
from explorer.model.golden import Change, CheckResult, Golden
from explorer.model.stage import is_library_file
from explorer.model.target import Target


class GoldenTest:
    """Value of the fixture: call it with each function and its arguments.

    Args:
        path: Maps a function's name to its golden file.
        update: Whether to write the golden files.
        ledger: Compiles of the test so far.
        fail: Fails the test with a text.
    """

    def __init__(self, path: Callable[[str], Path], update: bool, ledger: Ledger, fail: Callable[[str], None]) -> None:
        self._path, self._update, self._ledger, self._fail = path, update, ledger, fail

    def __call__(
        self, function: Callable[..., Any], /, *args: Any, targets: Sequence[str | Target] = (), **kwargs: Any
    ) -> CheckResult:
        """Compare a function with its golden file; arguments as for `explorer.record`.

        Raises:
            GoldenFileError: There is no golden file yet.
        """
        compiles = _compiles(self._ledger)
        recorded = replace(record(Call(function, *args, **kwargs), targets=targets), compiles=compiles)
        path = self._path(recorded.function)
        if self._update:
            before = _kept(path, recorded)
            path.parent.mkdir(parents=True, exist_ok=True)
            before.save(path)
            return CheckResult(str(path), (), (), (), before)
        try:
            before = load(path)
        except FileNotFoundError:
            raise GoldenFileError(f"there is no {path} yet.\n  Hint: pytest --update-golden writes it.") from None
        result = compared(before, recorded, str(path))
        result = replace(result, regressions=[_with_reason(change, self._ledger) for change in result.regressions])
        if not result.passed:
            self._fail(result.to_text())
        return result


def _kept(path: Path, now: Golden) -> Golden:
    """Return the new record with the tolerance of the existing file."""
    try:
        return replace(now, tolerance=load(path).tolerance)
    except (FileNotFoundError, GoldenFileError):
        return now


def _compiles(ledger: Ledger) -> dict[str, int]:
    """Return the number of compiles, including persistent cache hits, of each of the user's functions."""
    counts: Counter[str] = Counter()
    for summary in ledger.functions():
        if not summary.eager and not is_library_file(summary.file):
            counts[summary.name] += summary.compiles + summary.cache_hits
    return {name: count for name, count in sorted(counts.items()) if count}


def _with_reason(change: Change, ledger: Ledger) -> Change:
    """Return a change with the reason and call site of the function's last recompile, if there is one."""
    again = [event for event in ledger.recompiles() if event.function == change.function]
    if not again:
        return change
    site = again[-1].call_site
    cause = replace(change, cause=str(again[-1].reason))
    return cause if site is None else replace(cause, file=site.label or site.file, line=site.line)
