"""A ledger in one line, without times or addresses: the same on every machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from explorer.model.events.ledger import Ledger
    from explorer.model.events.tally import Summary

__all__ = ["counted", "told"]


def told(ledger: Ledger) -> str:
    """`5 compiles of 2 functions; step: batch['x'].shape[0] changed 3 times`."""
    rows = ledger.functions()
    own = [row for row in rows if not row.eager]
    operations = sum(row.compiles + row.cache_hits for row in rows if row.eager)
    parts = [_compiles(own, operations)]
    worst = min(own, key=lambda row: (-row.recompiles, row.name, row.file, row.line), default=None)
    if worst is not None and worst.recompiles:
        parts.append(_why(worst))
    if ledger.dropped:
        parts.append(f"the oldest {counted(ledger.dropped, 'event')} dropped")
    if ledger.spilled:
        parts.append(f"the oldest {counted(ledger.spilled, 'event')} spilled")
    return "; ".join([*parts, *([ledger.note] if ledger.note else [])])


def _compiles(own: list[Summary], operations: int) -> str:
    compiled = sum(row.compiles + row.cache_hits for row in own)
    hits = sum(row.cache_hits for row in own)
    text = counted(compiled, "compile")
    if own:
        text += f" of {counted(len(own), 'function')}"
    if hits:
        text += f", {'all' if hits == compiled else hits} from the persistent cache"
    return text + (f", {operations} of single operations" if operations else "")


def _why(worst: Summary) -> str:
    if worst.varying:
        leaf, count = worst.varying[0]
        return f"{worst.name}: {leaf} changed {_times(count)}"
    kind, count = worst.reasons[0]
    return f"{worst.name}: compiled again {_times(count)} ({kind})"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")
