"""What was compiled, when and why, as the body of a report."""

from __future__ import annotations

from typing import Any

from explorer.files.reports.report import fields_of, plain
from explorer.model.events.event import Event
from explorer.model.events.family_counts import Storm
from explorer.model.events.ledger import Ledger
from explorer.model.events.process_ledger import ProcessLedger

_FUNCTION = ("name", "file", "line", "process", "eager", "compiles", "cache_hits", "recompiles", "seconds", "share")


def ledger_body(ledger: Ledger) -> dict[str, Any]:
    """A ledger: the functions by cost, each recompile with its reason and cure, and what recompiles too often."""
    recompiles = ledger.recompiles(eager=True)
    return {
        "summary": [repr(ledger).partition("(")[2].removesuffix(")"), *(storm.text for storm in ledger.storms)],
        "totals": fields_of(ledger.totals, "calls", "recompiles", "functions", "compiles", "cache_hits", "seconds"),
        "functions": [
            {**fields_of(row, *_FUNCTION), "reasons": dict(row.reasons), "varying": dict(row.varying)}
            for row in ledger.functions()
        ],
        "recompiles": [_recompile(event) for event in recompiles],
        "storms": [_storm(storm) for storm in ledger.storms],
        "dropped": ledger.dropped,
        "spilled": ledger.spilled,
        "note": ledger.note,
    }


def _recompile(event: Event) -> dict[str, Any]:
    site = event.call_site
    place = {"file": site.file, "line": site.line, "text": site.text} if site is not None else None
    return {**fields_of(event, "function", "id", "kind", "seconds", "process", "reason"), "call_site": place}


def _storm(storm: Storm) -> dict[str, Any]:
    return fields_of(storm, "function", "compiles", "seconds", "changes", "leaf", "cure", "text")


def processes_body(ledger: ProcessLedger) -> dict[str, Any]:
    """One ledger of many processes: each program once, and who compiled another one."""
    programs = ("function", "file", "line", "call_site", "is_shared", "eager", "compiles", "seconds", "slowest")
    return {
        "summary": [each.text for each in ledger.differences] or ["All processes compiled the same programs."],
        "processes": list(ledger.processes),
        "events": ledger.events,
        "programs": [
            {**fields_of(row, *programs), "arguments": dict(row.arguments), "processes": ledger.named(row.processes)}
            for row in ledger
        ],
        "differences": [
            {**fields_of(each, "line", "what", "usual", "here", "is_shared", "text"),
             "processes": ledger.named(each.processes)}
            for each in ledger.differences
        ],
        "notes": plain(ledger.notes),
    }  # fmt: skip
