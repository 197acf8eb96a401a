"""How long the calls of one function take, however they run; and what a call of each kind takes."""

from __future__ import annotations

from explorer.hotpath.costs import CallCosts
from explorer.hotpath.journal import Times
from explorer.hotpath.running import RunningCalls
from explorer.model.results.hot_paths import Way

_KINDS = 64  # of calls whose times are kept apart


class Clock:
    """Of one function's calls.

    Attributes:
        eager_seconds: What eager calls took, until they returned; of those that ended when `settle` was asked last.
        times: What is kept of single calls, until then too.
    """

    def __init__(self) -> None:
        self.eager_seconds = 0.0
        self.times = Times()
        self._running = RunningCalls()
        self._costs: dict[int, CallCosts] = {}

    def begin(self, way: Way, begun: float = 0.0, stands_for: int = 1, kind: int | None = None) -> object:
        """A call begins that runs in the user's own frame, in which what this gives must lie.

        Args:
            way: How it runs.
            begun: When it began; now, if not given.
            stands_for: For how many calls it is timed.
            kind: Of which kind it is, if it counts for what those take before they are compiled.
        """
        return self._running.begin((way, stands_for, kind), begun)

    def settle(self) -> None:
        """Note the calls that ended meanwhile."""
        for (way, stands_for, kind), begun, ended in self._running.ended():
            if kind is not None:
                self.costs_of(kind).note_before(ended - begun)
            self.eager_seconds += stands_for * (ended - begun)
            self.times.count += stands_for - 1
            self.times.add(begun, ended, way)

    def costs_of(self, kind: int) -> CallCosts:
        """What calls of a kind took; of kinds that come once, there may be thousands."""
        costs = self._costs.get(kind)
        if costs is None:
            if len(self._costs) >= _KINDS:
                self._costs = {kind: costs for kind, costs in self._costs.items() if costs.calls}
            costs = self._costs[kind] = CallCosts()
        return costs

    @property
    def costs(self) -> list[CallCosts]:
        """What calls took, of each kind."""
        self.settle()
        return list(self._costs.values())
