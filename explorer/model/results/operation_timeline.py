"""An instruction log over time: which operations ran when, one by one or compiled, and what was compiled."""

from __future__ import annotations

from dataclasses import dataclass, field

from explorer.model.attached import Charted
from explorer.model.units import count_text, duration_text


@dataclass(frozen=True, slots=True)
class ThreadOperations:
    """How many operations a thread ran, in equal parts of the time.

    Args:
        thread: Its name.
        single: Of those that ran one by one, by part.
        compiled: Of compiled hot functions.
    """

    thread: str
    single: tuple[int, ...]
    compiled: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LoggedCompile:
    """A compile.

    Args:
        function: What was compiled.
        start, end: Seconds since the log began.
        is_hot: Whether it was of a hot function, and not one that JAX makes of itself.
    """

    function: str
    start: float
    end: float
    is_hot: bool


@dataclass(frozen=True, repr=False, eq=False)
class OperationTimeline(Charted):
    """What an instruction log says, over time.

    Args:
        name: Of the file.
        start, end: Of its first and its last line, in seconds since the log began.
        threads: The operations of each.
        compiles: In order.
        counts: How often each operation ran, the most frequent first; the functions that are compiled marked by True.

    Example:
        >>> one = ThreadOperations("MainThread", (30, 10), (0, 5))
        >>> OperationTimeline("a.log", 0.0, 2.0, (one,), (LoggedCompile("step", 0.5, 0.7, True),))
        OperationTimeline(a.log: 45 operations in 2 s, 5 of them compiled functions; 1 compile took 200 ms)
    """

    name: str
    start: float
    end: float
    threads: tuple[ThreadOperations, ...] = ()
    compiles: tuple[LoggedCompile, ...] = ()
    counts: dict[tuple[str, bool], int] = field(default_factory=dict[tuple[str, bool], int])

    @property
    def headline(self) -> str:
        """All of it in a sentence."""
        compiled = sum(sum(thread.compiled) for thread in self.threads)
        operations = compiled + sum(sum(thread.single) for thread in self.threads)
        text = f"{count_text(operations, 'operation')} in {duration_text(self.end - self.start)}"
        if compiled:
            text += f", {compiled:,} of them compiled functions"
        if self.compiles:
            took = duration_text(sum(each.end - each.start for each in self.compiles))
            text += f"; {count_text(len(self.compiles), 'compile')} took {took}"
        return text

    def __repr__(self) -> str:
        return f"OperationTimeline({self.name}: {self.headline})"
