"""watch(): a ledger of everything that is compiled, from now on."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from os import PathLike
from threading import RLock
from time import time
from types import TracebackType
from typing import Any, Protocol

from explorer._jax.calls import suppress_recording
from explorer._jax.distributed import processes
from explorer.analysis.diff.diff import Diff, diff
from explorer.analysis.questions.catalogue import reply
from explorer.capture.sources import label
from explorer.errors import OptionError, RecompilationWarning
from explorer.ledger.log import EventListener, LineLog, from_environment
from explorer.ledger.processes import ProcessComparison
from explorer.ledger.recorder import recorder
from explorer.ledger.replay import Replay, Replays
from explorer.model.answers import LIVE_ANSWERS, Answer
from explorer.model.capture import Capture
from explorer.model.events.event import Event, Running
from explorer.model.events.family_counts import STORM, Storm, warned_functions
from explorer.model.events.ledger import LIMIT, Ledger
from explorer.model.results.session import remembered
from explorer.model.units import count_text

_FAULTS = 20  # kept; more of them say no more


@remembered
def watch(
    limit: int | None = LIMIT,
    *,
    storm: int = STORM,
    spill: str | PathLike[str] | None = None,
    log: str | PathLike[str] | None = None,
) -> Watch:
    """Record what JAX traces, lowers and compiles, and why, from now on.

    For every `jax.jit` of the process, on all threads. As a context manager, up to the end of the block; else until
    `stop()`, whether or not anybody holds what is returned. Several may be on at once; each sees everything. Calls that
    JAX knows are not slowed down: they stay in its C++. One that leaves it each time, though nothing is compiled, is a
    `miss`: the 1st, 10th, 100th, … of a `jax.jit` are events, and their `count` says for how many calls each stands.

    Where `jax.distributed` connects processes, each of which watches, a `ProcessWarning` comes as soon as one compiles
    another program over devices of several of them than the first one; `explorer.gather_ledgers` has what all compiled.

    Args:
        limit: How many events are kept; of more than that the oldest are dropped, and counted in `.dropped`. None keeps
            all.
        storm: How many compiles of one function are too many: past it comes a `RecompilationWarning`. 0: never.
        spill: A file of JSON lines that the oldest events go to instead of being dropped.
        log: A file that each event is written to at once, as a line that a person can read.

    Returns:
        A `Watch`: a `Ledger` that grows.

    Raises:
        OptionError: `limit` or `storm` is out of range.
        LedgerFileError: `spill` is there already.
        OSError: `log` can't be written.

    Example:
        >>> import explorer as ex, jax, jax.numpy as jnp
        >>> small, large = jnp.ones(2), jnp.ones(3)
        >>> @jax.jit
        ... def double(x):
        ...     return x * 2
        >>> with ex.watch() as ledger:
        ...     _ = double(small), double(small), double(large)
        >>> [event.kind for event in ledger.events]
        ['trace', 'lower', 'compile', 'trace', 'lower', 'compile']
        >>> print(ledger.events[-1].reason)
        `x.shape[0]` was 2 and is now 3
    """
    _check("limit", limit, 1, "all are kept with None")
    _check("storm", storm, 0, "0 never warns")
    shared = processes()
    event_listeners: list[EventListener] = [] if log is None else [LineLog(log)]
    event_listeners += [] if shared is None else [ProcessComparison(shared)]
    return Watch(limit, storm=storm, spill=spill, event_listeners=event_listeners)


def _check(name: str, value: Any, least: int, hint: str) -> None:
    if value is None and name == "limit":
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise OptionError(f"{name} of watch() is {value!r}; allowed is an int of at least {least}: {hint}.")


class Watch(Ledger):
    """A ledger that grows while it is on; `watch` makes it.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> @jax.jit
        ... def double(x):
        ...     return x * 2
        >>> xs = [jnp.ones(n) for n in (3, 3, 4)]
        >>> with explorer.watch() as ledger:
        ...     for x in xs:
        ...         _ = double(x)
        >>> [(event.kind, event.reason.kind) for event in ledger.events if event.kind == "compile"]
        [('compile', 'first'), ('compile', 'shape')]
        >>> ledger.recompiles("double")[0].reason.leaf
        'x.shape[0]'
        >>> ledger.totals.compiles, ledger.functions()[0].name
        (2, 'double')
    """

    def __init__(
        self,
        limit: int | None = LIMIT,
        *,
        storm: int = STORM,
        spill: str | PathLike[str] | None = None,
        event_listeners: Sequence[EventListener] = (),
    ) -> None:
        super().__init__(limit, storm=storm, spill=spill)
        self.event_listeners = tuple(event_listeners)  # called at once, when a compile begins too
        for teller in self.event_listeners:
            self.listen(teller.ended)
        self._faults: deque[BaseException] = deque(maxlen=_FAULTS)
        self._storms = StormWarning(self)
        self.listen(self._storms.ended)
        self.on = True
        self._cells = Cells()
        self._replays = Replays()
        if not recorder.sees_calls:
            self.note = "this JAX hides its calls: names and seconds come from its listeners, reasons can't be known"
        recorder.start(self)

    def stop(self) -> None:
        """Record no more; what was recorded stays. With the last watch JAX is as it was. Twice is as once."""
        self.on = False
        recorder.stop(self)
        self._cells.stop()
        self._storms.close()
        for teller in self.event_listeners:
            teller.close()

    @property
    def running(self) -> tuple[Running, ...]:
        """What is being traced, lowered or compiled right now, on any thread; nothing once it is off."""
        return recorder.running if self.on else ()

    @property
    def cells(self) -> tuple[tuple[str, float, float], ...]:
        """The notebook's cells that ran while it was on: name, start and end in seconds since 1970. None elsewhere."""
        return self._cells.ran

    @property
    def faults(self) -> tuple[BaseException, ...]:
        """What went wrong in the ledger itself, the last few; never in a call that it watched."""
        return tuple(self._faults)

    def called(self, file: str) -> str:
        """What a person calls a file: `train.py`, `cell [4]`."""
        return label(file)

    def fault(self, error: BaseException) -> None:
        """Note that the ledger failed somewhere."""
        # Where it was, as text: a traceback would keep the user's arrays.
        for frame in traceback.extract_tb(error.__traceback__)[-1:]:
            error.add_note(f"at {frame.filename}, line {frame.lineno}, in {frame.name}")
        error.__cause__ = error.__context__ = None
        self._faults.append(error.with_traceback(None))

    def capture(self, event: Event) -> Capture:
        """What the call of an event compiled, in every stage; the seconds are those of the call.

        The arguments' values are not needed, and the function's Python runs again only if JAX has forgotten its jaxpr.
        For a call inside of `vmap` or `grad` it is the function's own program.

        Args:
            event: One of `.events`, of the last few hundred calls; of a `miss` or a derivative there is none.

        Raises:
            NotRecordedError: The function is gone, a setting has changed since, or nothing is kept of the call.
            ExploreError: It compiles no more.

        Example:
            >>> import explorer as ex, jax, jax.numpy as jnp
            >>> double = jax.jit(lambda x: x * 2)
            >>> with ex.watch() as ledger:
            ...     _ = double(jnp.ones(7))
            >>> ledger.capture(ledger.events[-1])
            Capture(<lambda>: jaxpr → stablehlo → hlo)
        """
        with suppress_recording():
            return self._replays.capture(event, self.events)

    def diff(self, event: Event) -> Diff:
        """What the call of an event compiled, held against the nearest earlier call: the one that its reason names.

        Raises:
            NotRecordedError: Nothing can be had of one of the two; or it was the first.
        """
        before = self._replays.before(event)
        with suppress_recording():
            return diff(self.capture(replace(event, call=before)), self.capture(event))

    def unseen(self) -> AbstractContextManager[None]:
        """While this lasts, what the thread compiles is Explorer's own, and no watch records it."""
        return suppress_recording()

    def keep(self, call: int, replay: Replay) -> None:
        """Have what a call compiled for `capture`."""
        self._replays.keep(call, replay)

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


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


_MANY = 10_000


class Cells:
    """Told by IPython of each cell before and after it runs; without IPython there are none."""

    def __init__(self) -> None:
        ipython: Any = sys.modules.get("IPython")
        self._shell: Any = ipython.get_ipython() if ipython is not None else None
        self._ran: deque[tuple[str, float, float]] = deque(maxlen=_MANY)
        self._began: float | None = None  # the one that runs
        if self._shell is not None:
            self._shell.events.register("pre_run_cell", self._before)
            self._shell.events.register("post_run_cell", self._after)
            self._before(None)  # the one that this is called in

    @property
    def ran(self) -> tuple[tuple[str, float, float], ...]:
        """What a person calls each cell, and when it began and ended, in seconds since 1970; one that runs ends now."""
        return (*self._ran, *self._now(None))

    def stop(self) -> None:
        """Unsubscribe."""
        self._after(None)
        if self._shell is not None:
            for event, callback in (("pre_run_cell", self._before), ("post_run_cell", self._after)):
                with suppress(ValueError):  # somebody took it away
                    self._shell.events.unregister(event, callback)
            self._shell = None

    def _before(self, info: Any) -> None:
        self._began = time()

    def _after(self, result: Any) -> None:
        self._ran.extend(self._now(result))
        self._began = None

    def _now(self, result: Any) -> list[tuple[str, float, float]]:
        if self._began is None:
            return []
        # While a cell runs, IPython counts it already, or not yet: that depends on its version.
        compiled: dict[str, int] = getattr(self._shell.compile, "_filename_map", {})
        count = getattr(result, "execution_count", None) or max(compiled.values(), default=1)
        return [(f"cell [{count}]", self._began, time())]


_lock = RLock()
_session: Watch | None = None


def session() -> Watch | None:
    """The session's watch; None if there is none, or if it was stopped."""
    return _session if _session is not None and _session.on else None


def start_session() -> Watch:
    """The session's watch, turned on if it is off."""
    global _session
    with _lock:
        current = session()
        if current is None:
            current = _session = Watch()
        return current


def stop_session() -> Watch | None:
    """Turn the session's watch off; what it saw stays in what is returned, None if it was off."""
    global _session
    with _lock:
        stopped, _session = session(), None
        if stopped is not None:
            stopped.stop()
        return stopped


def watch_if_requested() -> None:
    """Turn the session's watch on if the environment asks for one of its logs."""
    global _session
    event_listeners = from_environment()
    if event_listeners:
        with _lock:
            _session = Watch(event_listeners=event_listeners)


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


LIVE_ANSWERS["recompiled"] = recompilations
