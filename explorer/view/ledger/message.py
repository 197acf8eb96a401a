"""The message to the browser: what is new in the tables, and, whole each time, what is the case now."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from explorer.model.events.ledger import Ledger
from explorer.model.units import duration_text
from explorer.view.ledger.variation_tables import variation_tables
from explorer.view.ledger.verdict import Phrase, cause_of_storm, times, verdict_of
from explorer.view.ledger.wire import Tables

MOST = 30_000  # events that an output carries: of more than that, the oldest are left out, and that is said
_CELLS = 500  # the latest


def tables_of(ledger: Ledger) -> tuple[Tables, int]:
    """The tables of what is in a ledger now, of the latest `MOST` events; and how many events were left out."""
    events = ledger.events
    first = max(len(events) - MOST, 0)
    while first and first < len(events) and events[first].call and events[first].call == events[first - 1].call:
        first += 1  # no half of a call
    tables = Tables()
    tables.add(events[first:])
    return tables, first


def message(
    ledger: Ledger, tables: Tables, sizes: Mapping[str, int] | None = None, left_out: int = 0
) -> dict[str, Any]:
    """Everything for a reader that has tables of these sizes; None: it has none yet."""
    return {**tables.since(sizes or {}), "status": _status(ledger, tables, left_out)}


def is_on(ledger: Ledger) -> bool:
    """Whether it still grows: a watch that was not stopped."""
    return bool(getattr(ledger, "on", False))


def _status(ledger: Ledger, tables: Tables, left_out: int) -> dict[str, Any]:
    verdict = verdict_of(tables.fold.calls)
    return {
        "verdict": {
            "kind": verdict.kind,
            "text": verdict.text,
            "cause": verdict.cause,
            "cure": verdict.cure,
            "function": verdict.function,
        },
        "storms": _storms(ledger),
        "foreseen": [
            {"text": item.text, "cure": item.fix, "function": item.function}
            for item in ledger.predictions
            if not item.came_true
        ],
        "running": _running(ledger),
        "cells": _cells(ledger, tables),
        "varying": variation_tables(ledger),
        "notes": notes_of(ledger, left_out),
        "now": time.time(),
        "watching": is_on(ledger),
    }


def _storms(ledger: Ledger) -> list[dict[str, Any]]:
    storms: list[dict[str, Any]] = []
    for storm in ledger.storms:
        text: Phrase = [(storm.function, True)]
        text.append((f" compiled {times(storm.compiles)}: {duration_text(storm.seconds)}", False))
        storms.append(
            {"function": storm.function, "text": text, "cause": cause_of_storm(storm), "cure": storm.cure}
        )  # fmt: skip
    return storms


def _running(ledger: Ledger) -> list[dict[str, Any]]:
    return [
        {
            "function": item.function,
            "place": str(item.call_site) if item.call_site is not None else "",
            "stage": item.stage,
            "since": item.since,
        }
        for item in getattr(ledger, "running", ())
    ]


def _cells(ledger: Ledger, tables: Tables) -> list[tuple[str, float, float]]:
    """The cells in which something was compiled, with their begin and end; none if nobody noted them."""
    starts = sorted(call.start for call in tables.fold.calls)
    ran: Sequence[tuple[str, float, float]] = getattr(ledger, "cells", ())
    return [cell for cell in ran if bisect_left(starts, cell[1]) < bisect_right(starts, cell[2])][-_CELLS:]


def notes_of(ledger: Ledger, left_out: int = 0) -> list[str]:
    """What a reader should know of what is not shown."""
    notes = [ledger.note] if ledger.note else []
    if ledger.dropped:
        notes.append(f"The oldest {ledger.dropped:,} events were dropped: watch(limit=…) keeps more.")
    if ledger.spilled:
        notes.append(f"The oldest {ledger.spilled:,} events are in the file that they were spilled to.")
    if left_out:
        notes.append(f"The oldest {left_out:,} events are not in this view; the ledger has them.")
    if faults := getattr(ledger, "faults", ()):
        notes.append(f"The ledger itself failed {times(len(faults))}, at last: {faults[-1]!r}. No call was affected.")
    return notes
