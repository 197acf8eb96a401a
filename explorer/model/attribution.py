"""Lines of user code of a stage's nodes, and the evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from explorer.model.declared import cached_property

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
        """Return a mask of nodes that belong to a selected line, shape `[n]`; `passes` has one entry per place."""
        mask = np.zeros(len(self.line), bool)
        mask[self.node[np.repeat(np.asarray(passes, bool), np.diff(self.start))]] = True
        return mask

    def place(self, node: int) -> SourceLine | None:
        """Return the line of a node, for a kernel the line that it is named for; None without a line."""
        code = int(self.line[node])
        # Nodes of one line may have different evidence.
        return replace(self.places[code], how=MARKS[int(self.mark[node])]) if code >= 0 else None
