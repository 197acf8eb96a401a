"""A ledger in one line, without times or addresses: the same on every machine."""

from __future__ import annotations

from explorer.model.events.family_counts import Summary
from explorer.model.events.ledger import Ledger
from explorer.model.units import count_text


def ledger_repr(ledger: Ledger) -> str:
    """`Ledger(5 compiles of 2 functions; step: batch['x'].shape[0] changed 3 times)`."""
    rows = ledger.functions()
    own = [row for row in rows if not row.eager]
    operations = sum(row.compiles + row.cache_hits for row in rows if row.eager)
    parts = [_compiles(own, operations)]
    worst = min(own, key=lambda row: (-row.recompiles, row.name, row.file, row.line), default=None)
    if worst is not None and worst.recompiles:
        parts.append(_why(worst))
    if ledger.dropped:
        parts.append(f"the oldest {count_text(ledger.dropped, 'event')} dropped")
    if ledger.spilled:
        parts.append(f"the oldest {count_text(ledger.spilled, 'event')} spilled")
    parts += [ledger.note] if ledger.note else []
    return f"{type(ledger).__name__}({'; '.join(parts)})"


def _compiles(own: list[Summary], operations: int) -> str:
    compiled = sum(row.compiles + row.cache_hits for row in own)
    hits = sum(row.cache_hits for row in own)
    text = count_text(compiled, "compile")
    if own:
        text += f" of {count_text(len(own), 'function')}"
    if hits:
        text += f", {'all' if hits == compiled else hits} from the persistent cache"
    return text + (f", {operations} of single operations" if operations else "")


def _why(worst: Summary) -> str:
    if worst.varying:
        leaf, count = worst.varying[0]
        return f"{worst.name}: {leaf} changed {_times(count)}"
    kind, count = worst.reasons[0]
    return f"{worst.name}: compiled again {_times(count)} ({kind})"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")
