"""One ledger of many processes: each program once, with who compiled it, and who compiled another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from explorer.model.declared import Displayable, Framed, Saved, declared
from explorer.model.results.rows import Rows

Ranges = tuple[tuple[int, int], ...]
"""Indices of processes, as first and last of each run of them."""


@dataclass(frozen=True)
class ProcessProgram:
    """One program; processes whose compiles agree in all these fields share it.

    Args:
        function: Name of the function.
        file, line: Position of the definition; the file without its folder, which may differ between processes.
        call_site: User's line of the call: `train.py, line 40`.
        arguments: Type of each array by its path: `("x", "float32[8,128]")`.
        settings: Static arguments, donation, XLA's options and other parts of the cache key, by name.
        lines: Operations of each user line, by line number; empty if only the arguments are known.
        is_shared: True if one of its arrays spans several processes; a process that runs another program then blocks
            the others.
        eager: True for a single operation outside of any `jit`.
        processes: Indices of the processes that compiled it.
        compiles: Number of compiles over all processes.
        seconds: Seconds of traces, lowerings and compiles over all processes.
        slowest: Seconds of the slowest process.
        slowest_process: Index of the slowest process.

    Example:
        >>> import explorer
        >>> ledgers = [explorer.Ledger(), explorer.Ledger()]
        >>> for ledger in ledgers:
        ...     ledger.add((explorer.types.Event("compile", "step", reason=explorer.types.Reason("first"),
        ...         seconds=0.5, call=1),))
        >>> program, = explorer.merge_ledgers(ledgers).rows
        >>> program.function, program.compiles, program.seconds, program.count
        ('step', 2, 1.0, 2)
    """

    function: str
    file: str = ""
    line: int = 0
    call_site: str = ""
    arguments: tuple[tuple[str, str], ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    lines: tuple[tuple[int, str], ...] = ()
    is_shared: bool = False
    eager: bool = False
    processes: Ranges = ()
    compiles: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    slowest_process: int = 0

    @property
    def count(self) -> int:
        """Return the number of processes that compiled the program."""
        return sum(last - first + 1 for first, last in self.processes)

    @property
    def place(self) -> str:
        """Return the function and its position, `step (train.py, line 12)`; only the name without a file."""
        return f"{self.function} ({self.file}, line {self.line})" if self.file else self.function


@dataclass(frozen=True)
class ProcessDifference:
    """Processes that compiled another program of a function than most did, or none.

    Args:
        program: Row of the program that most processes compiled.
        other: Row of the program that these processes compiled instead; None if they compiled none.
        processes: Indices of these processes.
        line: User's line in which the programs differ; the function's line if the arguments differ.
        what: Differing argument, setting or line: `x.shape[0]`, `n`, `line 14`.
        usual: Its value in most processes.
        here: Its value in these processes.
        is_shared: True if the program spans several processes, which may then wait forever.
        text: The difference as a sentence.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> def double(x):
        ...     return x * 2
        >>> ledgers = []
        >>> for x in (jnp.ones(4), jnp.ones(5)):
        ...     with explorer.watch() as ledger:
        ...         _ = jax.jit(double)(x)
        ...     ledgers.append(ledger)
        >>> difference, = explorer.merge_ledgers(ledgers).differences
        >>> difference.what, difference.usual, difference.here
        ('x', 'float32[4]', 'float32[5]')
    """

    program: int
    other: int | None
    processes: Ranges
    line: int
    what: str
    usual: str
    here: str
    is_shared: bool
    text: str


@dataclass(frozen=True, repr=False, eq=False)
class ProcessLedger(Rows[ProcessProgram], Displayable, Framed, Saved):
    """Compiles of many processes, with one row per distinct program.

    Args:
        processes: Names of the processes.
        rows: Programs, most expensive first.
        differences: Processes that differ from most, programs that span several processes first.
        events: Number of events.
        notes: Notes on the merge.

    Example:
        >>> import explorer
        >>> ledgers = [explorer.Ledger(), explorer.Ledger()]
        >>> for ledger in ledgers:
        ...     ledger.add((explorer.types.Event("compile", "step", reason=explorer.types.Reason("first"),
        ...         seconds=0.5, call=1),))
        >>> merged = explorer.merge_ledgers(ledgers, names=["host 0", "host 1"])
        >>> [(row.function, row.count, row.compiles) for row in merged.rows], merged.named(((0, 1),))
        ([('step', 2, 2)], 'processes host 0–host 1')
    """

    processes: tuple[str, ...]
    rows: tuple[ProcessProgram, ...]
    differences: tuple[ProcessDifference, ...] = ()
    events: int = 0
    notes: tuple[str, ...] = ()

    def named(self, ranges: Ranges) -> str:
        """Return the names of ranges of processes, such as `process 417` or `processes 0–3 and 7`.

        After four ranges, only the number of the others follows.
        """
        names = self.processes
        runs = [
            names[first] if first == last else f"{names[first]}–{names[last]}" for first, last in ranges[:_MOST_RUNS]
        ]
        several = len(runs) > 1 or any(first != last for first, last in ranges)
        more = len(ranges) - len(runs)
        text = ", ".join(runs[:-1]) + " and " + runs[-1] if len(runs) > 1 and not more else ", ".join(runs)
        return f"process{'es' * several} {text}" + (f" and {more:,} more runs" if more else "")

    @declared
    def __repr__(self) -> str: ...


_MOST_RUNS = 4


def ranges_of(processes: Sequence[int]) -> Ranges:
    """Return sorted indices as runs of consecutive indices, each a (first, last) pair.

    Example:
        >>> ranges_of([0, 1, 2, 5])
        ((0, 2), (5, 5))
    """
    runs: list[tuple[int, int]] = []
    for index in processes:
        if runs and index == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], index
        else:
            runs.append((index, index))
    return tuple(runs)
