"""The message to the browser: the new rows of tables that only grow, and the complete current status.

JSON, as it is mostly numbers in columns, which gzip packs well. Times are whole milliseconds, durations microseconds.
"""

from __future__ import annotations

import gzip
import json
import time
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict
from os.path import basename
from typing import Any

from explorer.model.events.event import Event, Place
from explorer.model.events.ledger import Ledger
from explorer.model.events.variations import Variation, Variations
from explorer.model.units import duration_text
from explorer.view.ledger.calls import Call, Fold, cause_of_storm, times, verdict_of

VERSION = 1
COLUMNS = (
    "number", "function", "stack", "start", "trace", "lower", "compile", "saved", "reason", "flags", "id", "thread",
    "device", "error", "process",
)  # fmt: skip
HIT, MISS, AGAIN = 1, 2, 4  # flags
_TABLES = ("strings", "places", "reasons", "functions", "stacks", "calls")


class Tables:
    """Rows of one ledger's calls, functions, places, stacks, reasons and strings for the browser; they only grow."""

    def __init__(self) -> None:
        self.fold = Fold()
        self.rows: dict[str, list[Any]] = {name: [] for name in _TABLES}
        self._numbers: dict[str, dict[Hashable, int]] = {name: {} for name in _TABLES}
        self._strings("")  # number 0 is the empty string

    def add(self, events: Iterable[Event]) -> None:
        before = len(self.fold.calls)
        self.fold.add(events)
        self.rows["calls"] += [self._call(call) for call in self.fold.calls[before:]]

    @property
    def sizes(self) -> dict[str, int]:
        return {name: len(rows) for name, rows in self.rows.items()}

    def since(self, sizes: Mapping[str, int]) -> dict[str, Any]:
        """Return a message with the rows of each table after its first `sizes[table]`, or all rows for a missing name.

        Calls are columns; their starts are differences from the call before.
        """
        new = {name: self.rows[name][sizes.get(name, 0) :] for name in _TABLES}
        calls = new.pop("calls")
        columns: dict[str, list[int]] = {name: [row[i] for row in calls] for i, name in enumerate(COLUMNS)}
        start = 0  # as differences: small numbers, which pack well
        for i, at in enumerate(columns["start"]):
            columns["start"][i], start = at - start, at
        return {"version": VERSION, "from": dict(sizes), **new, "calls": columns}

    def _call(self, call: Call) -> tuple[int, ...]:
        flags = HIT * call.is_hit + MISS * call.is_miss + AGAIN * call.is_again
        family, reason = call.family, call.reason
        function = (*self._strings(family.name, family.file), family.line, int(family.eager))
        texts = reason.kind, reason.leaf, reason.before, reason.after, reason.fix, str(reason).replace("`", "")
        stack = call.stack or ((call.place,) if call.place else ())
        return (
            call.number,
            self._row("functions", family, function),
            self._row("stacks", stack, tuple(map(self._place, stack))),
            round(call.start * 1e3),
            *(round(seconds * 1e6) for seconds in (call.trace, call.lower, call.compile, call.saved)),
            self._row("reasons", reason, self._strings(*texts)),
            flags,
            *self._strings(call.id, call.thread, call.device, call.error, call.process),
        )

    def _strings(self, *texts: str) -> tuple[int, ...]:
        return tuple(self._row("strings", text, text) for text in texts)

    def _place(self, place: Place) -> int:
        texts = (place.file, place.label or basename(place.file), place.text, place.function)
        return self._row("places", place, (place.line, *self._strings(*texts)))

    def _row(self, table: str, key: Hashable, row: Any) -> int:
        numbers = self._numbers[table]
        if key not in numbers:
            numbers[key] = len(self.rows[table])
            self.rows[table].append(row)
        return numbers[key]


def encode_message(message: Mapping[str, Any]) -> bytes:
    """Return a message as an output contains it: compressed JSON."""
    # Without a time, because a view is named by a hash of its data.
    return gzip.compress(json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode(), 9, mtime=0)


_FUNCTIONS = 12
_CALLS = 500  # the last ones of each function: a live view computes this at each change
_CONSTANT = 40  # arguments of one function
_VALUES = 8


def _rows(variations: Variations) -> list[dict[str, Any]]:
    rows = [_row(row.leaf or "the call", row.aspect, row) for row in variations.varying]
    constant: dict[str, list[Variation]] = {}
    for row in variations.rows:
        if row.leaf and (row.aspect in ("dtype", "value") or row.aspect.startswith("shape[")):
            constant.setdefault(row.leaf, []).append(row)
    settled = [(path, text) for path, rows in constant.items() if (text := _constant(rows))]
    rows += [
        {"path": path, "aspect": "", "values": [[text, variations.calls]], "distinct": 1} for path, text in settled
    ]
    return rows[: len(variations.varying) + _CONSTANT]


def _row(path: str, aspect: str, row: Variation) -> dict[str, Any]:
    most = sorted(row.values, key=lambda value: -value.count)[:_VALUES]
    values = [[value.text or "none", value.count] for value in most]
    return {"path": path, "aspect": aspect, "values": values, "distinct": len(row.values)}


def _constant(rows: list[Variation]) -> str:
    """Return an array's type with `*` for parts that changed, `float32[*, 128]`, or a value; empty if that changed."""
    by_aspect = {row.aspect: row.values[0].text if row.is_constant else "*" for row in rows}
    if "value" in by_aspect:
        return by_aspect["value"] if by_aspect["value"] != "*" else ""
    sizes = [text for aspect, text in by_aspect.items() if aspect.startswith("shape[")]
    return f"{by_aspect.get('dtype', '*')}[{', '.join(sizes)}]"


MOST = 30_000  # events in an output: the oldest beyond are left out, with a note
_CELLS = 500  # the latest


def tables_of(ledger: Ledger) -> tuple[Tables, int]:
    """Return the tables of the latest `MOST` events, and the number of events left out."""
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
    """Return the status, and the rows that a reader with tables of `sizes` rows lacks; None for all rows."""
    return {**tables.since(sizes or {}), "status": _status(ledger, tables, left_out)}


def is_on(ledger: Ledger) -> bool:
    """Return True if the ledger still grows: a watch that was not stopped."""
    return bool(getattr(ledger, "on", False))


def _status(ledger: Ledger, tables: Tables, left_out: int) -> dict[str, Any]:
    again = [row for row in ledger.functions() if row.recompiles and not row.eager][:_FUNCTIONS]  # dearest first
    varying = [(row.name, ledger.varying(row.name, calls=_CALLS)) for row in again]
    return {
        "verdict": asdict(verdict_of(tables.fold.calls)),
        "storms": [
            {
                "function": storm.function,
                "text": [
                    (storm.function, True),
                    (f" compiled {times(storm.compiles)}: {duration_text(storm.seconds)}", False),
                ],
                "cause": cause_of_storm(storm),
                "cure": storm.cure,
            }
            for storm in ledger.storms
        ],
        "foreseen": [
            {"text": item.text, "cure": item.fix, "function": item.function}
            for item in ledger.predictions
            if not item.came_true
        ],
        "running": [
            {
                "function": item.function,
                "place": str(item.call_site) if item.call_site is not None else "",
                "stage": item.stage,
                "since": item.since,
            }
            for item in getattr(ledger, "running", ())
        ],
        "cells": _cells(ledger, tables),
        "varying": [{"function": name, "rows": _rows(each)} for name, each in dict(varying).items() if each.calls > 1],
        "notes": notes_of(ledger, left_out),
        "now": time.time(),
        "watching": is_on(ledger),
    }


def _cells(ledger: Ledger, tables: Tables) -> list[tuple[str, float, float]]:
    """Return the latest cells that compiled, as (name, start, end) in seconds; empty if cells are not recorded."""
    starts = sorted(call.start for call in tables.fold.calls)
    ran: Sequence[tuple[str, float, float]] = getattr(ledger, "cells", ())
    return [cell for cell in ran if bisect_left(starts, cell[1]) < bisect_right(starts, cell[2])][-_CELLS:]


def notes_of(ledger: Ledger, left_out: int = 0) -> list[str]:
    """Return sentences on events that are not shown and on failures of the ledger; often empty."""
    notes = [ledger.note] if ledger.note else []
    if ledger.dropped:
        notes.append(f"The oldest {ledger.dropped:,} events were dropped: watch(limit=…) keeps more.")
    if ledger.spilled:
        notes.append(f"The oldest {ledger.spilled:,} events are in the file that they were spilled to.")
    if left_out:
        notes.append(f"The oldest {left_out:,} events are not in this view; the ledger has them.")
    if faults := getattr(ledger, "faults", ()):
        notes.append(
            f"The ledger itself failed {times(len(faults))}, most recently: {faults[-1]!r}. No call was affected."
        )
    return notes
