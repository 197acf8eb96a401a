"""The paths between two instructions."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from explorer.model.graph import Graph, Node

MOST_COUNTED = sys.maxsize
"""Paths beyond are not counted: two hundred residual blocks have more than there are atoms."""


@dataclass(frozen=True, eq=False)
class Paths:
    """Every path along the operands from one instruction to another; made one by one as they are asked for.

    Where there are too many to look at, `nodes` is what they all run through: a subgraph.

    Args:
        graph: The graph.
        start, end: Indices of the nodes that the paths lead from and to, in the direction of the data.
        nodes: Indices of the nodes that are on some path, ascending; none where neither feeds the other.
        count: How many paths there are, at most `sys.maxsize`.
        steps: How many edges the shortest has.
        onwards: For each of `nodes`, which of its users are on a path, the nearest to the end first.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> graph = explorer.explore(lambda x: jnp.sin(x) + jnp.cos(x), jnp.ones(8)).jaxpr.graph
        >>> first, last = graph.where("op:parameter") + graph.where("op:add")
        >>> [[node.op for node in path] for path in graph.paths(first, last)]
        [['parameter', 'sin', 'add'], ['parameter', 'cos', 'add']]
    """

    graph: Graph
    start: int
    end: int
    nodes: Sequence[int]
    count: int
    steps: int
    onwards: Mapping[int, Sequence[int]]

    def __len__(self) -> int:
        return self.count

    def __bool__(self) -> bool:
        return bool(self.nodes)

    def __iter__(self) -> Iterator[tuple[Node, ...]]:
        """The paths, a shortest one first; each is begun only when the one before was looked at."""
        if not self.nodes:
            return
        path, choices = [self.start], [iter(self.onwards[self.start])]
        while path:
            if path[-1] == self.end:
                yield tuple(Node(self.graph, at) for at in path)
                path.pop()
                choices.pop()
                continue
            following = next(choices[-1], None)
            if following is None:
                path.pop()
                choices.pop()
            else:
                path.append(following)
                choices.append(iter(self.onwards[following]))

    @property
    def subgraph(self) -> tuple[Node, ...]:
        """The nodes that are on some path, in program order."""
        return tuple(Node(self.graph, at) for at in self.nodes)

    def __repr__(self) -> str:
        names = [self.graph.names[i] for i in (self.start, self.end)]
        if not self.nodes:
            return f"Paths(none: neither {names[0]} nor {names[1]} feeds the other)"
        count = "1 path" if self.count == 1 else f"{self.count:,} paths"
        many = "more than " if self.count == MOST_COUNTED else ""
        way = f"{names[0]} to {names[1]} through {len(self.nodes):,} nodes, the shortest of {self.steps:,} steps"
        return f"Paths({many}{count} from {way})"
