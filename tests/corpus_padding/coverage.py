"""Which share of `jax.nn` and of `jax.numpy` is exact along a batch axis, and along one that is reduced."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tests.corpus_padding.judge import EXACT, Verdict

KINDS = ("batch axis", "reduced axis")


def shares(verdicts: Iterable[Verdict]) -> dict[tuple[str, str], tuple[int, int]]:
    """By group and kind of axis: how many functions are exact, of how many; `all` is the sum of a kind."""
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for verdict in verdicts:
        group, _, kind = verdict.case.family.rpartition(", ")
        if kind in KINDS:
            for key in ((group, kind), ("all", kind)):
                counts[key][0] += verdict.outcome == EXACT
                counts[key][1] += 1
    return {key: (exact, all_) for key, (exact, all_) in counts.items()}


def table(verdicts: Iterable[Verdict]) -> str:
    """The shares as text."""
    counted = shares(verdicts)
    groups = [group for group in dict.fromkeys(group for group, _ in counted) if group != "all"]
    lines = [f"{'':14}{KINDS[0]:>20}{KINDS[1]:>20}"]
    for group in [*groups, "all"]:
        cells = [_cell(*counted[group, kind]) if (group, kind) in counted else "–" for kind in KINDS]
        lines.append(f"{group:14}" + "".join(f"{cell:>20}" for cell in cells))
    return "\n".join(lines)


def _cell(exact: int, of: int) -> str:
    return f"{exact} of {of} = {exact / of:.0%}"
