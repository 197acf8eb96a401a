"""XLA options of each optimization level, and the candidates that level 5 measures.

| level | on every platform | and on a CPU | and on a GPU |
|---|---|---|---|
| 0 | `xla_backend_optimization_level=0`, `xla_llvm_disable_expensive_passes` | | |
| 1, 2 | `xla_backend_optimization_level` 1, 2 | | |
| 3 | nothing: XLA's own default, and `jax.jit`'s | | |
| 4 | | the module as one piece of code, 512-bit vectors | all tilings of matrix products, loads hidden by work |
| 5 | the fastest of 3, 4 and more options, one by one, on the shape to optimize for | | |

XLA's levels end at 3. Level 4 compiles longer and gains in most cases; level 5 measures the gain. No level changes
results beyond the order of sums. The options are XLA's debug options of the same name (xla/xla.proto).

No level changes how a call is dispatched. On a CPU, JAX runs a program of a thousand operations or more on another
thread, which is slower if each result is waited for at once. Set `jax_cpu_enable_async_dispatch` of `jax.config` to
False before anything runs to avoid that. `make bench-peers` measures both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from statistics import median
from time import perf_counter
from typing import Any

import jax

from explorer._jax.settings import LEVELS, MORE, TRIED, Options, level_options, measured_options
from explorer.errors import ArchiveError, ExploreError, OptionError
from explorer.model.text import aligned

_SETS: Sequence[Options] = (*LEVELS.values(), *MORE.values(), *(tried for sets in TRIED.values() for tried in sets))
_ROUNDS = 15
_MAX_SECONDS = 2.0  # of measuring one candidate, after which the rounds end early
_WORTHWHILE = 0.98  # of the default's time: a smaller gain counts as noise


def options_of(level: Any) -> Options | None:
    """Return XLA's compiler options for a level, 0 to 5; None for 5, which measures. Raise OptionError for others."""
    if type(level) is not int or not 0 <= level <= 5:  # True and 3.0 equal a level
        raise OptionError(
            f"optimization_level is {level!r}; allowed are 0 to 5.\n  Hint: 3, the default, is what jax.jit does."
        )
    return None if level == 5 else level_options(level)


def check_saved(options: Mapping[str, Any]) -> Options:
    """Return the options from a file as a dict; raise ArchiveError for an option that no level sets.

    Other options can write files and load code.
    """
    for name, value in options.items():
        if not any(set_[name] == value and type(set_[name]) is type(value) for set_ in _SETS if name in set_):
            raise ArchiveError(
                f"the executable has the XLA option {name!r:.80} = {value!r:.80}, which no optimization_level sets: "
                "it wasn't written by Executable.save, or by a newer Explorer.\n  Hint: compile the function again."
            )
    return dict(options)


@dataclass(frozen=True)
class Candidate:
    """Set of compiler options that was measured.

    Args:
        options: XLA's compiler options.
        compile_seconds: Seconds that trace, lower and compile took.
        samples: Seconds of each run on the shape to optimize for; empty if it didn't compile.
        error: Reason why it didn't compile.
    """

    options: Options
    compile_seconds: float
    samples: tuple[float, ...]
    error: str = ""

    @property
    def seconds(self) -> float:
        """Return the median run in seconds; infinite if it didn't compile."""
        return median(self.samples) if self.samples else float("inf")

    @property
    def name(self) -> str:
        """Return the options as one line, `key=value, key=value`; "XLA's default" without options."""
        return ", ".join(f"{key}={value}" for key, value in self.options.items()) or "XLA's default"


_HEAD = ("options", "a run", "of default", "compile", "choice")


@dataclass(frozen=True, repr=False)
class Autotuning:
    """Measurements of optimization level 5.

    Args:
        candidates: In the order in which they were tried; the first is XLA's default.
        chosen: The candidate that is used.
    """

    candidates: tuple[Candidate, ...]
    chosen: Candidate

    def __repr__(self) -> str:
        return f"Autotuning({len(self.candidates)} candidates)"

    def rows(self) -> list[tuple[str, ...]]:
        """Return one row of text per candidate: options, median run, ratio to the default, compile seconds, choice."""
        base = self.candidates[0].seconds
        return [
            (
                candidate.name,
                f"{candidate.seconds * 1e6:,.1f} µs" if candidate.samples else candidate.error,
                f"{candidate.seconds / base:.2f}×" if candidate.samples else "",
                f"{candidate.compile_seconds:.2f} s",
                "kept" if candidate is self.chosen else "",
            )
            for candidate in self.candidates
        ]

    def __str__(self) -> str:
        return "\n".join(aligned([_HEAD, *self.rows()]))

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in _HEAD)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in self.rows())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def autotune(build: Callable[[Options], Any]) -> Any:
    sets = measured_options()
    built: list[Any] = []
    errors: list[str] = []
    for options in sets:
        try:
            built.append(build(options))
            errors.append("")
        except ExploreError as error:
            if not options:  # XLA's default: the function itself doesn't compile
                raise
            built.append(None)
            errors.append(str(error.__cause__).partition("\n")[0])
    samples = _run_in_turns(built)
    candidates = tuple(
        Candidate(options, executable.specializations[0].seconds if executable else 0.0, tuple(times), error)
        for options, executable, times, error in zip(sets, built, samples, errors, strict=True)
    )
    best = min(range(len(sets)), key=lambda i: candidates[i].seconds)
    kept = best if candidates[best].seconds < _WORTHWHILE * candidates[0].seconds else 0
    built[kept].autotuning = Autotuning(candidates, candidates[kept])
    return built[kept]


def _run_in_turns(executables: Sequence[Any]) -> list[list[float]]:
    """Return the seconds of each executable's runs, without the warm-up. The list of a None is empty."""
    samples: list[list[float]] = [[] for _ in executables]
    spent = 0.0
    # In turns, so that a machine that slows down meanwhile slows all of them. The first turn is the warm-up.
    for turn in range(_ROUNDS + 1):
        for executable, times in zip(executables, samples, strict=True):
            if executable is not None:
                arguments = executable.example_arguments()  # new ones: a run may overwrite donated arrays
                jax.block_until_ready(arguments)
                start = perf_counter()
                jax.block_until_ready(executable.compiled(*arguments))
                seconds = perf_counter() - start
                spent += seconds
                times += [seconds] if turn else []
        if turn and spent > _MAX_SECONDS * len(executables):
            break
    return samples
