"""record() and check(): facts about a compiled function in a small file, their comparison, and the pytest fixture."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

import jax

from explorer.analysis.golden import compared, file_label, program_record
from explorer.capture.call import Call, takes_call
from explorer.capture.explore import explore_call
from explorer.errors import GoldenFileError, OptionError
from explorer.files.golden import load
from explorer.model.capture import Capture
from explorer.model.events.ledger import Ledger
from explorer.model.findings import Findings
from explorer.model.golden import Change, CheckResult, Golden
from explorer.model.stage import is_library_file
from explorer.model.target import Target
from explorer.pitfalls.lint import LintOptions, Observation, observe


@takes_call
def record(
    function: Callable[..., Any] | Call, /, *args: Any, targets: Sequence[str | Target] = (), **kwargs: Any
) -> Golden:
    """Compile a function without running it; return kernels, FLOPs, bytes, memory, collectives and findings by line.

    Args:
        function, args, kwargs: As for `explore`.
        targets: Hardware to compile for, as `explore(target=)` takes it, and `cpu` or `gpu` for this machine. Only this
            machine if empty.

    Raises:
        OptionError: `targets` is no list.
        ExploreError: The function can't be compiled.
        MissingCompilerError: The compiler of a target is not installed.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> golden = explorer.record(lambda x: jnp.tanh(x @ x), jnp.ones((64, 64)))
        >>> golden.program("cpu").flops
        528384
    """
    __tracebackhide__ = True
    if isinstance(targets, str):
        raise OptionError(f"targets is {targets!r}; allowed is a list of them.\n  Hint: targets=[{targets!r}].")
    call = Call.of(function, args, kwargs)

    # The findings of the compiled program need what the trace was observed with.
    with ExitStack() as evidence:

        @cache
        def lint_trace() -> tuple[Observation, Findings]:
            observation = observe(call.function, call.args, call.kwargs, LintOptions())
            evidence.callback(observation.evidence.program.close)
            return observation, observation.findings(sharded=False)

        def look_ahead(so_far: Capture) -> None:
            with suppress(Exception):  # repeated below, where it raises
                lint_trace()
                so_far.jaxpr.graph  # noqa: B018 - reads the stage, which keeps its graph

        here = jax.default_backend()
        captures = {
            str(target): explore_call(call, None if target == here else target, look_ahead)
            for target in targets or (here,)
        }
        observation, of_trace = lint_trace()
        # Without fixes: trying one would compile, and a golden file only counts findings.
        findings = [*of_trace, *observation.findings_of_program(captures.get(here))]
    folder, first = os.getcwd(), next(iter(captures.values()))
    return Golden(
        function=first.function,
        jax=first.environment.get("jax", ""),
        programs=tuple(program_record(capture, findings, folder, name) for name, capture in captures.items()),
        place=f"{file_label(first.file, folder)}:{first.line}" if first.file else "",
    )


@takes_call
def check(
    function: Callable[..., Any] | Call, /, *args: Any, golden: Golden | str | PathLike[str], **kwargs: Any
) -> CheckResult:
    """Compare a function with its record, and return each growth beyond its tolerance with its line and cause.

    Args:
        function, args, kwargs: As for `record`; compiled for the recorded targets.
        golden: Result of `record`, or the file that it was saved to.

    Raises:
        GoldenFileError: The file can't be read.
        ExploreError: The function can't be compiled.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> golden = explorer.record(lambda x: x * 2 + 1, jnp.ones(1024))
        >>> result = explorer.check(lambda x: jnp.sort(x) * 2 + 1, jnp.ones(1024), golden=golden)
        >>> result.passed, result.regressions[0].text.split(";")[0]
        (False, 'kernels: 2, 1 before')
    """
    __tracebackhide__ = True
    before = golden if isinstance(golden, Golden) else load(golden)
    now = record(Call.of(function, args, kwargs), targets=[program.target for program in before.programs])
    return compared(before, now, before.function if isinstance(golden, Golden) else os.fspath(golden))


class GoldenTest:
    """Value of the fixture: call it with each function and its arguments.

    `path` maps a function's name to its golden file, `ledger` has the test's compiles so far, `fail` fails the test.
    """

    def __init__(self, path: Callable[[str], Path], update: bool, ledger: Ledger, fail: Callable[[str], None]) -> None:
        self._path, self._update, self._ledger, self._fail = path, update, ledger, fail

    def __call__(
        self, function: Callable[..., Any], /, *args: Any, targets: Sequence[str | Target] = (), **kwargs: Any
    ) -> CheckResult:
        """Compare a function with its golden file, and fail the test if it regressed; arguments as for `record`.

        With `--update-golden` the file is written, and the result passes.

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
    """Return the new record with the tolerance of the existing file, if there is one that can be read."""
    try:
        return replace(now, tolerance=load(path).tolerance)
    except (FileNotFoundError, GoldenFileError):
        return now


def _compiles(ledger: Ledger) -> dict[str, int]:
    """Return the number of compiles, including persistent cache hits, of each of the user's functions by name."""
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
