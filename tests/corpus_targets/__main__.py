"""`python -m tests.corpus_targets [--target h100 …] [--only NAME]`: what comes of each program, a line each."""

from __future__ import annotations

import argparse
import sys
from time import perf_counter

import jax

from tests.corpus_targets.judge import Outcome, judge
from tests.corpus_targets.programs import PROGRAMS

TARGETS = ("h100", "8xh100", "v5e:4x4", "v5p:8x8x8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus_targets", description=__doc__)
    parser.add_argument("--target", action="append", help=f"one of them; {', '.join(TARGETS)} if not given")
    parser.add_argument("--only", default="", help="programs with this in their name")
    given = parser.parse_args()
    failed = 0
    for target in given.target or TARGETS:
        began = perf_counter()
        outcomes: list[Outcome] = []
        for program in PROGRAMS:
            if given.only in program.name:
                outcomes.append(judge(program, target))
                print(outcomes[-1], flush=True)
        failed += sum(not outcome.is_fine for outcome in outcomes)
        print(summary(target, outcomes, perf_counter() - began), flush=True)
    return min(failed, 1)


def summary(target: str, outcomes: list[Outcome], seconds: float) -> str:
    opened = [each for each in outcomes if each.opens]
    told = [each for each in outcomes if not each.opens and each.is_fine]
    linked = min((each.coverage for each in opened), default=0.0)
    return (
        f"== {target}: {len(opened)} of {len(outcomes)} open, {len(told)} say what is lacking, "
        f"{len(outcomes) - len(opened) - len(told)} fail; least linked {linked:.0%}; "
        f"jax {jax.__version__}; {seconds:.0f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
