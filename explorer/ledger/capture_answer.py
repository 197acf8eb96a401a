"""What a running watch knows of a captured function: how often it was compiled, and why again."""

from __future__ import annotations

from explorer.analysis.questions.catalogue import reply
from explorer.ledger.recorder import recorder
from explorer.model.answers import Answer
from explorer.model.capture import Capture
from explorer.model.events.ledger import Ledger
from explorer.model.units import count_text


def recompilations(capture: Capture) -> Answer | None:
    """The answer of the first watch that is on and saw the function compile; None where none is on."""
    watches = [watch for watch in recorder.watches if isinstance(watch, Ledger)]
    for watch in watches:
        for row in watch.functions():
            compiles = row.compiles + row.cache_hits
            if compiles and row.name == capture.function and row.file in ("", capture.file):
                text = f"{row.name} was compiled {count_text(compiles, 'time')} since the watch began."
                is_again = row.last is not None and row.last.reason.kind != "first"
                return reply("recompiled", text + f" The last time: {row.last and row.last.reason}." * is_again)
    if not watches:
        return None
    return reply("recompiled", f"{capture.function} was not compiled since the watch began.")
