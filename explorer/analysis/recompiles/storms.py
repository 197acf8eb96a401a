"""Which functions of a ledger are compiled again and again."""

from __future__ import annotations

from explorer.model.events.event import Event, Reason
from explorer.model.events.ledger import Ledger
from explorer.model.events.storm import Storm
from explorer.model.events.tally import Tally, family_key

__all__ = ["storm_of", "storms"]

# A model's construction runs one line of a layer for every shape there is; only far more than that is a loop's.
_EAGER = 4


def storms(ledger: Ledger) -> tuple[Storm, ...]:
    """The functions that were compiled more often than the ledger allows, the one with the most compiles first."""
    found = [_storm(ledger, tally) for tally in ledger.tallies if _is_storm(tally, ledger.storm)]
    return tuple(sorted(found, key=lambda storm: -storm.compiles))


def storm_of(ledger: Ledger, event: Event) -> Storm | None:
    """The storm that the function of `event` is in, as far as it has come; None if it is in none."""
    tally = ledger.tally(family_key(event))
    return _storm(ledger, tally) if tally is not None and _is_storm(tally, ledger.storm) else None


def _is_storm(tally: Tally, limit: int) -> bool:
    """True past `limit` compiles of a function; of a single operation, of far more at one line. 0 allows any."""
    if not limit or tally.built <= limit:
        return False
    return not tally.eager or max(tally.sites.values(), default=0) > limit * _EAGER


def _storm(ledger: Ledger, tally: Tally) -> Storm:
    cause = tally.main_cause()
    last = tally.last
    return Storm(
        tally.key[1],
        tally.key,
        tally.built,
        tally.total,
        cause.count if cause else 0,
        cause.last if cause else Reason("unknown"),
        last.call_site if last else None,
        tally.eager,
        ledger.called(tally.key[2]),
    )
