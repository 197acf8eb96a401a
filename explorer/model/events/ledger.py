"""The ledger: the events of a session, in order, and what can be asked of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from os import PathLike
from pathlib import PurePath
from threading import RLock
from typing import TYPE_CHECKING, Any

from explorer.analysis.recompiles.family_names import Which, families_of
from explorer.analysis.recompiles.fixpoint import Prediction
from explorer.analysis.recompiles.storms import STORM, Storm, in_storm, storm_of, storms
from explorer.errors import NotRecordedError
from explorer.model.attached import attached
from explorer.model.displayable import Charted
from explorer.model.events.compaction import Compactor
from explorer.model.events.event import Event
from explorer.model.events.tally import BUILDING, FamilyKey, Summary, Tally, Totals, family_key

if TYPE_CHECKING:
    import pandas as pd

    from explorer.analysis.recompiles.call_tree import Tree
    from explorer.analysis.recompiles.varying import Variations
    from explorer.files.ledger_lines import Spill

__all__ = ["LIMIT", "Ledger"]

LIMIT = 100_000
_MOST_TELLING = ("compile", "cache-hit", "lower", "trace")
Listener = Callable[[tuple[Event, ...]], None]


class Ledger(Charted):
    """What was traced, lowered and compiled while it was watched. Any thread may add and read at any time.

    Args:
        limit: How many events are kept; of more than that the oldest are dropped, and counted in `dropped`. None keeps
            all.
        storm: How many compiles of one function are too many: see `storms`. 0: however many.
        spill: A file of JSON lines that the oldest events go to instead of being dropped, counted in `spilled`;
            `Ledger.load` reads it.

    Raises:
        LedgerFileError: `spill` is there already.

    Example:
        >>> from explorer.model.events.event import Event, Reason
        >>> ledger = Ledger()
        >>> ledger.add((Event("compile", "step", reason=Reason("first"), seconds=0.5, call=1),))
        >>> ledger.add((Event("compile", "step", reason=Reason("shape", "x.shape[0]", "8", "9"), call=2),))
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
        self._storm = storm
        self.dropped = 0
        self.spilled = 0
        self.note = ""  # what a reader should know of how this came about, in one line
        self._lock = RLock()  # a collection of garbage, and so a finalizer that compiles, can come at any point
        self._compactor = Compactor()
        self._tallies: dict[FamilyKey, Tally] = {}
        self._lost: set[FamilyKey] = set()  # families whose first events are gone
        self._predictions: list[Prediction] = []
        self._varied: dict[tuple[frozenset[FamilyKey], int | None], tuple[tuple[int, int, int], Variations]] = {}
        self._listeners: list[Listener] = []
        self._spill: Spill | None = None
        if spill is not None:
            from explorer.files.ledger_lines import Spill

            self._spill = Spill(spill)

    @property
    def events(self) -> tuple[Event, ...]:
        """All that is kept, oldest first."""
        with self._lock:
            return tuple(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def add(self, events: tuple[Event, ...]) -> None:
        """Append the events of one call. A listener that fails is dropped, and never reaches the caller."""
        with self._lock:
            held = tuple(self._count(event) for event in events)
            self._events.extend(held)
            self._make_room()
        for listener in tuple(self._listeners):
            try:
                listener(held)
            except Exception:
                self._end(listener)

    def _count(self, event: Event) -> Event:
        family = family_key(event)
        tally = self._tallies.get(family)
        if tally is None:
            tally = self._tallies[family] = Tally(family)
        tally.eager = event.key is not None and event.key.function.eager
        if tally.add(event) and self._predictions:
            self._predictions = [prediction.after_event(event) for prediction in self._predictions]
        tally.last = event = self._compactor.event(event, tally.total)
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
        except OSError as error:
            self._spill, self.note = None, f"the file for the oldest events can't be written any more: {error}"
        self.dropped += over

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with each call's events; the function that is returned ends it."""
        self._listeners.append(listener)
        return lambda: self._end(listener)

    def _end(self, listener: Listener) -> None:
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def families(self, function: Which) -> set[FamilyKey]:
        """The families that a function's name, the function itself, or a compile's id (`[step/3]`) stands for.

        Raises:
            NotRecordedError: There is none; the message lists those that there are.
        """
        with self._lock:
            return families_of(function, self._tallies)

    def recompiles(self, function: Which | None = None) -> tuple[Event, ...]:
        """One event for each call that had to trace or compile again, beyond the first of each function.

        Args:
            function: Only of this one: its name, the function itself, or the id of a compile (`[step/3]`).

        Returns:
            The call's `compile` if it got that far, else what it did last; oldest first.

        Raises:
            NotRecordedError: No function of that name is in the ledger; the message lists those that are.
        """
        try:
            wanted = None if function is None else self.families(function)
        except NotRecordedError:
            if isinstance(function, str):  # a name can be misspelt
                raise
            return ()
        with self._lock:
            events, seen = self.events, set(self._lost)
        again: dict[tuple[FamilyKey, int], Event] = {}
        firsts: set[tuple[FamilyKey, int]] = set()
        for index, event in enumerate(events):
            if event.kind not in BUILDING:
                continue
            family = family_key(event)
            call = (family, event.call or -index - 1)
            if call in again:
                again[call] = min(again[call], event, key=_tells)
            elif call not in firsts:
                is_unknown = event.reason.kind == "unknown" and event.key is None
                is_first = event.reason.kind == "first" or (is_unknown and family not in seen)
                seen.add(family)
                if is_first:
                    firsts.add(call)
                elif wanted is None or family in wanted:
                    again[call] = event
        return tuple(again.values())

    def only(self, function: Which) -> Ledger:
        """The part of this ledger that is about one function: its name, the function itself, or a compile's id.

        Raises:
            NotRecordedError: No such function is in the ledger.
        """
        wanted = self.families(function)
        part = Ledger(None, storm=self._storm)
        part.add(tuple(event for event in self.events if family_key(event) in wanted))
        return part

    def functions(self) -> tuple[Summary, ...]:
        """A row for each function, the most expensive first; what was dropped counts too."""
        with self._lock:
            whole = sum(tally.total for tally in self._tallies.values())
            rows = [tally.summary(whole) for tally in self._tallies.values()]
        return tuple(sorted(rows, key=lambda row: -row.seconds))

    @property
    def totals(self) -> Totals:
        """What all of it cost; what was dropped counts too."""
        with self._lock:
            return Tally.together(self._tallies.values())

    @property
    def storms(self) -> tuple[Storm, ...]:
        """The functions that were compiled more often than `storm` times, the worst first."""
        with self._lock:
            found = storms(self._tallies.values(), self._storm)
        return tuple(replace(storm, label=self.called(storm.family[2])) for storm in found)

    def storm_of(self, event: Event) -> Storm | None:
        """The storm that an event's function is in; None if it is in none."""
        with self._lock:
            tally = self._tallies.get(family_key(event))
            if tally is None or not in_storm(tally, self._storm):
                return None
            found = storm_of(tally)
        return replace(found, label=self.called(found.family[2]))

    def called(self, file: str) -> str:
        """What a person calls a file: `train.py`; `cell [4]` is for those to say who know the notebook."""
        return PurePath(file).name

    @property
    def predictions(self) -> tuple[Prediction, ...]:
        """Recompiles that were foreseen: what a function returns is of another type than the argument it will be."""
        with self._lock:
            return tuple(self._predictions)

    def predict(self, predictions: Iterable[Prediction]) -> None:
        """Add predictions; one that is there already is not added again."""
        with self._lock:
            known = {(known.family, known.leaf) for known in self._predictions}
            self._predictions += [new for new in predictions if (new.family, new.leaf) not in known]

    def varying(self, function: Which | None = None, *, calls: int | None = None) -> Variations:
        """What of a function's calls was always the same, and what was not: each argument's sizes, dtype, ….

        Args:
            function: Its name, the function itself, or the id of a compile; None for the one with the most recompiles.
            calls: Only of the last so many compiled calls; None for all.

        Raises:
            NotRecordedError: No such function is in the ledger, or nothing was compiled.
        """
        from explorer.analysis.recompiles.varying import varying

        with self._lock:
            families = frozenset(self._worst() if function is None else families_of(function, self._tallies))
            state = sum(self._tallies[family].built for family in families), self.dropped, self.spilled
            known = self._varied.get((families, calls))
            events = self.events
        if known is not None and known[0] == state:
            return known[1]
        found = varying(events, families, calls)
        with self._lock:
            if len(self._varied) >= 64:
                self._varied.clear()
            self._varied[families, calls] = state, found
        return found

    def _worst(self) -> set[FamilyKey]:
        """The family with the most recompiles; of single operations only if there are no others."""
        tallies = [tally for tally in self._tallies.values() if tally.built]
        if not tallies:
            raise NotRecordedError("nothing was compiled while the ledger watched, so nothing varies.")
        return {max(tallies, key=lambda tally: (tally.recompiles, not tally.eager)).key}

    def tree(self) -> Tree:
        """The user's call stacks as a tree, roots first, with what was compiled under each frame and its seconds."""
        from explorer.analysis.recompiles.call_tree import trie

        return trie(self)

    def to_frame(self) -> pd.DataFrame:
        """A row for each event; `explorer.files.ledger_frame.COLUMNS` says what the columns hold.

        Raises:
            MissingPackageError: pandas is not installed.
        """
        from explorer.files.ledger_frame import frame

        return frame(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything that is kept as JSON lines; `Ledger.load` reads it."""
        from explorer.files.ledger_lines import save

        save(self, path)

    @staticmethod
    def load(path: str | PathLike[str], *, storm: int = STORM) -> Ledger:
        """A ledger from a file of `save` or `spill`. Nothing of it is executed.

        Raises:
            LedgerFileError: The file is none of a ledger, was altered, or is of a newer Explorer.
            OSError: It can't be read.
        """
        from explorer.files.ledger_reader import load

        return load(path, storm=storm)

    @staticmethod
    def merge(*ledgers: Ledger, names: Iterable[str] | None = None, storm: int = STORM) -> Ledger:
        """One ledger of several processes' ledgers, in the order of the clock.

        Args:
            names: What to call the processes, one for each ledger; without it those of the events, or `0`, `1`, ….

        Raises:
            OptionError: There are not as many names as ledgers, or two are the same.
        """
        from explorer.analysis.recompiles.merge import merge

        return merge(ledgers, names, storm)

    def text(self, width: int = 100) -> str:
        """What compiled, what it cost, why, and the cure, as a tree: `to_text`."""
        return self.to_text(width)

    def timeline(self) -> Any:
        """A chart of when each function was traced, lowered and compiled; in a notebook it grows while this does.

        Raises:
            MissingPackageError: plotly is not installed: the extra `explorer[lab]`.
        """
        return self.chart()

    @attached
    def _ipython_display_(self) -> None:
        # A ledger that grows is displayed by its view, which has to know the output to keep it up to date.
        ...

    def __repr__(self) -> str:
        from explorer.analysis.recompiles.summary import told

        return f"{type(self).__name__}({told(self)})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text("Ledger(…)" if cycle else repr(self))


def _tells(event: Event) -> int:
    return _MOST_TELLING.index(event.kind)
