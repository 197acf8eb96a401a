"""Several processes' ledgers as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import merge as merged

from explorer.errors import OptionError
from explorer.model.events.event import Event
from explorer.model.events.family_counts import STORM
from explorer.model.events.ledger import Ledger


def merge(*ledgers: Ledger, names: Iterable[str] | None = None, storm: int = STORM) -> Ledger:
    """One ledger, in the order of the clock; calls stay whole, and get new numbers.

    A function that two processes compiled is two: ids are those that the processes gave, and each event says whose it
    is. Ledgers that were merged before keep the names of their processes behind the new one: `host1/0`.
    """
    process_names = _names(ledgers, names)
    streams = [
        _calls(index, ledger, name) for index, (ledger, name) in enumerate(zip(ledgers, process_names, strict=True))
    ]
    whole = Ledger(limit=None, storm=storm)
    for number, (_, _, _, events) in enumerate(merged(*streams, key=lambda call: call[:3]), 1):
        whole.add(tuple(replace(event, call=number) for event in events))
    for ledger, name in zip(ledgers, process_names, strict=True):
        whole.predict(
            replace(prediction, family=(_under(name, prediction.family[0]), *prediction.family[1:]))
            for prediction in ledger.predictions
        )
    whole.dropped = sum(ledger.dropped for ledger in ledgers)
    whole.spilled = sum(ledger.spilled for ledger in ledgers)
    notes = [f"{name}: {ledger.note}" for ledger, name in zip(ledgers, process_names, strict=True) if ledger.note]
    whole.note = "; ".join(notes)
    return whole


def _names(ledgers: Sequence[Ledger], names: Iterable[str] | None) -> list[str]:
    if names is None:
        own = [{event.process for event in ledger} for ledger in ledgers]
        kept = [process for processes in own for process in processes]
        if all(kept) and len(set(kept)) == len(kept):
            return [""] * len(ledgers)  # the events say already whose they are
        return [str(index) for index in range(len(ledgers))]
    given_names = [str(name) for name in names]
    if len(given_names) != len(ledgers):
        raise OptionError(
            f"merge() got {len(ledgers)} ledgers and {len(given_names)} names.\n  Hint: one name for each."
        )
    twice = {name for name in given_names if given_names.count(name) > 1}
    if twice:
        raise OptionError(
            f"merge() got the name {min(twice)!r} for several ledgers; then their events could not be told apart.\n"
            "  Hint: name them by host or process index."
        )
    return given_names


def _under(name: str, process: str) -> str:
    return "/".join(filter(None, [name, process]))


def _calls(index: int, ledger: Ledger, name: str) -> Iterator[tuple[float, int, int, list[Event]]]:
    """The calls of one ledger, by when they began; a call's events need not stand together in a merged ledger."""
    calls: dict[tuple[str, int], list[Event]] = {}
    for position, event in enumerate(ledger.events):
        events = calls.setdefault((event.process, event.call or -position - 1), [])
        events.append(replace(event, process=_under(name, event.process)))
    begun = ((min(event.start for event in events), index, at, events) for at, events in enumerate(calls.values()))
    return iter(sorted(begun, key=lambda call: call[:3]))
