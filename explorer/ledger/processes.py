"""Ledgers of many processes: merged from files, gathered by `jax.distributed`, and compared while they compile."""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Iterable
from itertools import count
from os import PathLike
from pathlib import Path
from queue import SimpleQueue

import jax

from explorer._jax.distributed import Processes, processes
from explorer.analysis.recompiles.process_programs import ProcessFold
from explorer.errors import LedgerFileError, NotRecordedError, OptionError, ProcessWarning, ResultFileError
from explorer.files import results
from explorer.files.disk import process_names, read_start, with_files
from explorer.files.ledger_lines import read_into
from explorer.model.events.event import Event
from explorer.model.events.family_counts import Prediction
from explorer.model.events.ledger import Ledger
from explorer.model.events.process_ledger import ProcessLedger

_PATIENCE = 60.0  # seconds that one process may be ahead of another in what it compiles
_gathers = count()
_watches = count()

Source = Ledger | ProcessLedger | str | PathLike[str]


def merge_ledgers(ledgers: Source | Iterable[Source], /, *, names: Iterable[str] | None = None) -> ProcessLedger:
    """Merge the ledgers of many processes: each program once, with the processes that compiled another one than most.

    Files are read one after another and not kept. Memory grows with the distinct programs, not with the events.

    Args:
        ledgers: One per process: a `Ledger`, a file of `Ledger.save` or of a spill, or a folder of such files; or
            results of this function, also saved ones.
        names: Names of the processes; by default the file names, or 0, 1, ….

    Raises:
        OptionError: There is nothing to merge, or not one name per ledger.
        LedgerFileError: A file is no ledger, was altered, or is from a newer Explorer.
        OSError: A file can't be read.

    Example:
        >>> import explorer
        >>> first, second = explorer.Ledger(), explorer.Ledger()
        >>> for ledger in (first, second):
        ...     ledger.add((explorer.types.Event("compile", "step", reason=explorer.types.Reason("first"),
        ...         seconds=0.5, call=1),))
        >>> explorer.merge_ledgers([first, second])
        ProcessLedger(1 program of 2 processes, 1 compiled by all; no process compiled a different program)
    """
    alone = isinstance(ledgers, (Ledger, ProcessLedger, str, PathLike))
    sources = with_files([ledgers] if alone else ledgers)
    wanted = None if names is None else [str(name) for name in names]
    if not sources:
        raise OptionError("merge_ledgers got no ledger.\n  Hint: merge_ledgers('folder'), of files of Ledger.save.")
    if wanted is not None and len(wanted) != len(sources):
        raise OptionError(f"merge_ledgers got {len(sources):,} ledgers and {len(wanted):,} names; one for each.")
    fold = ProcessFold()
    own = process_names(sources)
    for at, source in enumerate(sources):
        _take(fold, source, wanted[at] if wanted is not None else own[at])
    return fold.ledger()


def gather_ledgers(ledger: Ledger, /, *, seconds: float = 60.0) -> ProcessLedger:
    """Return one ledger of all processes of `jax.distributed`; every process calls this, and each gets the whole.

    Args:
        ledger: The ledger of this process, returned by `watch`.
        seconds: How long to wait for the others.

    Raises:
        NotRecordedError: There are no other processes, or a process didn't come in time.

    Example:
        >>> import explorer
        >>> with explorer.watch() as ledger:
        ...     pass
        >>> explorer.gather_ledgers(ledger)
        Traceback (most recent call last):
            ...
        explorer.errors.NotRecordedError: there are no other processes here.
          Hint: gather_ledgers is for those that jax.distributed.initialize() connects; merge_ledgers takes saved files.
    """
    shared = processes()
    if shared is None:
        raise NotRecordedError(
            "there are no other processes here.\n  Hint: gather_ledgers is for those that jax.distributed.initialize() "
            "connects; merge_ledgers takes saved files."
        )
    fold = ProcessFold(jax.local_device_count())
    _take(fold, ledger, str(shared.index))
    # The store that processes share takes a key only once.
    turn = next(_gathers)
    try:
        shared.write(f"explorer/ledger/{turn}/{shared.index}", results.encode(fold.ledger()))
        if shared.index == 0:
            whole = ProcessFold()
            for index in range(shared.count):
                data = shared.read(f"explorer/ledger/{turn}/{index}", seconds)
                whole.add_ledger(results.decode(ProcessLedger, data))
            shared.write(f"explorer/ledger/{turn}/all", results.encode(whole.ledger()))
        # Process 0 may first wait for each of the others as long.
        data = shared.read(f"explorer/ledger/{turn}/all", (shared.count + 1) * seconds)
    except TimeoutError as error:
        raise NotRecordedError(
            f"not every process gathered its ledger: {error}.\n  Hint: all {shared.count} of them call gather_ledgers."
        ) from error
    return results.decode(ProcessLedger, data)


class _Sink:
    """Receiver of a file's events for a fold."""

    def __init__(self, fold: ProcessFold) -> None:
        self.add = fold.add

    def predict(self, predictions: Iterable[Prediction]) -> None:
        # Predictions of one process are no part of the fold.
        ...


def _take(fold: ProcessFold, source: Ledger | ProcessLedger | Path, name: str) -> None:
    if isinstance(source, ProcessLedger):
        fold.add_ledger(source)
        return
    if isinstance(source, Ledger):
        fold.begin(name)
        fold.add(source.events)
        fold.notes += [f"{name}: {source.note}"] if source.note else []
        return
    if read_start(source, 20, "a ledger", LedgerFileError) == b'{"explorer":"result"':
        try:
            fold.add_ledger(ProcessLedger.load(source))
        except ResultFileError as error:
            raise LedgerFileError(f"{source}: {error}") from error
        return
    fold.begin(name)
    try:
        dropped, note = read_into(_Sink(fold), source)
    except LedgerFileError as error:
        raise LedgerFileError(f"{source}: {error}") from error
    fold.notes += [f"{name}: {dropped:,} older events were dropped"] if dropped else []
    fold.notes += [f"{name}: {note}"] if note else []


class ProcessComparison:
    """Compares the programs of this process with those of the first one, as soon as either begins to compile.

    That is before the program runs: two processes that run different programs over devices of both wait for each other
    for ever, and then it is too late. Only programs that span several processes count.
    """

    def __init__(self, shared: Processes) -> None:
        self._shared = shared
        self._local_devices = jax.local_device_count()
        self._prefix = f"explorer/programs/{next(_watches)}"
        self._counts: Counter[str] = Counter()
        self._queue: SimpleQueue[tuple[str, ProcessLedger] | None] = SimpleQueue()
        # A daemon: a wait for process 0 must not keep this process from its end.
        if shared.index:
            threading.Thread(target=self._compare, name="explorer-processes", daemon=True).start()

    def starting(self, done: tuple[Event, ...], event: Event) -> None:
        fold = ProcessFold(self._local_devices)
        fold.begin(str(self._shared.index))
        fold.add((event,))
        ledger = fold.ledger()
        if not ledger.rows or ledger.rows[0].eager or not ledger.rows[0].is_shared:
            return
        row = ledger.rows[0]
        name = f"{row.file}:{row.line}:{row.function}"
        self._counts[name] += 1
        key = f"{self._prefix}/{name}/{self._counts[name]}"
        if self._shared.index == 0:
            self._shared.write(key, results.encode(ledger))
        else:
            self._queue.put((key, ledger))

    def ended(self, events: tuple[Event, ...]) -> None:
        pass  # it was compared when its compile began

    def close(self) -> None:
        self._queue.put(None)

    def _compare(self) -> None:
        while (item := self._queue.get()) is not None:
            key, ledger = item
            try:
                first = results.decode(ProcessLedger, self._shared.read(key, _PATIENCE))
            except TimeoutError:
                row = ledger.rows[0]
                text = (
                    f"process 0 compiled no program for {row.place} in the {_PATIENCE:g} s since process "
                    f"{self._shared.index} did; its arrays are on devices of several processes, which may wait for ever"
                )
                warn_at(text, ProcessWarning, row.file, row.line)
                continue
            except Exception:  # the service is gone, and JAX with it
                return
            fold = ProcessFold()
            fold.add_ledger(first)
            fold.add_ledger(ledger)
            for difference in fold.ledger().differences:
                warn_at(difference.text, ProcessWarning, ledger.rows[0].file, difference.line)


def warn_at(text: str, kind: type[Warning], file: str, line: int) -> None:
    """Show a warning at a line. A filter that makes it an error doesn't raise it: no call may lose its result."""
    place = (file or "<explorer>", max(line, 1))
    try:
        # Shown at this very line, once by us alone: without the registry of earlier warnings.
        warnings.warn_explicit(text, kind, *place)
    except kind as error:
        warnings.showwarning(error, kind, *place)
