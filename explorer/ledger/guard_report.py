"""What a guard says: which functions compiled, where they were called, what changed, and what would stop it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from explorer.model.events.event import Event, Reason
from explorer.model.events.family_counts import FamilyKey, family_key
from explorer.model.units import duration_text

_ROWS = 8


@dataclass(frozen=True, slots=True)
class Compile:
    """One call that had to trace, lower or compile: its events, and whether that was not the first time."""

    events: tuple[Event, ...]
    again: bool

    @property
    def seconds(self) -> float:
        return sum(event.seconds for event in self.events)

    @property
    def eager(self) -> bool:
        """Whether it was for one of JAX's own operations, outside of any `jit`."""
        key = self.last.key
        return key is not None and key.function.eager

    @property
    def last(self) -> Event:
        return self.events[-1]

    @property
    def reason(self) -> Reason:
        return self.last.reason


def group_compiles(events: Iterable[Event]) -> list[Compile]:
    """The calls that had to trace, lower or compile, in their order."""
    calls: dict[int, list[Event]] = {}
    for event in events:
        if event.kind != "miss" and not event.error:
            calls.setdefault(event.call, []).append(event)
    compiles: list[Compile] = []
    seen: set[FamilyKey] = set()
    for call in calls.values():
        event, family = call[-1], family_key(call[-1])
        # Where calls can't be seen nothing is known but names: then the first of a name is taken for a first.
        again = family in seen if event.key is None else event.reason.kind != "first"
        compiles.append(Compile(tuple(call), again))
        seen.add(family)
    return compiles


def format_compiles(compiles: Sequence[Compile]) -> str:
    """One paragraph per function, call site and changed leaf: what it was, what it became, and the fix."""
    groups: dict[object, list[Compile]] = {}
    for compile_ in compiles:
        event, reason = compile_.last, compile_.reason
        groups.setdefault((event.function, event.call_site, reason.kind, reason.leaf), []).append(compile_)
    rows = [_row(group) for group in groups.values()]
    if len(rows) > _ROWS:
        rows[_ROWS:] = [f"  … and {len(rows) - _ROWS} more places or reasons"]
    return "\n".join(rows)


def _row(group: Sequence[Compile]) -> str:
    first, last = group[0], group[-1]
    site = first.last.call_site
    lines = [
        f"{first.last.id or first.last.function}  {format_change(first.reason if first.reason.leaf else last.reason)}"
    ]
    if len(group) > 1:
        values = list(dict.fromkeys(compile_.reason.after for compile_ in group[1:] if compile_.reason.leaf))
        then = f": then {', '.join(values[:4])}{', …' if len(values) > 4 else ''}" if values else ""
        lines.append(f"and {_times(len(group) - 1)} more{then}")
    lines.append(f"took {duration_text(sum(compile_.seconds for compile_ in group))}")
    if site is not None:
        lines.append(f"called at  {site}:   {site.text}".rstrip(": "))
    if last.reason.fix:  # it has seen the most values
        lines.append("Fix: " + last.reason.fix.replace("\n", "\n           "))
    return "\n".join(("  " if i == 0 else "      ") + line for i, line in enumerate(lines))


def format_change(reason: Reason) -> str:
    """What changed, in one line: `batch['x'].shape[0]: 32 → 33`, or the reason's sentence."""
    if reason.leaf and reason.change:
        return f"{reason.leaf}: {reason.change} ({reason.kind})"
    return reason.text or reason.kind


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
