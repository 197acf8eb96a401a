"""The ledger as the browser reads it: tables that only grow, so that what is new is a slice of each.

JSON, for it is mostly numbers in columns, which gzip packs well; times are whole milliseconds, durations microseconds.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Hashable, Iterable, Mapping
from os.path import basename
from typing import Any

from explorer.model.events.event import Event, Place, Reason
from explorer.view.ledger.calls import Call, Family, Fold

VERSION = 1
COLUMNS = (
    "number", "function", "stack", "start", "trace", "lower", "compile", "saved", "reason", "flags", "id", "thread",
    "device", "error", "process",
)  # fmt: skip
HIT, MISS, AGAIN = 1, 2, 4  # flags
_TABLES = ("strings", "places", "reasons", "functions", "stacks", "calls")


class Tables:
    """The tables of one ledger; `add` what happened, `since` gives what a reader lacks."""

    def __init__(self) -> None:
        self.fold = Fold()
        self.rows: dict[str, list[Any]] = {name: [] for name in _TABLES}
        self._numbers: dict[str, dict[Hashable, int]] = {name: {} for name in _TABLES}
        self._string("")  # 0 is nothing

    def add(self, events: Iterable[Event]) -> None:
        before = len(self.fold.calls)
        self.fold.add(events)
        self.rows["calls"] += [self._call(call) for call in self.fold.calls[before:]]

    @property
    def sizes(self) -> dict[str, int]:
        return {name: len(rows) for name, rows in self.rows.items()}

    def since(self, sizes: Mapping[str, int]) -> dict[str, Any]:
        """What is new to a reader that has tables of these sizes; calls as columns."""
        new = {name: self.rows[name][sizes.get(name, 0) :] for name in _TABLES}
        calls = new.pop("calls")
        columns: dict[str, list[int]] = {name: [row[i] for row in calls] for i, name in enumerate(COLUMNS)}
        start = 0  # as differences: small numbers, which pack well
        for i, at in enumerate(columns["start"]):
            columns["start"][i], start = at - start, at
        return {"version": VERSION, "from": dict(sizes), **new, "calls": columns}

    def _call(self, call: Call) -> tuple[int, ...]:
        flags = HIT * call.is_hit + MISS * call.is_miss + AGAIN * call.is_again
        return (
            call.number,
            self._function(call.family),
            self._stack(call.stack or ((call.place,) if call.place else ())),
            round(call.start * 1e3),
            *(round(seconds * 1e6) for seconds in (call.trace, call.lower, call.compile, call.saved)),
            self._reason(call.reason),
            flags,
            *(self._string(text) for text in (call.id, call.thread, call.device, call.error, call.process)),
        )

    def _string(self, text: str) -> int:
        return self._row("strings", text, text)

    def _place(self, place: Place) -> int:
        texts = (place.file, place.label or basename(place.file), place.text, place.function)
        return self._row("places", place, (place.line, *map(self._string, texts)))

    def _reason(self, reason: Reason) -> int:
        texts = (reason.kind, reason.leaf, reason.before, reason.after, reason.fix, str(reason).replace("`", ""))
        return self._row("reasons", reason, tuple(map(self._string, texts)))

    def _function(self, family: Family) -> int:
        row = (self._string(family.name), self._string(family.file), family.line, int(family.eager))
        return self._row("functions", family, row)

    def _stack(self, stack: tuple[Place, ...]) -> int:
        return self._row("stacks", stack, tuple(map(self._place, stack)))

    def _row(self, table: str, key: Hashable, row: Any) -> int:
        numbers = self._numbers[table]
        if key not in numbers:
            numbers[key] = len(self.rows[table])
            self.rows[table].append(row)
        return numbers[key]


def encode_message(message: Mapping[str, Any]) -> bytes:
    """A message as an output carries it."""
    return gzip.compress(json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode(), 9, mtime=0)
