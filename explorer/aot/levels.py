"""What each optimization level tells XLA, and level 5, which measures.

| level | on every platform | and on a CPU | and on a GPU |
|---|---|---|---|
| 0 | `xla_backend_optimization_level=0`, `xla_llvm_disable_expensive_passes` | | |
| 1, 2 | `xla_backend_optimization_level` 1, 2 | | |
| 3 | nothing: XLA's own default, and `jax.jit`'s | | |
| 4 | | the module as one piece of code, 512-bit vectors | all tilings of matrix products tried, loads hidden by work |
| 5 | the fastest of 3, 4 and more options, one by one, on the shape to optimise for | | |

XLA's levels end at 3; what 4 asks for costs time to compile and mostly, not always, gains: 5 finds out. No level alters
what is computed, beyond the order of sums. The options are XLA's debug options of the same name (xla/xla.proto).

No level reaches how a call is handed over. On a CPU, JAX gives one of a thousand operations or more to another thread,
which costs more than it gains where each result is waited for at once; the option `jax_cpu_enable_async_dispatch` of
`jax.config`, turned off before anything runs, saves that. `make bench-peers` measures both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import jax

from explorer._jax.settings import LEVELS, MORE, TRIED, Options, level_options, measured_options
from explorer.errors import ArchiveError, ExploreError, OptionError

if TYPE_CHECKING:
    from explorer.aot.executable import Executable

_SETS: Sequence[Options] = (*LEVELS.values(), *MORE.values(), *(tried for sets in TRIED.values() for tried in sets))
_ROUNDS = 15
_LONGEST = 2.0  # seconds of measuring one candidate, after which fewer rounds must do
_WORTH = 0.98  # of the default's time: less of a gain is taken for noise


def options_of(level: Any) -> Options | None:
    """XLA's compiler options for a level; None for 5, which measures.

    Raises:
        OptionError: There is no such level.
    """
    if type(level) is not int or not 0 <= level <= 5:  # True and 3.0 equal a level
        raise OptionError(
            f"optimization_level is {level!r}; allowed are 0 to 5.\n  Hint: 3, the default, is what jax.jit does."
        )
    return None if level == 5 else level_options(level)


def check_saved(options: Mapping[str, Any]) -> Options:
    """The options from a file, of which only those that a level sets may reach XLA: others write files and load code.

    Raises:
        ArchiveError: There is another option, or another value.
    """
    for name, value in options.items():
        if not any(set_[name] == value and type(set_[name]) is type(value) for set_ in _SETS if name in set_):
            raise ArchiveError(
                f"the executable asks XLA for {name!r:.80} = {value!r:.80}, which no optimization_level sets: "
                "it wasn't written by Executable.save, or by a newer Explorer.\n  Hint: compile the function anew."
            )
    return dict(options)


@dataclass(frozen=True)
class Candidate:
    """One set of compiler options that was measured.

    Args:
        options: XLA's.
        compile_seconds: What trace, lower and compile took.
        samples: Seconds of each run on the shape to optimise for; none if it didn't compile.
        error: Why it didn't.
    """

    options: Options
    compile_seconds: float
    samples: tuple[float, ...]
    error: str = ""

    @property
    def seconds(self) -> float:
        """The median run; infinite if it didn't compile."""
        return median(self.samples) if self.samples else float("inf")

    @property
    def name(self) -> str:
        """The options in a line."""
        return ", ".join(f"{key}={value}" for key, value in self.options.items()) or "XLA's default"


_HEAD = ("options", "a run", "of default", "compile", "choice")


@dataclass(frozen=True, repr=False)
class Autotuning:
    """What level 5 measured.

    Args:
        candidates: In the order they were tried; the first is XLA's default.
        chosen: The one that is kept.
    """

    candidates: tuple[Candidate, ...]
    chosen: Candidate

    def __repr__(self) -> str:
        return f"Autotuning({len(self.candidates)} candidates)"

    def rows(self) -> list[tuple[str, ...]]:
        """Of each candidate: its options, the median run, that over the default's, the compile; and which was kept."""
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
        rows = [_HEAD, *self.rows()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in _HEAD)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in self.rows())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def autotune(build: Callable[[Options], Executable]) -> Executable:
    """Compile with each candidate set of options, run them in turns on made-up inputs, keep the fastest.

    Args:
        build: Compiles with such options.
    """
    sets = measured_options()
    built: list[Executable | None] = []
    errors: list[str] = []
    for options in sets:
        try:
            built.append(build(options))
            errors.append("")
        except ExploreError as error:
            if not options:  # the function itself doesn't compile
                raise
            built.append(None)
            errors.append(str(error.__cause__).partition("\n")[0])
    samples = _run_in_turns(built)
    candidates = tuple(
        Candidate(options, executable.specializations[0].seconds if executable else 0.0, tuple(times), error)
        for options, executable, times, error in zip(sets, built, samples, errors, strict=True)
    )
    best = min(range(len(sets)), key=lambda i: candidates[i].seconds)
    kept = best if candidates[best].seconds < _WORTH * candidates[0].seconds else 0
    chosen = built[kept]
    assert chosen is not None  # a candidate that was measured was built
    chosen.autotuning = Autotuning(candidates, candidates[kept])
    return chosen


def _run_in_turns(executables: Sequence[Executable | None]) -> list[list[float]]:
    """Seconds of each executable's runs, but its first, which warms it up; none where there is no executable.

    In turns, so that a machine that slows down meanwhile slows all of them.
    """
    samples: list[list[float]] = [[] for _ in executables]
    spent = 0.0
    for turn in range(_ROUNDS + 1):
        for executable, times in zip(executables, samples, strict=True):
            if executable is not None:
                seconds = _run(executable)
                spent += seconds
                times += [seconds] if turn else []
        if turn and spent > _LONGEST * len(executables):
            break
    return samples


def _run(executable: Executable) -> float:
    """Seconds of one run on inputs of the shape to optimise for: fresh ones, for a call may overwrite its own."""
    arguments = executable.example_arguments()
    jax.block_until_ready(arguments)
    start = perf_counter()
    jax.block_until_ready(executable.run_opt(arguments))
    return perf_counter() - start
