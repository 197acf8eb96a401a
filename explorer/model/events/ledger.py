"""The ledger: the events of a session, in order, with counts of each function."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from pathlib import PurePath
from threading import RLock
from typing import TYPE_CHECKING, Any, Protocol

from explorer.errors import NotRecordedError
from explorer.model.declared import Charted, declared
from explorer.model.events.event import Event
from explorer.model.events.family_counts import (
    BUILDING,
    STORM,
    FamilyCounts,
    FamilyKey,
    Prediction,
    Storm,
    Summary,
    Totals,
    Which,
    families_of,
    family_key,
)
from explorer.model.events.leaves import Compactor
from explorer.model.events.variations import StackTree, Variations

if TYPE_CHECKING:
    import pandas as pd

LIMIT = 100_000
_BY_WEIGHT = ("compile", "cache-hit", "lower", "trace")  # the representative event of a call
Listener = Callable[[tuple[Event, ...]], None]


class EventFile(Protocol):
    """File for a ledger's oldest events."""

    def write(self, events: Iterable[Event]) -> None: ...


class Ledger(Charted):
    """Record of the traces, lowerings and compiles of a watch. It is thread-safe.

    Args:
        limit: Maximum number of kept events. The oldest are dropped and counted in `dropped`. None keeps all.
        storm: Number of compiles of one function that is too many, see `storms`; 0 for no limit.
        spill: File of JSON lines for the oldest events, instead of dropping them; counted in `spilled` and read by
            `Ledger.load`.

    Raises:
        LedgerFileError: `spill` exists already.

    Example:
        >>> import explorer as ex
        >>> ledger = ex.Ledger()
        >>> ledger.add((ex.types.Event("compile", "step", reason=ex.types.Reason("first"), seconds=0.5, call=1),))
        >>> ledger.add((ex.types.Event("compile", "step", reason=ex.types.Reason("shape", "x.shape[0]", "8", "9"),
        ...     call=2),))
        >>> ledger
        Ledger(2 compiles of 1 function; step: x.shape[0] changed once)
        >>> ledger.recompiles("step")
        (Event(compile step: shape),)
    """

    def __init__(
        self, limit: int | None = LIMIT, *, storm: int = STORM, spill: str | PathLike[str] | None = None
    ) -> None:
        self._events: deque[Event] = deque()
        self._limit = limit
        self.storm = storm
        self.dropped = 0
        self.spilled = 0
        self.note = ""  # what a reader should know of how this came about, in one line
        self._lock = RLock()  # a collection of garbage, and so a finalizer that compiles, can come at any point
        self._compactor = Compactor()
        self._counts: dict[FamilyKey, FamilyCounts] = {}
        self._lost: set[FamilyKey] = set()  # families whose first events are gone
        self._predictions: list[Prediction] = []
        self._listeners: list[Listener] = []
        self._spill = self._open_spill(spill) if spill is not None else None

    @staticmethod
    @declared
    def _open_spill(path: str | PathLike[str]) -> EventFile: ...

    @property
    def events(self) -> tuple[Event, ...]:
        """Return the kept events, oldest first."""
        with self._lock:
            return tuple(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def add(self, events: tuple[Event, ...]) -> None:
        """Append the events of one call, drop events beyond the limit, and call the listeners.

        A listener that raises is removed; its exception never reaches the caller.
        """
        with self._lock:
            compacted = tuple(self._add_to_counts(event) for event in events)
            self._events.extend(compacted)
            self._make_room()
        # Outside of the lock, which a listener's own thread may wait for.
        for listener in tuple(self._listeners):
            try:
                # A listener that fails is ended, as this runs within the user's call.
                listener(compacted)
            except Exception:
                self._end(listener)

    def _add_to_counts(self, event: Event) -> Event:
        family = family_key(event)
        counts = self._counts.get(family)
        if counts is None:
            counts = self._counts[family] = FamilyCounts(family)
        counts.eager = event.key is not None and event.key.function.eager
        if counts.add(event) and self._predictions:
            self._predictions = [prediction.after_event(event) for prediction in self._predictions]
        # Only the compact copy is kept: the event's own key has an object per leaf.
        counts.last = event = self._compactor.event(event, counts.total)
        return event

    def _make_room(self) -> None:
        over = 0 if self._limit is None else len(self._events) - self._limit
        if over <= 0:
            return
        gone = [self._events.popleft() for _ in range(over)]
        self._lost.update(family_key(event) for event in gone if event.kind in BUILDING)
        try:
            if self._spill is not None:
                self._spill.write(gone)
                self.spilled += over
                return
        # A full disk must not stop the user's program.
        except OSError as error:
            self._spill, self.note = None, f"the file for the oldest events can't be written any more: {error}"
        self.dropped += over

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with the events of each call from now on; return a function that removes the listener."""
        # Without the lock: appending is atomic, and `add` walks a copy.
        self._listeners.append(listener)
        return lambda: self._end(listener)

    def _end(self, listener: Listener) -> None:
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def families(self, function: Which) -> set[FamilyKey]:
        """Return the family keys of a function's name, the function itself, or a compile's id (`[step/3]`).

        Raises:
            NotRecordedError: No family matches; the message lists the existing ones.
        """
        with self._lock:
            return families_of(function, self._counts)

    def recompiles(self, function: Which | None = None, *, eager: bool = False) -> tuple[Event, ...]:
        """Return one event per call that traced or compiled again, after the first call of each function.

        Compiles by `ex.compile` don't count; see `Executable.specializations`.

        Args:
            function: Restrict to one function: its name, the function itself, or the id of a compile (`[step/3]`).
            eager: Include single operations outside of any `jit` (`broadcast_in_dim` of a `jnp.ones`), which JAX
                compiles for each shape. An operation named by `function` is always included.

        Returns:
            The `compile` event of each call, or its last event if it didn't compile; oldest first. Empty for a function
            object that the ledger doesn't have.

        Raises:
            NotRecordedError: The ledger has no function of this name; the message lists its functions.
        """
        try:
            wanted = None if function is None else self.families(function)
        except NotRecordedError:
            if isinstance(function, str):  # a name can be misspelt
                raise
            return ()
        # Both under one lock: an event dropped in between would be in neither.
        with self._lock:
            events, seen = self.events, set(self._lost)
        again: dict[tuple[FamilyKey, int], Event] = {}
        firsts: set[tuple[FamilyKey, int]] = set()
        for index, event in enumerate(events):
            if event.kind not in BUILDING or (event.key is not None and event.key.function.is_ahead):
                continue
            family = family_key(event)
            # An event whose call is unknown counts as a call of its own.
            call = (family, event.call or -index - 1)
            if call in again:
                again[call] = min(again[call], event, key=_weight)
            elif call not in firsts:
                is_first = _is_first(event, family in seen)
                seen.add(family)
                if is_first:
                    firsts.add(call)
                elif family in wanted if wanted is not None else eager or not _is_eager(event):
                    again[call] = event
        return tuple(again.values())

    def only(self, function: Which) -> Ledger:
        """Return a new ledger with the kept events of one function.

        Args:
            function: Its name, the function itself, or the id of a compile (`[step/3]`).

        Raises:
            NotRecordedError: No such function is in the ledger.

        Example:
            >>> import explorer, jax, jax.numpy as jnp
            >>> def double(x):
            ...     return x * 2
            >>> def triple(x):
            ...     return x * 3
            >>> x = jnp.ones(3)
            >>> with explorer.watch() as ledger:
            ...     _ = jax.jit(double)(x), jax.jit(triple)(x)
            >>> [row.name for row in ledger.only("double").functions()]
            ['double']
        """
        wanted = self.families(function)
        part = Ledger(None, storm=self.storm)
        part.add(tuple(event for event in self.events if family_key(event) in wanted))
        return part

    def functions(self) -> tuple[Summary, ...]:
        """Return one summary row per function, most expensive first, dropped events included."""
        with self._lock:
            whole = sum(counts_of.total for counts_of in self._counts.values())
            rows = [counts_of.summary(whole) for counts_of in self._counts.values()]
        return tuple(sorted(rows, key=lambda row: -row.seconds))

    @property
    def totals(self) -> Totals:
        """Return the total cost, dropped events included."""
        with self._lock:
            return FamilyCounts.totals_of(self._counts.values())

    @property
    def family_counts(self) -> tuple[FamilyCounts, ...]:
        """Return the counts of each function in order of first appearance, dropped events included."""
        with self._lock:
            return tuple(self._counts.values())

    def counts_of(self, family: FamilyKey) -> FamilyCounts | None:
        return self._counts.get(family)

    @property
    @declared
    def storms(self) -> tuple[Storm, ...]:
        """Return the functions that were compiled more than `storm` times, most compiles first.

        A single operation outside of any `jit` counts if one line compiled it more than `4 * storm` times. With a
        `storm` of 0 there are none.
        """
        ...

    @declared
    def storm_of(self, event: Event) -> Storm | None:
        """Return the `Storm` of an event's function; None if the function isn't in `storms`."""
        ...

    def called(self, file: str) -> str:
        """Return the file's name without its folder, `train.py`; a watch's ledger also gives `cell [4]`."""
        return PurePath(file).name

    @property
    def predictions(self) -> tuple[Prediction, ...]:
        """Return the predicted recompiles, also those that came true.

        A recompile is predicted if a result would replace an argument of another type.
        """
        with self._lock:
            return tuple(self._predictions)

    def predict(self, predictions: Iterable[Prediction]) -> None:
        """Add predictions. A prediction with a known family and leaf is not added again."""
        with self._lock:
            present = {(present.family, present.leaf) for present in self._predictions}
            self._predictions += [new for new in predictions if (new.family, new.leaf) not in present]

    @declared
    def varying(self, function: Which | None = None, *, calls: int | None = None) -> Variations:
        """Return the properties of a function's compiled calls (sizes, dtypes, …), each with all its values.

        Args:
            function: Name, the function itself, or the id of a compile; None for the function with most recompiles.
            calls: Restrict to the last `calls` compiled calls; None for all.

        Raises:
            NotRecordedError: The ledger has no such function, or nothing was compiled.
        """
        ...

    @declared
    def tree(self) -> StackTree:
        """Return the root of a tree of the user's call stacks; each node has its compiles and their seconds."""
        ...

    @declared
    def to_frame(self) -> pd.DataFrame:
        """Return a pandas DataFrame with one row per event; `explorer.files.frames.EVENT` describes the columns.

        Raises:
            MissingPackageError: pandas is not installed.

        Example:
            >>> import explorer, jax, jax.numpy as jnp
            >>> def double(x):
            ...     return x * 2
            >>> x = jnp.ones(3)
            >>> with explorer.watch() as ledger:
            ...     _ = jax.jit(double)(x)
            >>> frame = ledger.to_frame()
            >>> sorted(set(frame["kind"]))
            ['compile', 'lower', 'trace']
        """
        ...

    @declared
    def save(self, path: str | PathLike[str]) -> None:
        """Write everything that is kept as JSON lines; `Ledger.load` reads it.

        Example:
            >>> import explorer, jax, jax.numpy as jnp
            >>> from pathlib import Path
            >>> from tempfile import TemporaryDirectory
            >>> x = jnp.ones(3)
            >>> with explorer.watch() as ledger:
            ...     _ = jax.jit(lambda x: x * 2)(x)
            >>> with TemporaryDirectory() as folder:
            ...     path = Path(folder, "run.jsonl")
            ...     ledger.save(path)
            ...     explorer.Ledger.load(path).totals.compiles
            1
        """
        ...

    @staticmethod
    @declared
    def load(path: str | PathLike[str], *, storm: int = STORM) -> Ledger:
        """Load a ledger from a file of `save` or `spill`. Nothing in the file is executed.

        Raises:
            LedgerFileError: The file is no ledger, was altered, or comes from a newer Explorer.
            OSError: The file can't be read.
        """
        ...

    @staticmethod
    @declared
    def merge(*ledgers: Ledger, names: Iterable[str] | None = None, storm: int = STORM) -> Ledger:
        """Return a new ledger with the events of several processes' ledgers, in the order of the clock.

        Args:
            names: Name of each ledger's process; by default those of the events, or `0`, `1`, ….

        Raises:
            OptionError: The number of names differs from that of the ledgers, or two names are equal.
        """
        ...

    def text(self, width: int = 100) -> str:
        """Return compiles, costs, reasons and fixes as a tree, as `to_text` does.

        Example:
            >>> import explorer, jax, jax.numpy as jnp
            >>> def double(x):
            ...     return x * 2
            >>> x = jnp.ones(3)
            >>> with explorer.watch() as ledger:
            ...     _ = jax.jit(double)(x)
            >>> "double" in ledger.text()
            True
        """
        return self.to_text(width)

    def timeline(self) -> Any:
        """Return a chart of when each function was traced, lowered and compiled.

        In a notebook the chart grows with the ledger.

        Raises:
            MissingPackageError: plotly is not installed: the extra `lab`.
        """
        return self.chart()

    @declared
    def _ipython_display_(self) -> None:
        # A ledger that grows is displayed by its view, which has to know the output to keep it up to date.
        ...

    @declared
    def __repr__(self) -> str: ...

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text("Ledger(…)" if cycle else repr(self))


def _is_first(event: Event, is_seen: bool) -> bool:
    """Return True if the reason is `first`, or if nothing explains an event whose family wasn't built before."""
    kind = event.reason.kind
    is_unexplained = kind == "raised" or (kind == "unknown" and event.key is None)
    return kind == "first" or (is_unexplained and not is_seen)


def _is_eager(event: Event) -> bool:
    return event.key is not None and event.key.function.eager


def _weight(event: Event) -> int:
    return _BY_WEIGHT.index(event.kind)
