"""Events grouped into calls: a call that is traced, lowered and compiled once is one compile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from explorer.model.events.event import Event, Place, Reason
from explorer.model.events.key import Key

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
        """Return True if the function had been compiled before: the cost could be avoided."""
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
    """Return the calls of some events, in order."""
    fold = Fold()
    fold.add(events)
    return fold.calls


class Fold:
    """Collects events into calls, as they come."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._known: dict[tuple[str, int], Call] = {}

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            # A number of 0 is none: the events then stand for themselves.
            call = self._known.get((event.process, event.call)) if event.call else None
            if call is None:
                call = _new_call(event)
                self.calls.append(call)
                self._known[event.process, event.call] = call
            call.take(event)


def _new_call(event: Event) -> Call:
    of = event.key.function if event.key is not None else None
    family = Family(of.name, of.file, of.line, of.eager) if of is not None else Family(event.function)
    return Call(
        event.call, family, event.start, event.call_site, event.stack, event.reason,
        thread=event.thread, device=event.device, process=event.process, key=event.key,
    )  # fmt: skip


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
        """Return the calls of the reason that cost most."""
        return max(self.reasons.values(), key=lambda calls: sum(call.seconds for call in calls), default=list[Call]())


EAGER = Family("eager operations", eager=True)


def group_by_family(calls: Iterable[Call]) -> list[Group]:
    """Return the groups, the most expensive first."""
    groups: dict[Family, Group] = {}
    for call in calls:
        family = EAGER if call.family.eager else call.family
        groups.setdefault(family, Group(family)).add(call)
    return sorted(groups.values(), key=lambda group: (-group.seconds, group.family.name))
