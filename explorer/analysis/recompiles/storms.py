"""Which functions of a ledger are compiled again and again."""

from __future__ import annotations

from explorer.model.events.event import Event, Reason
from explorer.model.events.family_counts import FamilyCounts, Storm, family_key
from explorer.model.events.ledger import Ledger

# A model's construction runs one line of a layer for every shape there is; only far more than that is a loop's.
_EAGER = 4


def storms(ledger: Ledger) -> tuple[Storm, ...]:
    """The functions that were compiled more often than the ledger allows, the one with the most compiles first."""
    storming = [_storm(ledger, counts) for counts in ledger.family_counts if _is_storm(counts, ledger.storm)]
    return tuple(sorted(storming, key=lambda storm: -storm.compiles))


def storm_of(ledger: Ledger, event: Event) -> Storm | None:
    """The storm that the function of `event` is in, as far as it has come; None if it is in none."""
    counts = ledger.counts_of(family_key(event))
    return _storm(ledger, counts) if counts is not None and _is_storm(counts, ledger.storm) else None


def _is_storm(counts: FamilyCounts, limit: int) -> bool:
    """True past `limit` compiles of a function; of a single operation, of far more at one line. 0 allows any."""
    if not limit or counts.built <= limit:
        return False
    return not counts.eager or max(counts.sites.values(), default=0) > limit * _EAGER


def _storm(ledger: Ledger, counts: FamilyCounts) -> Storm:
    cause = counts.main_cause()
    last = counts.last
    return Storm(
        counts.key[1],
        counts.key,
        counts.built,
        counts.total,
        cause.count if cause else 0,
        cause.last if cause else Reason("unknown"),
        last.call_site if last else None,
        counts.eager,
        ledger.called(counts.key[2]),
    )
