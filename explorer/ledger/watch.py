"""watch(): a ledger of everything that is compiled from now on; and its lines, while compiles happen."""

from __future__ import annotations

import os
import sys
import traceback
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from os import PathLike
from threading import RLock
from time import time
from typing import IO, TYPE_CHECKING, Any, Protocol
from weakref import proxy

from explorer._jax.calls import suppress_recording
from explorer._jax.distributed import processes
from explorer.analysis.question_catalogue import reply
from explorer.capture.sources import label
from explorer.errors import OptionError, RecompilationWarning
from explorer.files.instruction_log import complain, open_log
from explorer.ledger.recorder import recorder
from explorer.ledger.replay import Replay, Replays
from explorer.model.answers import LIVE_ANSWERS, Answer
from explorer.model.capture import Capture
from explorer.model.events.event import Event, Running
from explorer.model.events.family_counts import STORM, Storm, warned_functions
from explorer.model.events.ledger import LIMIT, Ledger
from explorer.model.results.session import remembered
from explorer.model.units import count_text

if TYPE_CHECKING:
    from explorer.analysis.diff.diff import Diff

# `%load_ext explorer` starts a watch: what only a second program or a second process needs is imported with that, which
# takes a third of the extension's time.
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

    Every `jax.jit` of the process is recorded, on all threads: in a `with` block until its end, otherwise until
    `stop()`, even if the result is not kept. Several watches may be on at once; each records everything. Calls that
    JAX has cached are not slowed down: they stay in its C++ code. A call that leaves it each time, though nothing is
    compiled, is a `miss`. The 1st, 10th, 100th, … miss of a `jax.jit` at one line is an event; its `count` says how
    many calls it represents, and its `seconds` are those of all of them.

    If `jax.distributed` connects processes and each of them watches, a `ProcessWarning` is issued as soon as one
    compiles another program than the first one over devices of several processes. `explorer.gather_ledgers` returns
    what all compiled.

    Args:
        limit: Number of events to keep. The oldest beyond it are dropped, and counted in `.dropped`. None keeps all.
        storm: Number of compiles of one function after which a `RecompilationWarning` is issued; 0 for never.
        spill: File of JSON lines that receives the oldest events, so that none are dropped.
        log: File that receives each event at once, as a readable line.

    Returns:
        A `Watch`: a `Ledger` that grows.

    Raises:
        OptionError: `limit` or `storm` is out of range.
        LedgerFileError: `spill` exists already.
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
    if shared is not None:
        from explorer.ledger.processes import ProcessComparison

        event_listeners.append(ProcessComparison(shared))
    return Watch(limit, storm=storm, spill=spill, event_listeners=event_listeners)


def _check(name: str, value: Any, least: int, hint: str) -> None:
    if value is None and name == "limit":
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise OptionError(f"{name} of watch() is {value!r}; allowed is an int of at least {least}: {hint}.")


class Watch(Ledger):
    """A ledger that grows while it is on; returned by `watch`.

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
            self.note = "this JAX hides its calls: names and seconds come from its listeners, and reasons are unknown"
        # Last: from here on events of all threads come.
        recorder.start(self)

    def stop(self) -> None:
        """Stop recording and keep the events; the last watch restores JAX. A second call does nothing."""
        self.on = False
        recorder.stop(self)
        self._cells.stop()
        self._storms.close()
        for teller in self.event_listeners:
            teller.close()

    @property
    def running(self) -> tuple[Running, ...]:
        """Return what is traced, lowered or compiled right now, on any thread; empty if the watch is off."""
        return recorder.running if self.on else ()

    @property
    def cells(self) -> tuple[tuple[str, float, float], ...]:
        """Return name, start and end (seconds since 1970) of the notebook cells that ran meanwhile; empty elsewhere."""
        return self._cells.ran

    @property
    def faults(self) -> tuple[BaseException, ...]:
        """Return the last 20 errors of the ledger itself. They never affect the calls that it records."""
        return tuple(self._faults)

    def called(self, file: str) -> str:
        """Return the short name of a file: `train.py`, `cell [4]`."""
        return label(file)

    def fault(self, error: BaseException) -> None:
        """Record an error of the ledger itself."""
        # Its place as text: a traceback would keep the user's arrays alive.
        for frame in traceback.extract_tb(error.__traceback__)[-1:]:
            error.add_note(f"at {frame.filename}, line {frame.lineno}, in {frame.name}")
        error.__cause__ = error.__context__ = None
        self._faults.append(error.with_traceback(None))

    def capture(self, event: Event) -> Capture:
        """Return what the call of an event compiled, in every stage, with the seconds of that call.

        The values of the arguments are not needed. The function's Python runs again only if JAX no longer has its
        jaxpr. For a call inside of `vmap` or `grad` it is the function's own program.

        Args:
            event: One of the `.events` of the last few hundred calls, but no `miss` and no derivative.

        Raises:
            NotRecordedError: The function is gone, a setting has changed since, or nothing is kept of the call.
            ExploreError: It no longer compiles.

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
        """Return the difference from the program of the nearest earlier call, which the event's reason names, to the
        event's own.

        Raises:
            NotRecordedError: It was the first call, or one of the two can't be looked at.
        """
        from explorer.analysis.diff.diff import diff

        before = self._replays.before(event)
        with suppress_recording():
            return diff(self.capture(replace(event, call=before)), self.capture(event))

    def unseen(self) -> AbstractContextManager[None]:
        """Return a context in which compiles of this thread are Explorer's own and not recorded."""
        return suppress_recording()

    def keep(self, call: int, replay: Replay) -> None:
        """Keep what `capture` needs of a call."""
        self._replays.keep(call, replay)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


class StormWarning:
    """Warns once for each function that is compiled more often than its watch allows."""

    def __init__(self, watch: Watch) -> None:
        self._watch = proxy(watch)  # a cycle would keep a dropped ledger until the next collection
        self._on = True
        warned_functions.begin()

    def ended(self, events: tuple[Event, ...]) -> None:
        try:
            storm = self._watch.storm_of(events[-1]) if events else None
            if storm is not None and warned_functions.add(*storm.family[1:]):
                warn(storm)
        except Exception as error:  # the user's own way of showing warnings
            self._watch.fault(error)

    def close(self) -> None:
        """End the warnings of this watch; a second call does nothing."""
        if self._on:
            self._on = False
            warned_functions.end()


def warn(storm: Storm) -> None:
    """Show the warning at the line of the storm's last call."""
    from explorer.ledger.processes import warn_at

    file, line = (storm.at.file, storm.at.line) if storm.at is not None else storm.family[2:]
    warn_at(storm.text, RecompilationWarning, file, line)


_MANY = 10_000


class Cells:
    """Times of the notebook's cells, from IPython's events; none without IPython."""

    def __init__(self) -> None:
        ipython: Any = sys.modules.get("IPython")
        self._shell: Any = ipython.get_ipython() if ipython is not None else None
        self._ran: deque[tuple[str, float, float]] = deque(maxlen=_MANY)
        self._began: float | None = None  # start of the running cell
        if self._shell is not None:
            self._shell.events.register("pre_run_cell", self._before)
            self._shell.events.register("post_run_cell", self._after)
            self._before(None)  # the running cell

    @property
    def ran(self) -> tuple[tuple[str, float, float], ...]:
        """Return the name, start and end of each cell, in seconds since 1970; a running one ends now."""
        return (*self._ran, *self._now(None))

    def stop(self) -> None:
        self._after(None)
        if self._shell is not None:
            for event, callback in (("pre_run_cell", self._before), ("post_run_cell", self._after)):
                with suppress(ValueError):  # already unregistered
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
    """Return the session's watch if it is on, else None."""
    return _session if _session is not None and _session.on else None


def start_session() -> Watch:
    """Return the session's watch, and turn it on if it is off."""
    global _session
    with _lock:
        current = session()
        if current is None:
            current = _session = Watch()
        return current


def stop_session() -> Watch | None:
    """Turn the session's watch off and return it with its events; None if it was off."""
    global _session
    with _lock:
        stopped, _session = session(), None
        if stopped is not None:
            stopped.stop()
        return stopped


def watch_if_requested() -> None:
    """Turn the session's watch on if the environment requests one of its logs."""
    global _session
    event_listeners = from_environment()
    if event_listeners:
        with _lock:
            _session = Watch(event_listeners=event_listeners)


def recompilations(capture: Capture) -> Answer | None:
    """Return an answer with the number of compiles that the first watch which recorded the function saw.

    If no watch recorded it, the answer is that it was not compiled. None if no watch is on.
    """
    for watch in recorder.watches:
        for row in watch.functions():
            compiles = row.compiles + row.cache_hits
            if compiles and (row.name, row.file) in ((capture.function, ""), (capture.function, capture.file)):
                text = f"{row.name} was compiled {count_text(compiles, 'time')} since the watch began."
                is_again = row.last is not None and row.last.reason.kind != "first"
                return reply("recompiled", text + f" The last time: {row.last and row.last.reason}." * is_again)
    if not recorder.watches:
        return None
    return reply("recompiled", f"{capture.function} was not compiled since the watch began.")


LIVE_ANSWERS["recompiled"] = recompilations


LOG = "EXPLORER_INSTRUCTION_LOG"
DEBUG = "EXPLORER_DEBUG_COMPILE"
_OFF = ("", "0", "false", "no", "off")


class EventListener(Protocol):
    """Listener that is called at once, in the user's time; its methods raise nothing.

    `starting`: XLA starts on this thread; `done` are the call's earlier events, `event` is the event so far.
    `ended`: a call traced, lowered or compiled. `close`: the watch ends.
    """

    def starting(self, done: tuple[Event, ...], event: Event) -> None: ...
    def ended(self, events: tuple[Event, ...]) -> None: ...
    def close(self) -> None: ...


class LineLog:
    """Writes one line per event, each at once to disk; raises OSError if the file can't be written.

    An existing file is appended to: the processes that a program starts share one log.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._log = open_log(path)
        self._written: dict[int, int] = {}  # how many events of a call, while XLA compiles it
        self._is_open = True

    def starting(self, done: tuple[Event, ...], event: Event) -> None:
        self._complete(done, event.call)
        self._written[event.call] = len(done)
        self._log.write(event.start, "COMPILE", event.thread, "Starting", _details(event))

    def ended(self, events: tuple[Event, ...]) -> None:
        self._complete(events, events[0].call)
        self._written.pop(events[0].call, None)

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._log.close()

    def _complete(self, events: tuple[Event, ...], call: int) -> None:
        for event in events[self._written.get(call, 0) :]:
            name = f"Failed ({event.error})" if event.error else "Complete"
            ended = event.start + event.seconds
            self._log.write(ended, event.kind.upper(), event.thread, name, _details(event))


class DebugLines:
    """Prints lines to stderr: `[COMPILE] Recompiling step: x.shape[0] 32 → 33 (train.py, line 12)`.

    Operations outside of any `jit` are left out.
    """

    def __init__(self, file: IO[str] | None = None) -> None:
        self._file = file

    def starting(self, done: tuple[Event, ...], event: Event) -> None:
        if is_eager(event):
            return
        site = f" ({event.call_site})" if event.call_site is not None else ""
        if event.reason.kind == "first":
            self._print(f"Compiling {event.function}{site}")
        else:
            reason = event.reason
            changed = f"{reason.leaf} {reason.change}".rstrip() if reason.leaf else str(reason)
            self._print(f"Recompiling {event.function}: {changed}{site}")

    def ended(self, events: tuple[Event, ...]) -> None:
        seconds = sum(event.seconds for event in events)
        for event in events:
            if event.kind not in ("compile", "cache-hit") or is_eager(event):
                continue
            if event.error:
                self._print(f"Compilation failed: {event.error}")
            elif event.kind == "cache-hit":
                self._print(f"Compilation was in the persistent cache, {event.saved:.1f}s saved ({seconds:.1f}s)")
            else:
                self._print(f"Compilation complete ({seconds:.1f}s)")

    def close(self) -> None:
        pass

    def _print(self, text: str) -> None:
        with suppress(OSError, ValueError):  # stderr is closed
            print(f"[COMPILE] {text}", file=self._file or sys.stderr, flush=True)


def from_environment() -> list[EventListener]:
    # A log that can't be written is reported on stderr: the user's program must not fail because of it.
    listeners: list[EventListener] = []
    path = os.environ.get(LOG, "")
    if path.lower() not in _OFF:
        try:
            listeners.append(LineLog(path))
        except OSError as error:
            complain(f"{LOG}={path}: {error.strerror or error}; there will be no log")
    if os.environ.get(DEBUG, "").lower() not in _OFF:
        listeners.append(DebugLines())
    return listeners


def _details(event: Event) -> dict[str, str]:
    reason = event.reason
    details = {
        "function": event.function,
        "id": event.id,
        "seconds": f"{event.seconds:.6f}" if event.seconds else "",
        "saved": f"{event.saved:.6f}" if event.saved else "",
        "device": event.device,
        "eager": "true" if is_eager(event) else "",
    }
    details = {name: text for name, text in details.items() if text} | {"reason": reason.kind}
    if reason.leaf:
        details |= {"leaf": reason.leaf, "before": reason.before, "after": reason.after}
    return details | ({"at": str(event.call_site)} if event.call_site is not None else {})


def is_eager(event: Event) -> bool:
    """Return True for an event of one of JAX's own operations outside of any `jit`."""
    return event.key is not None and event.key.function.eager
