"""session(): one page for everything that was compiled, from the ledger and the values that are still alive."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from math import isfinite, nan
from os import PathLike
from pathlib import Path
from typing import Any

from explorer._jax.calls import compiled_by_now
from explorer.aot.executable import Executable
from explorer.capture.sources import label
from explorer.errors import NotRecordedError, UnknownNameError
from explorer.hotpath.auto import AutoCompile
from explorer.ledger.functions import is_primitive, read_function
from explorer.ledger.watch import Watch
from explorer.ledger.watch import session as session_watch
from explorer.model.capture import Capture
from explorer.model.declared import Displayable
from explorer.model.events.family_counts import FamilyCounts, family_key
from explorer.model.events.ledger import Ledger
from explorer.model.findings import Findings
from explorer.model.results.memory_use import MemoryUse
from explorer.model.results.profile import Profile
from explorer.model.results.roofline import Roofline
from explorer.model.results.session import SessionItem, SessionReport, SessionRow, remembered_values
from explorer.model.results.sweep import Measured, WhatIf
from explorer.model.results.timing import EARLIER, Timing
from explorer.model.text import cut_end
from explorer.model.units import count_text, duration_text
from explorer.view.sessions import display_live


class Session(Displayable):
    """Everything compiled in this process so far, read whenever it is shown.

    In a notebook it is a page that is updated while cells run: each function by cost, with its captures, recompiles,
    findings, times and memory, which open by a click. It holds only weak references: a capture that the user drops
    disappears here too.

    Example:
        >>> import explorer as ex, jax, jax.numpy as jnp
        >>> @jax.jit
        ... def doubled(x):
        ...     return x * 2
        >>> with ex.watch() as ledger:
        ...     _ = doubled(jnp.ones(2)), doubled(jnp.ones(3))
        >>> row = ex.session()["doubled"]
        >>> row.compiles, row.recompiles, row.leaf
        (2, 1, 'x.shape[0]')
    """

    def report(self) -> SessionReport:
        """Return the session as a value, as of now."""
        return _Collected(watched_ledger()).report()

    @property
    def rows(self) -> tuple[SessionRow, ...]:
        """Return a row for each function, the most expensive first; those compiled before watching come last."""
        return self.report().rows

    @property
    def summary(self) -> tuple[str, ...]:
        """Return sentences about the cost of compiling, recompiles and their reasons, and unknown figures."""
        return self.report().summary

    @property
    def ledger(self) -> Watch | None:
        """Return the ledger that the session reads; None if nothing is watched."""
        return watched_ledger()

    def __getitem__(self, name: str) -> SessionRow:
        """Return the row of a function, the most expensive of several with this name.

        Raises:
            UnknownNameError: No function has this name.
        """
        return self.report()[name]

    def open(self, key: str) -> Any:
        """Return the object behind an item of a row: a capture, a ledger of one function, findings, a profile, ….

        Args:
            key: `SessionItem.key`.

        Raises:
            UnknownNameError: There is no such item, or the user has dropped it since.
            NotRecordedError: The function's compile is not available any more.
        """
        kind, _, what = key.partition(":")
        if kind in ("ledger", "compiled"):
            return self._of_ledger(kind, what)
        value = dict(remembered_values()).get(int(what)) if what.isdigit() else None
        if value is None:
            raise UnknownNameError(f"{key!r} is gone: no variable refers to it any more.\n  Hint: run its cell again.")
        return value.findings if kind == "passive" else value

    def _of_ledger(self, kind: str, what: str) -> Any:
        ledger = watched_ledger()
        keys = {} if ledger is None else {_family_text(counts): counts.key for counts in ledger.family_counts}
        family = keys.get(what)
        if ledger is None or family is None:
            raise UnknownNameError("the watch has ended, and its ledger is gone.\n  Hint: %explorer starts one.")
        events = [event for event in ledger.events if family_key(event) == family]
        if kind == "ledger":
            part = Ledger(None, storm=ledger.storm)
            part.add(tuple(events))
            return part
        compiled = [event for event in events if event.kind in ("compile", "cache-hit")]
        if not compiled:
            raise NotRecordedError(
                f"no compile of {family[1]} is in the ledger any more.\n  Hint: watch(limit=…) keeps more."
            )
        return ledger.capture(compiled[-1])

    def unseen(self) -> AbstractContextManager[None]:
        """Return a context in which the thread's compiles are not recorded."""
        ledger = watched_ledger()
        return nullcontext() if ledger is None else ledger.unseen()

    def save(self, path: str | PathLike[str]) -> Path:
        """Write a page that opens without a kernel, with captures and ledgers, and return its path.

        Raises:
            OSError: The file can't be written.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> from pathlib import Path
            >>> from tempfile import TemporaryDirectory
            >>> capture = explorer.explore(jnp.cosh, jnp.ones(8))
            >>> with TemporaryDirectory() as folder:
            ...     page = Path(folder, "session.html")
            ...     _ = explorer.session().save(page)
            ...     page.stat().st_size > 1000
            True
        """
        return self.to_html(path)

    def _ipython_display_(self) -> None:
        display_live(self)

    def __repr__(self) -> str:
        return f"Session({repr(self.report()).partition('(')[2]}"


_session = Session()


def session() -> Session:
    """Return the session: every compiled function with its captures, recompiles, findings, times and memory.

    It reads the ledger if compiles are watched (`%explorer`, `%recompiles`, `ex.watch()`), all captures, executables,
    measurements and hot paths still alive, and JAX's own caches, which don't know the cost of a compile. It starts
    nothing itself.

    Returns:
        The session, which shows itself: `.rows`, `.summary`, `.save("session.html")`, `.to_text()`.

    Example:
        >>> import explorer as ex, jax.numpy as jnp
        >>> def tripled(x):
        ...     return x * 3
        >>> capture = ex.explore(tripled, jnp.ones(4))
        >>> ex.session()["tripled"].items[0].text
        'capture (x: f32[4])'
    """
    return _session


_PLACED = (Capture, Executable, AutoCompile)
_MAX_ITEMS = 6  # of one kind in a row: the latest
_SIGNATURE = 40  # characters
# Labels of results on buttons. A result has its function's name, and no place.
_RESULTS: dict[type, str] = {
    Timing: "timing", Profile: "profile", MemoryUse: "memory", Roofline: "roofline", WhatIf: "what if"
}  # fmt: skip


def watched_ledger() -> Watch | None:
    """Return the session's watch, or else the latest other one that is running, or else the latest; None if none."""
    current = session_watch()
    if current is not None:  # an empty ledger is falsy
        return current
    watches = [value for _, value in remembered_values() if isinstance(value, Watch)]
    running = [watch for watch in watches if watch.on]
    return (running or watches or [None])[-1]


@dataclass
class _Function:
    """Row under construction, with its items by kind, earliest first."""

    row: SessionRow
    items: dict[str, list[SessionItem]] = field(default_factory=dict[str, list[SessionItem]])
    captures: list[Capture] = field(default_factory=list[Capture])

    def note(self, **fields: Any) -> None:
        self.row = replace(self.row, **fields)

    def add(self, kind: str, key: str, text: str) -> None:
        self.items.setdefault(kind, []).append(SessionItem(kind, key, text))

    def finished(self) -> SessionRow:
        items = [item for of_kind in self.items.values() for item in of_kind[-_MAX_ITEMS:]]
        return replace(self.row, items=tuple(items))


class _Collected:
    """Collector of the session's rows: the ledger's functions first, then living values, then JAX's caches."""

    def __init__(self, watch: Watch | None) -> None:
        self.watch = watch
        self.functions: dict[tuple[str, str, int], _Function] = {}
        self.operations, self.operation_seconds = 0, 0.0
        self.notes: list[str] = []

    def report(self) -> SessionReport:
        if self.watch is not None:
            self.add_ledger(self.watch)
        # Values that know their function's place come first; the others find its row by name.
        for number, value in sorted(remembered_values(), key=lambda item: not isinstance(item[1], _PLACED)):
            with suppress(Exception):  # a faulty value must not cost other rows
                self.add(number, value)
        # JAX's caches aren't public, and may be others in a new version.
        with suppress(Exception):
            self.add_unwatched()
        rows = sorted((function.finished() for function in self.functions.values()), key=_by_cost)
        watching = "never" if self.watch is None else "now" if self.watch.on else "once"
        return SessionReport(tuple(rows), self.operations, self.operation_seconds, watching, tuple(self.notes))

    # The ledger -------------------------------------------------------------------------------------------------------

    def add_ledger(self, ledger: Ledger) -> None:
        for counts in ledger.family_counts:
            summary = counts.summary(1.0)
            compiles = summary.compiles + summary.cache_hits
            if counts.eager:
                self.operations += compiles
                self.operation_seconds += counts.total
                continue
            if not summary.traces and not compiles:
                continue
            place = f"{label(summary.file)}, line {summary.line}" if summary.file else ""
            row = SessionRow(
                summary.name, summary.file, summary.line, place, "watched", compiles, counts.recompiles,
                summary.trace, summary.lower, summary.compile, summary.leaf, *_why(counts),
            )  # fmt: skip
            function = self.functions[summary.name, summary.file, summary.line] = _Function(row)
            function.add("ledger", f"ledger:{_family_text(counts)}", "ledger")
            if summary.compiles or summary.cache_hits:
                function.add("compiled", f"compiled:{_family_text(counts)}", "capture (last compile)")
        if ledger.dropped:
            self.notes.append(
                f"The ledger has dropped its oldest {count_text(ledger.dropped, 'event')}; counts are whole."
            )

    # Values -----------------------------------------------------------------------------------------------------------

    def add(self, number: int, value: object) -> None:
        if isinstance(value, Capture):
            self.add_capture(number, value)
        elif isinstance(value, Findings):
            self.add_findings(self.of_name(value.function), value, f"findings:{number}")
        elif isinstance(value, Executable):
            self.add_executable(number, value)
        elif isinstance(value, AutoCompile):
            self.add_hot(number, value)
        elif kind := _RESULTS.get(type(value)):
            self.add_result(kind, number, value)

    def add_capture(self, number: int, capture: Capture) -> None:
        function = self.of(capture.function, capture.file, capture.line)
        row = function.row
        # The ledger has counted a watched function's compiles already.
        if row.basis != "watched" and not capture.failure and capture not in function.captures:
            steps = {step: _sum(getattr(row, step), seconds) for step, seconds in capture.durations.seconds.items()}
            function.note(compiles=row.compiles + 1, **steps)
        function.captures.append(capture)
        function.note(memory=Measured(memory=capture.memory).peak)
        if (steady := capture.steady) is not None:
            function.note(run=steady.median)
        function.add("capture", f"capture:{number}", f"capture {cut_end(capture.signature, _SIGNATURE)}".rstrip())
        function.items.pop("compiled", None)  # the user's own capture has more
        if capture.findings and "findings" not in function.items:
            self.add_findings(function, capture.findings, f"passive:{number}")

    def add_findings(self, function: _Function, findings: Findings, key: str) -> None:
        counts = {severity: sum(finding.severity == severity for finding in findings) for severity in _SEVERITIES}
        function.note(**{f"{severity}s": count for severity, count in counts.items()})
        function.items.pop("findings", None)  # the latest replace earlier ones
        if findings:
            function.add("findings", key, count_text(len(findings), "finding"))

    def add_executable(self, number: int, executable: Executable) -> None:
        binaries = executable.specializations
        first = next((binary.capture for binary in binaries if binary.capture is not None), None)
        name = executable.__name__
        function = self.of(name, first.file, first.line) if first is not None else self.of_name(name)
        if function.row.basis != "watched":
            row, seconds = function.row, sum(binary.seconds for binary in binaries)
            steps = {
                "trace": _sum(row.trace, 0.0),
                "lower": _sum(row.lower, 0.0),
                "compile": _sum(row.compile, seconds),
            }
            function.note(compiles=row.compiles + len(binaries), **steps)
        function.add("executable", f"executable:{number}", f"executable, {count_text(len(binaries), 'shape')}")

    def add_hot(self, number: int, hot: AutoCompile) -> None:
        for hot_row in hot.functions:
            if hot_row.state not in ("compiled", "eager"):
                continue
            name = hot_row.name.rpartition(".")[2]
            is_known = (name, hot_row.file, hot_row.line) in self.functions
            if not is_known and hot_row.state != "compiled":
                continue  # never compiled
            function = self.of(name, hot_row.file, hot_row.line)
            if function.row.basis != "watched":
                function.note(compiles=hot_row.variants, compile=hot_row.compile_seconds, trace=0.0, lower=0.0)
            function.note(hot=hot_row.state, run=_first(hot_row.compiled_seconds, function.row.run))
            function.add("hot paths", f"hot:{number}", f"hot paths: {hot_row.state}")

    def add_result(self, kind: str, number: int, value: Any) -> None:
        function = self.of_name(value.function)
        text = kind
        if isinstance(value, Timing):
            function.note(run=value.steady.median)
            text = f"timing {duration_text(value.steady.median)}"
        elif isinstance(value, Profile):
            function.note(run=_first(value.plain_seconds, value.wall_seconds))
        elif isinstance(value, WhatIf) and isfinite(value.plain.seconds):
            function.note(run=value.plain.seconds)
        function.add(kind, f"{kind}:{number}", text)
        self.notes += [f"`{value.function}`: {note}" for note in value.notes if note.startswith(EARLIER)]

    # Functions --------------------------------------------------------------------------------------------------------

    def of(self, name: str, file: str, line: int) -> _Function:
        """Return the row under construction for a name and a place, added if new.

        A row less than eight lines away counts as the same function, unless it is a lambda.
        """
        key = name, file, line
        if key not in self.functions:
            alike = [at for at in self.functions if at[:2] == key[:2]]
            # Some sources report the line of the first decorator, others that of the `def`.
            if len(alike) == 1 and name != "<lambda>" and abs(alike[0][2] - line) < 8:
                return self.functions[alike[0]]
            place = f"{label(file)}, line {line}" if file else ""
            self.functions[key] = _Function(SessionRow(name, file, line, place, "explored"))
        return self.functions[key]

    def of_name(self, name: str) -> _Function:
        """Return the row under construction for a name, the latest of several; added if new."""
        alike = [function for (other, *_), function in self.functions.items() if other == name]
        return alike[-1] if alike else self.of(name, "", 0)

    # Compiles before watching -----------------------------------------------------------------------------------------

    def add_unwatched(self) -> None:
        for function, signatures in compiled_by_now()():
            if is_primitive(function):
                continue
            about = read_function(function, 0, 0)
            is_own = not about.eager and about.file and not about.file.startswith("<frozen")
            key = (about.name, about.file, about.line)
            if not is_own or key in self.functions or about.file.startswith(_OWN):
                continue
            place = f"{label(about.file)}, line {about.line}"
            row = SessionRow(*key, place, "before", len(signatures))
            self.functions[key] = _Function(row)


_SEVERITIES = ("error", "warning", "note")
_OWN = __file__.rpartition("sessions")[0]


def _by_cost(row: SessionRow) -> tuple[bool, float, str]:
    return row.basis == "before", -row.seconds if isfinite(row.seconds) else 0.0, row.name


def _sum(before: float, seconds: float) -> float:
    # A step without a figure is NaN, which would make each sum NaN.
    return seconds if before != before else before + seconds


def _first(*seconds: float) -> float:
    return next((value for value in seconds if isfinite(value)), nan)


def _why(counts: FamilyCounts) -> tuple[str, str]:
    """Return a function's most frequent reason for recompiles and its fix, both as text; "" without recompiles."""
    cause = counts.main_cause()
    if cause is None:
        return "", ""
    reason = cause.last
    if not reason.leaf:
        return str(reason), reason.fix
    times = {1: "once", 2: "twice"}.get(cause.count, f"{cause.count:,} times")
    lately = f" (lately {reason.change})" if reason.change else ""
    return f"`{reason.leaf}` changed {times}{lately}", reason.fix


def _family_text(counts: FamilyCounts) -> str:
    return "\n".join(map(str, counts.key))
