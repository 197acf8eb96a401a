"""The ledger in a sentence: what recompiled most, what it cost, what varied, and the fix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from explorer.model.events.family_counts import Storm
from explorer.model.text import code_parts
from explorer.model.units import duration_text
from explorer.view.ledger.calls import Call, Group, group_by_family

Phrase = list[tuple[str, bool]]
"""Pieces of a sentence; True: it is code."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The most important fact of a ledger.

    Args:
        kind: `empty`, `once` (nothing was compiled again) or `again`.
        text: What happened, and what it cost.
        cause: What varied; may be empty.
        cure: The fix, as code or a sentence; empty if unknown.
        function: Name of the function.
    """

    kind: str
    text: Phrase
    cause: Phrase
    cure: str = ""
    function: str = ""


def verdict_of(calls: Sequence[Call]) -> Verdict:
    groups = group_by_family(calls)
    own = [group for group in groups if not group.family.eager and group.compiles]
    worst = max(own, key=lambda group: group.again, default=None)
    if worst is not None and worst.reasons:
        return _again(worst, sum(group.seconds for group in groups))
    if not groups:
        return Verdict("empty", [("Nothing has compiled yet.", False)], [])
    return _once(own, groups)


def _again(group: Group, total: float) -> Verdict:
    cost = f"{duration_text(group.seconds)} of {duration_text(total)} spent compiling"
    text: Phrase = [(group.family.name, True), (f" compiled {times(group.compiles)}: {cost}", False)]
    return Verdict("again", text, cause_of(group), cure_of(group), group.family.name)


def _once(own: list[Group], groups: list[Group]) -> Verdict:
    seconds = duration_text(sum(group.seconds for group in groups))
    if not own:
        return Verdict("once", [(f"Only eager operations compiled: {seconds}.", False)], [])
    if len(own) == 1:
        return Verdict("once", [(own[0].family.name, True), (f" compiled once: {seconds}.", False)], [])
    return Verdict("once", [(f"{len(own):,} functions compiled, none of them again: {seconds}.", False)], [])


def cause_of(group: Group) -> Phrase:
    """Return what varied, from the first value to the last, for the reason that cost most."""
    calls = group.cause
    if not calls:
        return []
    reason = calls[-1].reason
    if reason.leaf and (values := varied(calls)):
        return [(reason.leaf, True), (" varied: ", False), (values, True)]
    return code_parts(str(reason))


def cure_of(group: Group) -> str:
    """Return the newest fix for that reason, which has seen most values."""
    return next((call.reason.fix for call in reversed(group.cause) if call.reason.fix), "")


def varied(calls: Sequence[Call]) -> str:
    """Return the values that a leaf had: `32 … 40` for numbers, else the first few."""
    values = list(dict.fromkeys(v for call in calls for v in (call.reason.before, call.reason.after) if v))
    if len(values) > 2 and all(value.lstrip("-").isdigit() for value in values):
        numbers = sorted(map(int, values))
        return f"{numbers[0]} … {numbers[-1]} ({len(numbers)} values)"
    shown = " → ".join(values[:3])
    return f"{shown} … ({len(values)} values)" if len(values) > 3 else shown


def times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def flat(phrase: Phrase) -> str:
    """Return the sentence as text."""
    return "".join(text for text, _ in phrase)


def plain(phrase: Phrase) -> str:
    """Return the sentence as text, its code in backticks."""
    return "".join(f"`{text}`" if is_code else text for text, is_code in phrase)


def cause_of_storm(storm: Storm) -> Phrase:
    if not storm.leaf:
        return code_parts(str(storm.reason))
    phrase: Phrase = [(storm.leaf, True), (f" changed {times(storm.changes)}", False)]
    if storm.reason.change:
        phrase += [(", lately ", False), (storm.reason.change, True)]
    return phrase
