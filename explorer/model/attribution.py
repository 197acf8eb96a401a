"""Lines of user code: that of each node of a stage, with the evidence, and the costs of each line as a table."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np
from numpy.typing import NDArray

from explorer.model.declared import Framed, cached_property
from explorer.model.text import aligned
from explorer.model.units import amount_text, bytes_text, count_text

Ints = NDArray[np.int32]

# How a line is known: by the node's own frames; by those of the equation that it is; because it serves a node that
# knows one, as the copies of layout assignment do; by a library's frame, where its stack has none of the user's.
MARKS = ("", "own", "equation", "serves", "library")
NONE, OWN, EQUATION, SERVES, LIBRARY = range(len(MARKS))


@dataclass(frozen=True, slots=True)
class SourceLine:
    """Line of Python that a node belongs to.

    Args:
        file, line: Position, from line 1.
        function: Enclosing function, as in stack frames.
        how: Evidence. `own`: the node's own frames. `equation`: the node's equation. `serves`: the node exists for a
            node of that line, such as a copy from layout assignment. `library`: it has no user frame.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> def f(x):
        ...     return jnp.sin(x)
        >>> place = explorer.explore(f, jnp.ones(8)).jaxpr.graph.where("op:sin")[0].place
        >>> place.line, place.function, place.how
        (2, 'f', 'own')
    """

    file: str
    line: int
    function: str
    how: str = "own"

    def __str__(self) -> str:
        name = f" ({self.function})" if self.function else ""
        return f"{self.file}:{self.line}{name}" + (f", {self.how}" if self.how in ("equation", "serves") else "")


@dataclass(frozen=True, eq=False)
class Attribution:
    """Nodes of each source line for one stage, shared by all views.

    A node belongs to at most one line: that of the innermost frame in user code. A kernel also belongs to every line of
    its instructions. Arguments and constants without a frame belong to no line.

    Columns have one row per node, shape `[n]`, int32.

    Args:
        places: Distinct lines.
        line: Index into `places`, -1 for none.
        mark: Index into `MARKS`.
        by: Node that determines the line: itself, or the node that it serves; -1 for none.
        equation: Row of the equation in the first stage that determines the line; else -1.
        start, node: Compressed rows, shapes `[places + 1]` and `[members]`: nodes of each line, ascending; a kernel
            appears once for each of its lines.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> def f(x):
        ...     y = jnp.sin(x)
        ...     return y * 2
        >>> graph = explorer.explore(f, jnp.ones(8)).jaxpr.graph
        >>> [(place.line, place.function, place.how) for place in graph.attribution.places]
        [(2, 'f', 'own'), (3, 'f', 'own')]
        >>> file = graph.attribution.places[0].file
        >>> [graph.ops[graph.op[i]] for i in graph.attribution.nodes(file, 2)]
        ['sin']
    """

    places: Sequence[SourceLine]
    line: Ints
    mark: Ints
    by: Ints
    equation: Ints
    start: Ints
    node: Ints

    @cached_property
    def codes(self) -> Mapping[tuple[str, int], int]:
        """Return a mapping from (file, line) to the index of that line in `places`."""
        return {(place.file, place.line): code for code, place in enumerate(self.places)}

    def nodes(self, file: str, line: int) -> Ints:
        """Return the indices of the nodes of a source line, ascending; empty if the line has none."""
        code = self.codes.get((file, line), -1)
        return self.node[self.start[code] : self.start[code + 1]] if code >= 0 else self.node[:0]

    def mask(self, passes: Sequence[bool] | NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return a mask of shape `[n]`, True for nodes of a line `places[i]` for which `passes[i]` is True."""
        mask = np.zeros(len(self.line), bool)
        mask[self.node[np.repeat(np.asarray(passes, bool), np.diff(self.start))]] = True
        return mask

    def place(self, node: int) -> SourceLine | None:
        """Return the source line of the node with index `node`, from the column `line`; None without a line.

        A kernel belongs to further lines, which `nodes` and `mask` include.
        """
        code = int(self.line[node])
        # Nodes of one line may have different evidence.
        return replace(self.places[code], how=MARKS[int(self.mark[node])]) if code >= 0 else None


_PATH = re.compile(r"[/\\]")
_WIDEST = 48  # characters of a line's text in a repr


@dataclass(frozen=True, slots=True)
class LineRow:
    """Cost of one source line.

    Args:
        file, line: Position, from line 1; empty and 0 for kernels without a known line.
        text: The line without indentation; empty if the source is unknown.
        equations: Number of its equations in the jaxpr.
        kernels: Number of kernels with a part of the line.
        flops, bytes: Its part of the kernels' figures; `flops_share` and `bytes_share` of the program's, 0 to 1.
        seconds: Its part of the measured time, None without a measurement.
        one_iteration: True if a part is in a loop of unknown length, of which one iteration counts.
        depth: Number of rows around it in a folded table, whose figures include its own; 0 in others. The row of a
            named scope has its name as `text`, and no file.

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
    depth: int = 0


class LineTable(Sequence[LineRow], Framed):
    """Costs by file and line; the row without a known line is last. In a folded table rows are inside others.

    Args:
        rows: Rows of the lines.
        flops, bytes_, seconds: Sums over the program; seconds is None without a measurement.
        notes: Limits of the counts, one sentence each.

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
        if math.isnan(self.flops):
            return "\n".join(self.notes)
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
    name = "  " * row.depth + (text or _PATH.split(row.file)[-1] or "(no line)")
    share = (f"{row.flops_share:.1%}", f"{row.bytes_share:.1%}")
    count = (str(row.equations), str(row.kernels))
    return (str(row.line or ""), name, *count, amount_text(row.flops), share[0], bytes_text(row.bytes), share[1])


ONE_ITERATION = "one iteration counted"
_NAMED = 3  # names before the others are counted


@dataclass(frozen=True)
class CountLimits:
    """Reasons why a program's FLOPs and bytes may differ from those of a call.

    Args:
        loops: Names of loops of unknown length; one iteration counts.
        branches: Names of conditionals; every branch counts.
        unknown: Names of kernels with unknown FLOPs, such as custom calls; they count as 0.
        nothing: Reason why nothing is counted; else empty.
    """

    loops: Sequence[str] = ()
    branches: Sequence[str] = ()
    unknown: Sequence[str] = ()
    nothing: str = ""

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """Return one sentence for each kind of limit that applies; empty if none applies.

        Example:
            >>> CountLimits(loops=["while.3"], unknown=["gemm", "topk"]).sentences
            ('one iteration counted of while.3: its length is not known', 'FLOPs of 2 kernels not known: gemm, topk')
        """
        loops, branches, unknown = len(self.loops), len(self.branches), len(self.unknown)
        which = self.loops[0] if loops == 1 else f"each of {loops:,} loops"
        all_of = self.branches[0] if branches == 1 else f"{branches:,} conditionals"
        return (
            *([self.nothing] if self.nothing else []),
            *([f"{ONE_ITERATION} of {which}: its length is not known"] if loops else []),
            *([f"all branches counted of {all_of}"] if branches else []),
            *([f"FLOPs of {count_text(unknown, 'kernel')} not known: {_listed(self.unknown)}"] if unknown else []),
        )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
