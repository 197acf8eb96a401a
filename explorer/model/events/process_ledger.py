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
    """One program: processes whose compiles are equal in all that is here have the same one.

    Args:
        function: Its name.
        file, line: Where it is defined, the file by its name alone, as processes may keep it in other folders.
        call_site: The user's line that called it: `train.py, line 40`.
        arguments: The type of each array by its path: `("x", "float32[8,128]")`.
        settings: Static arguments, donation, XLA's options and the rest that the caches compare, by name.
        lines: What each of the user's lines does, by its number; empty where only arguments are known.
        is_shared: True if an array of its lies on devices of several processes: who runs another program meanwhile
            leaves the others waiting.
        eager: It is a single operation, outside of any `jit`.
        processes: Which ones compiled it.
        compiles: How often, all processes together.
        seconds: Of its traces, lowerings and compiles, all processes together.
        slowest: Seconds of the process that took longest.
        slowest_process: Which that is.

    Example:
        >>> import explorer
        >>> ledgers = [explorer.Ledger(), explorer.Ledger()]
        >>> for ledger in ledgers:
        ...     ledger.add((explorer.Event("compile", "step", reason=explorer.Reason("first"), seconds=0.5, call=1),))
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
        """By how many processes it was compiled."""
        return sum(last - first + 1 for first, last in self.processes)

    @property
    def place(self) -> str:
        """`step (train.py, line 12)`."""
        return f"{self.function} ({self.file}, line {self.line})" if self.file else self.function


@dataclass(frozen=True)
class ProcessDifference:
    """That some processes compiled another program of a function than most did, or none.

    Args:
        program: Index of the program that most compiled, among the rows.
        other: Index of the one that these compiled in its place; None if they compiled none.
        processes: Who they are.
        line: The user's line in which the two differ; that of the function where it is the arguments that do.
        what: In which argument, setting or line: `x.shape[0]`, `n`, `line 14`.
        usual: What it is with most.
        here: What it is with these.
        is_shared: True if the program reaches over devices of several processes, so that they may wait for ever.
        text: All of it as a sentence.

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
    """What many processes compiled, equal programs folded into one row.

    Args:
        processes: What the processes are called.
        rows: The programs, the most expensive first.
        differences: Who compiled another one than most; those that reach over several processes first.
        events: How many events they are made of.
        notes: What a reader should know of how this came about.

    Example:
        >>> import explorer
        >>> ledgers = [explorer.Ledger(), explorer.Ledger()]
        >>> for ledger in ledgers:
        ...     ledger.add((explorer.Event("compile", "step", reason=explorer.Reason("first"), seconds=0.5, call=1),))
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
        """Processes in words: `process 417`, `processes 0–3 and 7`."""
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
    """Sorted indices as runs.

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
