"""A recompile storm is warned of once, at the user's line, while it can still be stopped."""

from __future__ import annotations

import warnings
from typing import Protocol

from explorer.errors import RecompilationWarning
from explorer.model.events.event import Event
from explorer.model.events.family_counts import Storm, warned_functions


class _Watching(Protocol):
    def storm_of(self, event: Event) -> Storm | None: ...

    def fault(self, error: BaseException) -> None: ...


class StormWarning:
    """Warns when a function is compiled more often than its watch allows: once for each function, in the user's time.

    Args:
        watching: The watch whose events it gets.
    """

    def __init__(self, watching: _Watching) -> None:
        self._watching = watching
        self._on = True
        warned_functions.begin()

    def ended(self, events: tuple[Event, ...]) -> None:
        """A call is over."""
        try:
            storm = self._watching.storm_of(events[-1]) if events else None
            if storm is not None and warned_functions.add(*storm.family[1:]):
                warn(storm)
        except Exception as error:  # the user's own way of showing warnings
            self._watching.fault(error)

    def close(self) -> None:
        """The watch is over. Twice is as once."""
        if self._on:
            self._on = False
            warned_functions.end()


def warn(storm: Storm) -> None:
    """Show the warning at the line of the storm's last call; a filter that makes it an error only has it shown."""
    file, line = (storm.at.file, storm.at.line) if storm.at is not None else storm.family[2:]
    file, line = file or "<explorer>", max(line, 1)
    try:
        # Shown at this very line, once by us alone: without the registry of earlier warnings.
        warnings.warn_explicit(storm.text, RecompilationWarning, file, line)
    except RecompilationWarning as error:  # the call has its result by now, and must not lose it
        warnings.showwarning(error, RecompilationWarning, file, line)
