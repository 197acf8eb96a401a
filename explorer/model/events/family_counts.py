"""Counts of each function that was compiled, kept up event by event, and the warnings that follow from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import Any

from explorer.errors import NotRecordedError
from explorer.model.events.event import Event, Place, Reason
from explorer.model.events.key import Leaf
from explorer.model.stage import is_library_file
from explorer.model.units import count_text

FamilyKey = tuple[str, str, str, int]  # process, name, file and line of a family
BUILDING = ("trace", "lower", "compile", "cache-hit")  # the kinds that had something to build


def family_key(event: Event) -> FamilyKey:
    """Return the process, name, file and line of an event's function; file and line are empty and 0 without a key."""
    if event.key is None:
        return event.process, event.function, "", 0
    return event.process, *event.key.function.family


@dataclass(frozen=True, slots=True)
class Totals:
    """Total cost of compiling, dropped events included.

    Args:
        calls: Calls that left the fast path.
        recompiles: Calls among them that traced or compiled again.
        functions: Number of families, without single operations.
        traces, lowers, compiles, cache_hits, misses: Number of events of each kind.
        trace, lower, compile: Seconds of each step; loading from the persistent cache counts as compiling.
        saved: Seconds saved by the persistent cache.

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
        """Return the seconds of tracing, lowering and compiling together."""
        return self.trace + self.lower + self.compile


@dataclass(frozen=True, slots=True)
class Summary(Totals):
    """Row of one function: all events of its family, dropped events included.

    Args:
        name: Name of the function.
        file, line: Position of its definition; empty and 0 if unknown.
        process: Name of the process, in a merged ledger.
        eager: True for a function of JAX itself, compiled for a single operation outside of any `jit`.
        share: Share of the ledger's seconds, 0 to 1.
        reasons: Kinds of recompiles with their counts, most frequent first; without `first`.
        varying: Changed leaves with their counts, most frequent first.
        last: Latest event.

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
        """Return the leaf that changed most often; empty if no leaf changed."""
        return self.varying[0][0] if self.varying else ""

    def __repr__(self) -> str:
        where = f" at {self.file}:{self.line}" if self.file else ""
        why = ", ".join(f"{kind} {count}" for kind, count in self.reasons)
        again = f"; again for {why}" if why else ""
        leaf = f"; {self.leaf} varies" if self.leaf else ""
        return f"Summary({self.name}{where}: {count_text(self.compiles + self.cache_hits, 'compile')}{again}{leaf})"


@dataclass(slots=True)
class Cause:
    """One reason for recompiles, with its count and its latest occurrence.

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
    """Running counts of one family: all compiles of the functions that one definition in the source makes.

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
    site_seconds: dict[Place | None, float] = field(default_factory=dict["Place | None", float])  # of eager ones alone
    last: Event | None = None

    @property
    def total(self) -> float:
        """Return the seconds of all events so far, without misses, which compile nothing."""
        return sum(self.seconds.values()) - self.seconds.get("miss", 0.0)

    def add(self, event: Event) -> bool:
        """Count an event; return True if it is the first event of a recompile, False for first compiles."""
        kind = event.kind
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.seconds[kind] = self.seconds.get(kind, 0.0) + event.seconds
        self.saved += event.saved
        self.last = event
        if self.eager:
            self.site_seconds[event.call_site] = self.site_seconds.get(event.call_site, 0.0) + event.seconds
        # Events of one call follow each other; 0 means that the call is unknown.
        if event.call != self.call or not event.call:
            self.call, self.is_built = event.call, False
            self.calls += 1
        if self.is_built or kind not in BUILDING:
            return False
        self.is_built = True
        # `ex.compile` builds each shape on request, which is no recompile.
        if event.key is not None and event.key.function.is_ahead:
            return False
        self.built += 1
        if self.eager:
            self.sites[event.call_site] = self.sites.get(event.call_site, 0) + 1
        return self._again(event)

    def _again(self, event: Event) -> bool:
        reason = event.reason
        # With only a name, its first call counts as first; so does a call whose trace raised.
        is_unexplained = reason.kind == "raised" or (reason.kind == "unknown" and event.key is None)
        if reason.kind == "first" or (self.built == 1 and is_unexplained):
            return False
        cause = self.causes.setdefault((reason.kind, reason.leaf), Cause(0, reason))
        cause.count += 1
        cause.last = reason
        self.recompiles += 1
        return True

    def main_cause(self) -> Cause | None:
        """Return the most frequent cause of recompiles; None without recompiles.

        Of equally frequent causes, the earliest is returned.
        """
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
        """Return the totals of several families: each figure is the sum over the families."""
        columns = zip(*(counts._figures() for counts in families), strict=True)
        return Totals(*map(sum, columns))  # pyright: ignore[reportArgumentType] - counts stay counts


def by_frequency(counts: dict[str, int]) -> tuple[tuple[str, int], ...]:
    """Return (name, count) pairs, highest count first; equal counts keep their order."""
    return tuple(sorted(counts.items(), key=lambda item: -item[1]))


Which = str | Callable[..., Any]
_ID = re.compile(r"\[(.*?)(?:/\d+)?\]", re.DOTALL)
_INSIDE = ("__func__", "__wrapped__", "func")  # of a method, a wrapper, a partial


def families_of(which: Which, families: Iterable[FamilyKey]) -> set[FamilyKey]:
    """Return the keys of the families that `which` names.

    Args:
        which: Name of a function, the function itself (a `jax.jit` of it, a `partial`, a method), or the id of a
            compile, `[step/3]`.
        families: All families.

    Raises:
        NotRecordedError: No family has this name; the message lists the names.
    """
    all_families = list(families)
    if isinstance(which, str):
        # A function may be named as an id is written: a name that is there is one.
        match = None if any(family[1] == which for family in all_families) else _ID.fullmatch(which)
        name = match[1] if match else which
        matching = {family for family in all_families if family[1] == name}
    else:
        name, file, line = _defined(which)
        matching = {family for family in all_families if file and family[2:] == (file, line)}
        matching = matching or {family for family in all_families if family[1] == name and _may_be_in(family[2], file)}
    if not matching:
        raise NotRecordedError(_unknown(name, all_families))
    return matching


def _may_be_in(known: str, file: str) -> bool:
    """Return True if a function defined in `file` may be recorded under the file `known`.

    They are equal, one is empty, or `known` is a library's, whose wrapper was compiled.
    """
    return not known or not file or known == file or is_library_file(known)


def _unknown(name: str, known: list[FamilyKey]) -> str:
    names = list(dict.fromkeys(family[1] for family in known))
    there = ", ".join(names[:20]) + (f", … ({len(names)} in all)" if len(names) > 20 else "")
    has = f"it has {there}" if names else "nothing was compiled while it watched"
    hint = "give a function's name, the function, or the id of one of its compiles, such as '[step/0]'."
    return f"the ledger has no function {name!r}: {has}.\n  Hint: {hint}"


def _defined(function: Any) -> tuple[str, str, int]:
    """Return (name, file, line) of the function inside partials, methods and wrappers; without code, the file is "" and
    the line 0.
    """
    for _ in range(100):  # a wrapper can wrap itself
        inners = (getattr(function, name, None) for name in _INSIDE)
        inner: Any = next((inner for inner in inners if callable(inner)), None)
        if inner is None:
            break
        function = inner
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    name = getattr(function, "__name__", "<unnamed function>")  # as JAX calls an object that can be called
    return (name, "", 0) if code is None else (name, code.co_filename, code.co_firstlineno)


STORM = 8  # compiles of one function past which something is wrong


@dataclass(frozen=True, slots=True)
class Storm:
    """Function that was compiled too often.

    Args:
        function: Name of the function.
        family: Process, name, file and line that identify the function.
        compiles: Number of calls that traced, lowered or compiled.
        seconds: Their total duration.
        changes: Number of them with this `reason`.
        reason: Latest reason of the most frequent kind, with the varying `leaf` and the `fix`.
        at: User's line of the latest call.
        eager: True for a function of JAX itself, run outside of any `jit`.
        label: Short name of its file: `train.py`, `cell [4]`.

    Example:
        >>> import explorer, jax, jax.numpy as jnp, warnings
        >>> xs = [jnp.ones(n) for n in range(1, 8)]
        >>> double = jax.jit(lambda x: x * 2)
        >>> with warnings.catch_warnings(action="ignore"), explorer.watch(storm=5) as ledger:
        ...     _ = [double(x) for x in xs]
        >>> storm, = ledger.storms
        >>> storm.compiles, storm.leaf, storm.function
        (7, 'x.shape[0]', '<lambda>')
    """

    function: str
    family: FamilyKey
    compiles: int
    seconds: float
    changes: int
    reason: Reason
    at: Place | None = None
    eager: bool = False
    label: str = ""

    @property
    def leaf(self) -> str:
        """Return the varying leaf; empty if it is no argument."""
        return self.reason.leaf

    @property
    def cure(self) -> str:
        """Return the fix as code or one sentence; empty if no fix is known."""
        return self.reason.fix

    @property
    def text(self) -> str:
        """Return the warning as text: function, cost, varying leaf, then the fix on a line of its own if known."""
        name = f"the operation {self.function}" if self.eager else self.function
        _, _, file, line = self.family
        where = f" ({self.label}, line {line})" if file and not self.eager else ""
        text = f"{name}{where} was compiled {self.compiles} times, {self.seconds:.3g} s in all{self._why()}"
        cure = self.cure.strip().replace("\n", "\n    ")
        return f"{text}\n  Hint: {cure}" if cure else text

    def _why(self) -> str:
        reason = self.reason
        if not self.changes:
            return "."
        if not reason.leaf:
            return f"; {self.changes} times as {reason}." if reason.kind != "unknown" else "."
        last = f" (lately {reason.change})" if reason.change else ""
        return f"; `{reason.leaf}` changed {self.changes} times{last}."

    def __repr__(self) -> str:
        leaf = f"; {self.leaf} varies" if self.leaf else f"; {self.reason.kind}"
        return f"Storm({self.function}: {self.compiles} compiles{leaf})"


_MANY = 4_096
_Family = tuple[str, str, int]


class WarnedFunctions:
    """Functions that were warned about; each function gets one warning while any watch is active."""

    def __init__(self) -> None:
        self._watching = 0
        self._families: set[_Family] = set()
        self._lock = RLock()

    def begin(self) -> None:
        """Count one more active watch; `end` counts it off again."""
        with self._lock:
            self._watching += 1

    def end(self) -> None:
        """End a watch; after the last watch, functions can be warned about again."""
        with self._lock:
            self._watching -= 1
            if not self._watching:
                self._families.clear()

    def add(self, name: str, file: str, line: int) -> bool:
        """Note a warned function; return True if it was not noted before, or no watch is active."""
        with self._lock:
            if not self._watching:
                return True
            family = name, file, line
            if family in self._families:
                return False
            # Bounded, because a loop may define functions without end; some are then warned about twice.
            if len(self._families) >= _MANY:
                self._families.clear()
            self._families.add(family)
            return True


warned_functions = WarnedFunctions()  # one for the process: what it keeps is what this process's user has read


@dataclass(frozen=True, slots=True)
class Prediction:
    """Recompile that will happen if a result is passed in again.

    Args:
        function: Name of the function.
        leaf: Array in the arguments: `state['step']`; the first of `leaves`.
        before: Type in the first call: `int32, weak`.
        after: Type in the result.
        fix: Code that gives it this type from the start.
        text: The prediction as one sentence.
        result: Expression that would be passed in again: `result`, `result[0]`.
        leaves: All arrays with this change.
        family: Process, name, file and line of the function.
        came_true: Id of the predicted compile; empty if it hasn't happened.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> @jax.jit
        ... def step(n):
        ...     return n + jnp.int32(1)
        >>> with explorer.watch() as ledger:
        ...     _ = step(1)
        >>> [(one.leaf, one.before, one.after) for one in ledger.predictions]
        [('n', 'int32, weak', 'int32')]
    """

    function: str
    leaf: str
    before: str
    after: str
    fix: str = ""
    text: str = ""
    result: str = ""
    leaves: tuple[str, ...] = ()
    family: FamilyKey = field(default=("", "", "", 0), repr=False)
    came_true: str = ""

    def after_event(self, event: Event) -> Prediction:
        """Return a copy whose `came_true` names `event` if that is the predicted compile; else the prediction."""
        if self.came_true or event.key is None or family_key(event) != self.family:
            return self
        types = {leaf.path: type_text(leaf) for leaf in event.key.leaves}
        if types.get(self.leaf) != self.after:
            return self
        return replace(self, came_true=event.id or event.function)

    def __str__(self) -> str:
        return self.text


def type_text(leaf: Leaf) -> str:
    """Return a leaf's type as text: `int32`, or `int32, weak` for a weak type."""
    return f"{leaf.dtype}, weak" if leaf.weak else leaf.dtype
