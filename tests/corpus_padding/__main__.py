"""Judges the corpus: every function that isn't exact, with the reason, what was found, and the table of coverage.

    python -m tests.corpus_padding [--few] [--gradients | --only-gradients] [--door] [--optimized]
        [--part I/N | --spread COUNT] [TEXT…]

Of texts, only the cases whose `family: name` has one of them. `--few` takes two or three of each case's sizes, not all,
`--gradients` each case's derivatives too (`--only-gradients` those alone), `--door` goes through `explorer.compile`,
padded. `--part 0/2` takes every second case, `--spread 300` so many out of every family, in proportion. The exit code
is 1 if anything is wrong or crashes.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from time import perf_counter

from tests.corpus_padding import coverage
from tests.corpus_padding.cases import Case
from tests.corpus_padding.door import judge_door
from tests.corpus_padding.functions import cases
from tests.corpus_padding.judge import CRASHED, EXACT, NO_CASE, QUICKLY, REFUSED, UNTRACED, WRONG, Verdict, judge


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--only-gradients", action="store_true")
    parser.add_argument("--door", action="store_true")
    parser.add_argument("--optimized", action="store_true", help="with all of XLA's optimizations")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--spread", type=int)
    parser.add_argument("texts", nargs="*")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    chosen = [
        case for case in cases() if not options.texts or any(t in f"{case.family}: {case.name}" for t in options.texts)
    ]
    if options.gradients or options.only_gradients:
        gradients = [gradient for case in chosen if (gradient := case.gradient()) is not None]
        chosen = gradients if options.only_gradients else chosen + gradients
    verdicts: list[Verdict] = []
    start = perf_counter()
    for case in chosen[part::parts] if options.spread is None else spread(chosen, options.spread):
        if options.door:
            verdict = judge_door(case, options.few)
        else:
            verdict = judge(case, options.few, {} if options.optimized else QUICKLY)
        verdicts.append(verdict)
        if verdict.outcome not in (EXACT, NO_CASE):
            print(f"{verdict.outcome:9} {case.family}: {case.name} : {case.text}", flush=True)
            print(
                "".join(f"{'':10}{reason}\n" for reason in list(dict.fromkeys(verdict.reasons))[:4]), end="", flush=True
            )
    print(f"\n{summary(verdicts)}, in {perf_counter() - start:,.0f} s\n")
    print("\n".join(f"{count:5}  {blocker}" for blocker, count in blockers(verdicts).most_common(20)))
    print(f"\n{coverage.table([verdict for verdict in verdicts if not verdict.case.name.startswith('grad ')])}")
    sys.exit(any(verdict.outcome in (WRONG, CRASHED) for verdict in verdicts))


def spread(cases: list[Case], count: int) -> list[Case]:
    """So many of the cases, evenly out of the list, which goes family by family."""
    return [cases[at * len(cases) // count] for at in range(min(count, len(cases)))]


def summary(verdicts: list[Verdict]) -> str:
    counts = Counter(verdict.outcome for verdict in verdicts)
    judged = len(verdicts) - counts[NO_CASE]
    found = ", ".join(f"{counts[outcome]} {outcome}" for outcome in (EXACT, REFUSED, UNTRACED, WRONG, CRASHED))
    compared = sum(verdict.comparisons for verdict in verdicts)
    return f"{judged} functions: {found}: {counts[EXACT] / max(judged, 1):.1%} exact; {compared:,} results compared"


def blockers(verdicts: list[Verdict]) -> Counter[str]:
    """By what refuses it, how many functions: of a refusal the primitive and why."""
    counts: Counter[str] = Counter()
    for verdict in verdicts:
        if verdict.outcome in (REFUSED, UNTRACED):
            counts.update({f"{verdict.outcome}: {reason[:110]}" for reason in verdict.reasons})
    return counts


if __name__ == "__main__":
    main()
