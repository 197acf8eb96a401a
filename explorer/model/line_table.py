"""Costs of each line of the user's source, as a table, and what the counts leave open."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from explorer.model.declared import Framed
from explorer.model.text import aligned
from explorer.model.units import amount_text, bytes_text, count_text

_PATH = re.compile(r"[/\\]")
_WIDEST = 48  # characters of a line's text in a repr


@dataclass(frozen=True, slots=True)
class LineRow:
    """What one line of the source costs.

    Args:
        file, line: Its place, the line from 1; empty and 0 for what no line is known for.
        text: The line without its indentation; empty where the source is not known.
        equations: How many equations of the jaxpr it makes.
        kernels: How many kernels something of it runs in.
        flops, bytes: Its part of theirs; `flops_share` and `bytes_share` of the program's, 0 to 1.
        seconds: Its part of the time measured, None where none was.
        one_iteration: Whether some of it is in a loop whose length nobody knows: one iteration of that is counted.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> def f(x):
        ...     y = x @ x
        ...     return y + 1
        >>> for row in explorer.explore(f, jnp.ones((64, 64))).lines():
        ...     print(row.line, row.text, row.flops)
        2 y = x @ x 524288.0
        3 return y + 1 4096.0
    """

    file: str
    line: int
    text: str
    equations: int
    kernels: int
    flops: float
    flops_share: float
    bytes: float
    bytes_share: float
    seconds: float | None = None
    one_iteration: bool = False


class LineTable(Sequence[LineRow], Framed):
    """The rows, by file and line; what no line is known for is last.

    Args:
        rows: The rows.
        flops, bytes_, seconds: Of the whole program: each column's sum; seconds None where none were measured.
        notes: What the counts leave open, a sentence each.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> table = explorer.explore(lambda x: jnp.sin(x) @ x, jnp.ones((64, 64))).lines()
        >>> sum(row.flops for row in table) == table.flops
        True
    """

    def __init__(
        self,
        rows: Sequence[LineRow],
        flops: float,
        bytes_: float,
        seconds: float | None,
        notes: Sequence[str] = (),
    ) -> None:
        self._rows = tuple(rows)
        self.flops, self.bytes, self.seconds = flops, bytes_, seconds
        self.notes = tuple(notes)

    @overload
    def __getitem__(self, index: int) -> LineRow: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[LineRow, ...]: ...
    def __getitem__(self, index: int | slice) -> LineRow | tuple[LineRow, ...]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[LineRow]:
        return iter(self._rows)

    def __repr__(self) -> str:
        head = ("line", "source", "equations", "kernels", "FLOPs", "", "bytes", "")
        rows = [head, *(_cells(row) for row in self._rows)]
        rows.append(("", "total", "", "", amount_text(self.flops), "", bytes_text(self.bytes), ""))
        if self.seconds is not None:
            seconds = ["seconds", *(f"{row.seconds or 0:.2e}" for row in self._rows), f"{self.seconds:.2e}"]
            rows = [(*row, text) for row, text in zip(rows, seconds, strict=True)]
        marks = ["", *(ONE_ITERATION if row.one_iteration else "" for row in self._rows), ""]
        rows = [(*row, mark) for row, mark in zip(rows, marks, strict=True)]
        right = set(range(len(rows[0]))) - {1}
        return "\n".join([*aligned(rows, right), *(f"note: {note}" for note in self.notes)])


def _cells(row: LineRow) -> tuple[str, ...]:
    text = row.text if len(row.text) <= _WIDEST else row.text[: _WIDEST - 1] + "…"
    name = text or _PATH.split(row.file)[-1] or "(no line)"
    share = (f"{row.flops_share:.1%}", f"{row.bytes_share:.1%}")
    count = (str(row.equations), str(row.kernels))
    return (str(row.line or ""), name, *count, amount_text(row.flops), share[0], bytes_text(row.bytes), share[1])


ONE_ITERATION = "one iteration counted"
_NAMED = 3  # names before the others are counted


@dataclass(frozen=True)
class CountLimits:
    """Where FLOPs and bytes of a program are not what a call does, and why.

    Args:
        loops: Names of the loops whose length nobody knows: one iteration is counted.
        branches: Names of the conditionals: each of their branches is counted.
        unknown: Names of the kernels whose FLOPs nobody knows, as those of a custom call: they count as none.
    """

    loops: Sequence[str] = ()
    branches: Sequence[str] = ()
    unknown: Sequence[str] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """One for each limit there is.

        Example:
            >>> CountLimits(loops=["while.3"], unknown=["gemm", "topk"]).sentences
            ('one iteration counted of while.3: its length is not known', 'FLOPs of 2 kernels not known: gemm, topk')
        """
        loops, branches, unknown = len(self.loops), len(self.branches), len(self.unknown)
        which = self.loops[0] if loops == 1 else f"each of {loops:,} loops"
        all_of = self.branches[0] if branches == 1 else f"{branches:,} conditionals"
        return (
            *([f"{ONE_ITERATION} of {which}: its length is not known"] if loops else []),
            *([f"all branches counted of {all_of}"] if branches else []),
            *([f"FLOPs of {count_text(unknown, 'kernel')} not known: {_listed(self.unknown)}"] if unknown else []),
        )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
