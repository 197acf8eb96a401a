"""What each function has cost so far: kept up event by event, so that it outlives the events that are dropped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from explorer.model.events.event import Event, Place, Reason
from explorer.model.units import count_text

FamilyKey = tuple[str, str, str, int]  # process, name, file and line of a family
BUILDING = ("trace", "lower", "compile", "cache-hit")  # the kinds that had something to build


def family_key(event: Event) -> FamilyKey:
    """Which family an event is of; where its key could not be seen, the name alone says it."""
    if event.key is None:
        return event.process, event.function, "", 0
    return event.process, *event.key.function.family


@dataclass(frozen=True, slots=True)
class Totals:
    """What compiling cost in all, events that were dropped included.

    Args:
        calls: Calls that left the fast path.
        recompiles: Those of them that had to trace or compile again.
        functions: How many families there are, without single operations.
        traces, lowers, compiles, cache_hits, misses: Events of each kind.
        trace, lower, compile: Seconds of each; fetching from the persistent cache counts as compiling.
        saved: Seconds that the persistent cache spared.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> xs = [jnp.ones(n) for n in (3, 3, 4)]
        >>> double = jax.jit(lambda x: x * 2)
        >>> with explorer.watch() as ledger:
        ...     _ = [double(x) for x in xs]
        >>> ledger.totals.functions, ledger.totals.compiles, ledger.totals.recompiles, ledger.totals.seconds > 0
        (1, 2, 1, True)
    """

    calls: int = 0
    recompiles: int = 0
    functions: int = 0
    traces: int = 0
    lowers: int = 0
    compiles: int = 0
    cache_hits: int = 0
    misses: int = 0
    trace: float = 0.0
    lower: float = 0.0
    compile: float = 0.0
    saved: float = 0.0

    @property
    def seconds(self) -> float:
        """Tracing, lowering and compiling together."""
        return self.trace + self.lower + self.compile


@dataclass(frozen=True, slots=True)
class Summary(Totals):
    """One function's row: every event of its family, those that were dropped included.

    Args:
        name: The function's.
        file, line: Where it is defined; empty and 0 if that could not be seen.
        process: Which process it is of, where several were merged.
        eager: It is one of JAX's own, compiled for a single operation outside of any `jit`.
        share: Its part of the whole ledger's seconds, from 0 to 1.
        reasons: Why it was built again: kinds with their counts, the most frequent first; without `first`.
        varying: What changed: leaves with their counts, the most frequent first.
        last: Its last event.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> xs = [jnp.ones(n) for n in (3, 3, 4)]
        >>> double = jax.jit(lambda x: x * 2)
        >>> with explorer.watch() as ledger:
        ...     _ = [double(x) for x in xs]
        >>> row, = ledger.functions()
        >>> row.name, row.compiles, row.recompiles, row.reasons, row.leaf
        ('<lambda>', 2, 1, (('shape', 1),), 'x.shape[0]')
    """

    name: str = ""
    file: str = ""
    line: int = 0
    process: str = ""
    eager: bool = False
    share: float = 0.0
    reasons: tuple[tuple[str, int], ...] = ()
    varying: tuple[tuple[str, int], ...] = ()
    last: Event | None = None

    @property
    def leaf(self) -> str:
        """The leaf that changed most often; empty if none did."""
        return self.varying[0][0] if self.varying else ""

    def __repr__(self) -> str:
        where = f" at {self.file}:{self.line}" if self.file else ""
        why = ", ".join(f"{kind} {count}" for kind, count in self.reasons)
        again = f"; again for {why}" if why else ""
        leaf = f"; {self.leaf} varies" if self.leaf else ""
        return f"Summary({self.name}{where}: {count_text(self.compiles + self.cache_hits, 'compile')}{again}{leaf})"


@dataclass(slots=True)
class Cause:
    """One reason, however often it came.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> xs = [jnp.ones(n) for n in (3, 4, 5)]
        >>> double = jax.jit(lambda x: x * 2)
        >>> with explorer.watch() as ledger:
        ...     _ = [double(x) for x in xs]
        >>> cause = ledger.family_counts[0].main_cause()
        >>> cause.count, cause.last.leaf, cause.last.after
        (2, 'x.shape[0]', '5')
    """

    count: int
    last: Reason


@dataclass(slots=True)
class FamilyCounts:
    """The counts of one family.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> xs = [jnp.ones(n) for n in (3, 3, 4)]
        >>> double = jax.jit(lambda x: x * 2)
        >>> with explorer.watch() as ledger:
        ...     _ = [double(x) for x in xs]
        >>> counts, = ledger.family_counts
        >>> counts.recompiles, counts.counts["compile"], counts.total > 0
        (1, 2, True)
    """

    key: FamilyKey
    eager: bool = False
    call: int = 0  # the last one counted
    is_built: bool = False  # whether that call is among `built`
    calls: int = 0
    built: int = 0  # calls that had to trace, lower or compile
    recompiles: int = 0
    counts: dict[str, int] = field(default_factory=dict[str, int])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    saved: float = 0.0
    causes: dict[tuple[str, str], Cause] = field(default_factory=dict[tuple[str, str], Cause])
    sites: dict[Place | None, int] = field(default_factory=dict["Place | None", int])  # builds; of eager ones alone
    last: Event | None = None

    @property
    def total(self) -> float:
        """Seconds so far; what a miss took was no compiling."""
        return sum(self.seconds.values()) - self.seconds.get("miss", 0.0)

    def add(self, event: Event) -> bool:
        """Count an event. True if it is the first of a call that had to build something again."""
        kind = event.kind
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.seconds[kind] = self.seconds.get(kind, 0.0) + event.seconds
        self.saved += event.saved
        self.last = event
        if event.call != self.call or not event.call:
            self.call, self.is_built = event.call, False
            self.calls += 1
        if self.is_built or kind not in BUILDING:
            return False
        self.is_built = True
        if event.key is not None and event.key.function.is_ahead:
            return False
        self.built += 1
        if self.eager:
            self.sites[event.call_site] = self.sites.get(event.call_site, 0) + 1
        return self._again(event)

    def _again(self, event: Event) -> bool:
        reason = event.reason
        # Where only a name is known, the first of it counts as a first; so does one whose trace raised.
        is_unexplained = reason.kind == "raised" or (reason.kind == "unknown" and event.key is None)
        if reason.kind == "first" or (self.built == 1 and is_unexplained):
            return False
        cause = self.causes.setdefault((reason.kind, reason.leaf), Cause(0, reason))
        cause.count += 1
        cause.last = reason
        self.recompiles += 1
        return True

    def main_cause(self) -> Cause | None:
        """The reason that came most often; of equally many the earliest."""
        return max(self.causes.values(), key=lambda cause: cause.count, default=None)

    def summary(self, whole: float) -> Summary:
        process, name, file, line = self.key
        kinds: dict[str, int] = {}
        leaves: dict[str, int] = {}
        for (kind, leaf), cause in self.causes.items():
            kinds[kind] = kinds.get(kind, 0) + cause.count
            if leaf:
                leaves[leaf] = leaves.get(leaf, 0) + cause.count
        return Summary(
            *self._figures(), name=name, file=file, line=line, process=process, eager=self.eager,
            share=self.total / whole if whole else 0.0, reasons=by_frequency(kinds), varying=by_frequency(leaves),
            last=self.last,
        )  # fmt: skip

    def _figures(self) -> tuple[int, int, int, int, int, int, int, int, float, float, float, float]:
        count, seconds = self.counts.get, self.seconds.get
        return (
            self.calls, self.recompiles, 0 if self.eager else 1,
            count("trace", 0), count("lower", 0), count("compile", 0), count("cache-hit", 0), count("miss", 0),
            seconds("trace", 0.0), seconds("lower", 0.0), seconds("compile", 0.0) + seconds("cache-hit", 0.0),
            self.saved,
        )  # fmt: skip

    @classmethod
    def totals_of(cls, families: Iterable[FamilyCounts]) -> Totals:
        """The sums of all."""
        columns = zip(*(counts._figures() for counts in families), strict=True)
        return Totals(*map(sum, columns))  # pyright: ignore[reportArgumentType] - counts stay counts


def by_frequency(counts: dict[str, int]) -> tuple[tuple[str, int], ...]:
    """The most frequent first; of equally many the earlier."""
    return tuple(sorted(counts.items(), key=lambda item: -item[1]))
