"""Events grouped into calls, and the ledger in a sentence: what recompiled most, its cost, its cause and the fix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from explorer.model.events.event import Event, Place, Reason
from explorer.model.events.family_counts import Storm
from explorer.model.events.key import Key
from explorer.model.text import code_parts
from explorer.model.units import duration_text

_STEPS = {"trace": "trace", "lower": "lower", "compile": "compile", "cache-hit": "compile"}


@dataclass(frozen=True, slots=True)
class Family:
    """Functions of the same name, defined at the same place."""

    name: str
    file: str = ""
    line: int = 0
    eager: bool = False


@dataclass(slots=True)
class Call:
    """All steps of one call of a function; seconds by step."""

    number: int
    family: Family
    start: float
    place: Place | None
    stack: tuple[Place, ...]
    reason: Reason
    id: str = ""
    trace: float = 0.0
    lower: float = 0.0
    compile: float = 0.0
    saved: float = 0.0
    is_hit: bool = False
    is_miss: bool = True
    thread: str = ""
    device: str = ""
    error: str = ""
    process: str = ""
    key: Key | None = None

    @property
    def seconds(self) -> float:
        return self.trace + self.lower + self.compile

    @property
    def is_again(self) -> bool:
        """Return True if the call compiled a function that had compiled before: its cost could be avoided."""
        return not self.is_miss and self.reason.kind != "first"

    def take(self, event: Event) -> None:
        """Add an event of this call."""
        self.start = min(self.start, event.start)
        step = _STEPS.get(event.kind)
        if step is not None:
            setattr(self, step, getattr(self, step) + event.seconds)
            self.is_miss = False
        self.saved += event.saved
        self.is_hit = self.is_hit or event.kind == "cache-hit"
        self.id = self.id or event.id
        self.error = self.error or event.error


def calls_of(events: Iterable[Event]) -> list[Call]:
    """Return the calls that the events belong to, in the order of their first events."""
    fold = Fold()
    fold.add(events)
    return fold.calls


class Fold:
    """Collector that groups events into calls."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._known: dict[tuple[str, int], Call] = {}

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            # Events with the number 0 have no call: each is one of its own.
            call = self._known.get((event.process, event.call)) if event.call else None
            if call is None:
                of = event.key.function if event.key is not None else None
                family = Family(of.name, of.file, of.line, of.eager) if of is not None else Family(event.function)
                call = Call(
                    event.call, family, event.start, event.call_site, event.stack, event.reason,
                    thread=event.thread, device=event.device, process=event.process, key=event.key,
                )  # fmt: skip
                self.calls.append(call)
                self._known[event.process, event.call] = call
            call.take(event)


@dataclass(slots=True)
class Group:
    """All calls of one family; eager operations are one group."""

    family: Family
    calls: list[Call] = field(default_factory=list[Call])
    seconds: float = 0.0
    again: float = 0.0  # seconds beyond the first compile
    misses: int = 0
    reasons: dict[tuple[str, str], list[Call]] = field(default_factory=dict[tuple[str, str], list[Call]])

    def add(self, call: Call) -> None:
        self.calls.append(call)
        self.seconds += call.seconds
        self.misses += call.is_miss
        if call.is_again:
            self.again += call.seconds
            self.reasons.setdefault((call.reason.kind, call.reason.leaf), []).append(call)

    @property
    def compiles(self) -> int:
        return len(self.calls) - self.misses

    @property
    def cause(self) -> list[Call]:
        """Return the calls of the reason that cost most; empty without recompiles."""
        return max(self.reasons.values(), key=lambda calls: sum(call.seconds for call in calls), default=list[Call]())


EAGER = Family("eager operations", eager=True)


def group_by_family(calls: Iterable[Call]) -> list[Group]:
    """Return the calls by family, the most expensive first; all eager operations are one group."""
    groups: dict[Family, Group] = {}
    for call in calls:
        family = EAGER if call.family.eager else call.family
        groups.setdefault(family, Group(family)).add(call)
    return sorted(groups.values(), key=lambda group: (-group.seconds, group.family.name))


Phrase = list[tuple[str, bool]]
"""Pieces of a sentence; True: it is code."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The most important fact of a ledger.

    `kind` is `empty`, `once` (nothing was compiled again) or `again`; `text` has the compiles and their cost, `cause`
    the values that varied, `cure` the fix, as code or a sentence. The last two may be empty.
    """

    kind: str
    text: Phrase
    cause: Phrase
    cure: str = ""
    function: str = ""


def verdict_of(calls: Sequence[Call]) -> Verdict:
    groups = group_by_family(calls)
    own = [group for group in groups if not group.family.eager and group.compiles]
    seconds = duration_text(sum(group.seconds for group in groups))
    worst = max(own, key=lambda group: group.again, default=None)
    if worst is not None and worst.reasons:
        cost = f" compiled {times(worst.compiles)}: {duration_text(worst.seconds)} of {seconds} spent compiling"
        text = [(worst.family.name, True), (cost, False)]
        return Verdict("again", text, cause_of(worst), cure_of(worst), worst.family.name)
    if not groups:
        return Verdict("empty", [("Nothing has compiled yet.", False)], [])
    if len(own) == 1:
        return Verdict("once", [(own[0].family.name, True), (f" compiled once: {seconds}.", False)], [])
    several = f"{len(own):,} functions compiled, no recompiles: {seconds}."
    return Verdict("once", [(several if own else f"Only eager operations compiled: {seconds}.", False)], [])


def cause_of(group: Group) -> Phrase:
    """Return the costliest reason as pieces `(text, is_code)`: the values that varied, or else the latest one's text.

    Empty without recompiles.
    """
    calls = group.cause
    if not calls:
        return []
    reason = calls[-1].reason
    if reason.leaf and (values := varied(calls)):
        return [(reason.leaf, True), (" varied: ", False), (values, True)]
    return code_parts(str(reason))


def cure_of(group: Group) -> str:
    """Return the latest fix for the reason that cost most; empty if none is known."""
    return next((call.reason.fix for call in reversed(group.cause) if call.reason.fix), "")


def varied(calls: Sequence[Call]) -> str:
    """Return the values that a leaf had as text: `32 … 40 (9 values)` for integers, else the first three."""
    values = list(dict.fromkeys(v for call in calls for v in (call.reason.before, call.reason.after) if v))
    if len(values) > 2 and all(value.lstrip("-").isdigit() for value in values):
        numbers = sorted(map(int, values))
        return f"{numbers[0]} … {numbers[-1]} ({len(numbers)} values)"
    shown = " → ".join(values[:3])
    return f"{shown} … ({len(values)} values)" if len(values) > 3 else shown


def times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def flat(phrase: Phrase) -> str:
    """Return a phrase as text, without marks for code."""
    return "".join(text for text, _ in phrase)


def plain(phrase: Phrase) -> str:
    """Return a phrase as text, its code in backticks."""
    return "".join(f"`{text}`" if is_code else text for text, is_code in phrase)


def cause_of_storm(storm: Storm) -> Phrase:
    if not storm.leaf:
        return code_parts(str(storm.reason))
    phrase: Phrase = [(storm.leaf, True), (f" changed {times(storm.changes)}", False)]
    if storm.reason.change:
        phrase += [(", lately ", False), (storm.reason.change, True)]
    return phrase
