"""Does a program fit? What Explorer says around the limit of a device's memory, and what its compiler says itself.

    python -m tests.corpus_targets.limits [--target v5e …] [--only NAME]

`largest_that_fits` gives the bound of each program; around it `memory` and `compare_targets` are asked for five sizes
each, and the compiler, in a process that knows nothing of Explorer, compiles for the same. A TPU's compiler refuses
what doesn't fit. A GPU's compiles whatever it is given, so that nothing here can contradict its rows.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

import explorer as ex
from explorer.hardware.installed import compiler_of, path_of
from tests.corpus_targets.sized import SIZED, Sized

TARGETS = ("v5e", "v5p", "v4")
_FOUR = {"v5e": "v5e:2x2", "v5p": "v5p:2x2x1", "v4": "v4:2x2x1"}
_AROUND = (0.9, 0.98, 1.0, 1.0, 1.02, 1.1)  # of the bound; of the two in the middle the second is the next size


@dataclass(frozen=True)
class Case:
    """A program of one size for one target: whether it fits, by `largest_that_fits`, `memory` and the compiler."""

    target: str
    program: str
    size: int
    expected: bool
    by_memory: bool | None
    by_comparison: bool | None
    by_compiler: str

    @property
    def is_agreed(self) -> bool:
        fits = {"fits": True, "memory": False}.get(self.by_compiler)
        return self.expected is fits and self.by_memory is fits and self.by_comparison is fits

    def __str__(self) -> str:
        words = {True: "fits", False: "doesn't", None: "not known"}
        text = f"{self.target:10} {self.program:26} {self.size:>10,}  largest_that_fits: {words[self.expected]:8}"
        text += (
            f"  memory: {words[self.by_memory]:9}  compare: {words[self.by_comparison]:9}  compiler: {self.by_compiler}"
        )
        return text + ("" if self.is_agreed else "  DIFFERS")


def cases(target: str, only: str = "", around: Sequence[float] = _AROUND) -> Iterator[Case]:
    """Those of each program around its own limit."""
    programs = [program for program in SIZED if only in program.name]
    for program in programs:
        yield from program_cases(program, target if program.devices == 1 else _FOUR[target], around)


def program_cases(program: Sized, target: str, around: Sequence[float] = _AROUND) -> Iterator[Case]:
    """Those of one program."""
    found = ex.largest_that_fits(
        program.function, dimension="n", args=program.args, target=target, multiple=program.multiple, progress=False
    )
    bound = found.size
    given = {round(bound * share / program.multiple) * program.multiple for share in around} | {bound}
    given.add(bound + program.multiple if found.is_exact else found.too_large.size)
    sizes = sorted(given)
    use = ex.memory(program.function, over={"n": sizes}, args=program.args, target=target)
    answers = compile_alone(target, [(program.name, size) for size in sizes])
    for size, row_of_size, answer in zip(sizes, use.rows, answers, strict=True):
        (row,) = ex.compare_targets(ex.Call(program.function, *program.args(size)), targets=[target])
        yield Case(target, program.name, size, size <= bound, use.fits(row_of_size), row.fits, answer)


def compile_alone(target: str, wanted: Sequence[tuple[str, int]]) -> list[str]:
    """What the compiler says itself: `fits`, `memory`, or its error."""
    topology = target if ":" in target else _FOUR[target]
    path = [*path_of(compiler_of("tpu")), *sys.path]
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    environment |= {"TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.corpus_targets.raw_compile", "tpu", topology, ex.target(target).device.chip],
        input="".join(f"{name}\t{size}\n" for name, size in wanted),
        env=environment | {"PYTHONPATH": os.pathsep.join(filter(None, path))},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.partition("\t") for line in done.stdout.splitlines()]
    return [verdict if verdict != "other" else error for verdict, _, error in lines]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus_targets.limits", description=__doc__)
    parser.add_argument("--target", action="append", help=f"one of them; {', '.join(TARGETS)} if not given")
    parser.add_argument("--only", default="", help="programs with this in their name")
    given = parser.parse_args()
    all_cases: list[Case] = []
    began = perf_counter()
    for target in given.target or TARGETS:
        for case in cases(target, given.only):
            all_cases.append(case)
            print(case, flush=True)
    agreed = sum(case.is_agreed for case in all_cases)
    print(f"== {agreed} of {len(all_cases)} as the compiler says; {perf_counter() - began:.0f} s")
    return int(agreed < len(all_cases))


if __name__ == "__main__":
    sys.exit(main())
