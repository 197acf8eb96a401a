"""Histories of instructions: where one was born, what it came from, what it became, and where it died."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from explorer.errors import UnknownNameError
from explorer.model.passes import History, HistoryEvent, Passes, PassLink

_SENTENCES = {
    "rewritten": "replaced by {}",
    "merged": "merged into {}, which was there already",
    "replaced": "replaced by {}, which was there already",
    "inlined": "inlined into {}",
    "fused": "fused into {}",
    "duplicated": "copied into {}",
    "with": "gone with its only reader {}",
    "unused": "removed: nothing read it",
    "unknown": "removed; the text doesn't show its replacement",
}
_MAX_EVENTS = 60  # a constant may come from a hundred others


def history(passes: Passes, name: str) -> History:
    """Return the first 60 events of all instructions with a name, of their origins, and of their replacements.

    Raises:
        UnknownNameError: No instruction ever had this name; lists close names.
    """
    names = passes.versions.names
    keys = [key for key, other in enumerate(names) if other == name]
    if not keys:
        close = difflib.get_close_matches(name, names, 3) or list(names[:3])
        raise UnknownNameError(f"no instruction was ever named {name!r}; close are: {', '.join(close)}")
    timeline = _timelines.get(passes) or _timelines.setdefault(passes, _timeline_of(passes))
    earlier = _family(keys, lambda key: [link.old for link in timeline.out_of.get(key, ())])
    later = _family(keys, lambda key: [link.new for link in timeline.into.get(key, ())])
    events = [event for key in dict.fromkeys([*earlier, *later]) for event in _events(passes, timeline, key)]
    events.sort(key=lambda event: event.position)
    return History(name, tuple(events[:_MAX_EVENTS]))


@dataclass(frozen=True, eq=False)
class _Timeline:
    """Links and events of every instruction, by key.

    Args:
        into: Links to its replacements.
        out_of: Links from its origins; an instruction it only died with is no origin.
        moments: Position of the pass, event (`start`, `born`, `changed`, `died`), row.
    """

    into: Mapping[int, list[PassLink]]
    out_of: Mapping[int, list[PassLink]]
    moments: Mapping[int, list[tuple[int, str, int]]]


_timelines: WeakKeyDictionary[Passes, _Timeline] = WeakKeyDictionary()  # one history is often the first of several


def _timeline_of(passes: Passes) -> _Timeline:
    into: dict[int, list[PassLink]] = {}
    out_of: dict[int, list[PassLink]] = {}
    for link in passes.links:
        into.setdefault(link.old, []).append(link)
        if link.new >= 0 and link.kind != "with":
            out_of.setdefault(link.new, []).append(link)
    return _Timeline(into, out_of, _moments(passes))


def _moments(passes: Passes) -> dict[int, list[tuple[int, str, int]]]:
    versions = passes.versions
    moments: dict[int, list[tuple[int, str, int]]] = {}

    def note(row: int, position: int, what: str) -> None:
        key = int(versions.key[row])
        if key >= 0:
            moments.setdefault(key, []).append((position, what, row))

    for row in versions.rows(0).tolist() if versions.snapshots else ():
        note(row, -1, "start")
    for position, effect in enumerate(passes.effects):
        for row in effect.born:
            note(row, position, "born")
        for _, row in effect.changed:
            note(row, position, "changed")
        for row in effect.died:
            note(row, position, "died")
    return moments


def _family(keys: Sequence[int], near: Callable[[int], Sequence[int]]) -> list[int]:
    """Return `keys` and the keys reachable from them through `near`, nearest first, up to the limit of a history."""
    family = dict.fromkeys(keys)
    todo = list(keys)
    while todo and len(family) < _MAX_EVENTS:
        for other in near(todo.pop(0)):
            if other >= 0 and other not in family:
                family[other] = None
                todo.append(other)
    return list(family)


def _events(passes: Passes, timeline: _Timeline, key: int) -> Iterator[HistoryEvent]:
    versions, became = passes.versions, timeline.into.get(key, ())
    name = versions.names[key]
    for position, what, row in timeline.moments.get(key, ()):
        text = versions.lines[row].strip()
        if what == "died":
            yield from (_ending(passes, name, link, text) for link in became if link.position == position)
            continue
        sources = [link for link in timeline.out_of.get(key, ()) if link.position == position]
        yield _appearance(passes, name, position, what, sources, text)
    yield from (_ending(passes, name, link, "") for link in became if link.kind == "duplicated")


def _ending(passes: Passes, name: str, link: PassLink, text: str) -> HistoryEvent:
    sentence, others = _describe(passes, link)
    return HistoryEvent(link.position, passes[link.position].name, name, sentence, others, text, link.inferred)


def _appearance(
    passes: Passes, name: str, position: int, what: str, sources: Sequence[PassLink], text: str
) -> HistoryEvent:
    """Return the event that an instruction exists at the start, is made, or is rewritten, with its origins."""
    others = tuple(dict.fromkeys(passes.versions.names[link.old] for link in sources))
    sentence = {"start": "is there", "born": "is made", "changed": "is rewritten"}[what]
    if what == "born" and others:
        sentence += f" from {', '.join(others[:4])}{' …' * (len(others) > 4)}"
    pass_name = passes[position].name if position >= 0 else "before all passes"
    inferred = any(link.inferred for link in sources)
    return HistoryEvent(position, pass_name, name, sentence, others, text, inferred)


def _describe(passes: Passes, link: PassLink) -> tuple[str, tuple[str, ...]]:
    """Return a sentence about an instruction's replacement, and the names in it."""
    if link.new < 0:
        return _SENTENCES[link.kind], ()
    versions = passes.versions
    name = versions.names[link.new]
    where = versions.computations[int(versions.computation[link.new])]
    inside = f"{where} as {name}" if link.kind in ("fused", "duplicated", "inlined") else name
    return _SENTENCES[link.kind].format(inside), (name,)
