"""record() and check(): facts about a compiled function in a small file, and their comparison."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from os import PathLike
from typing import Any

import jax

from explorer.analysis.golden import compared, file_label, program_record
from explorer.capture.call import Call, takes_call
from explorer.capture.explore import explore_call
from explorer.errors import OptionError
from explorer.files.golden import load
from explorer.model.capture import Capture
from explorer.model.findings import Findings
from explorer.model.golden import CheckResult, Golden
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
