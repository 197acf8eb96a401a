"""How often the body of a loop runs, where the compiler or the program says so."""

from __future__ import annotations

import numpy as np

from explorer.model.graph import Graph

# What XLA found out about a while, and the length that a scan has.
_COUNTS = {"while": "known_trip_count", "scan": "length"}


def trip_counts(graph: Graph, least: int = 0) -> dict[int, int]:
    """The number of iterations of each loop that is known to have `least` or more, by the loop's node."""
    counts: dict[int, int] = {}
    for op, key in _COUNTS.items():
        if op in graph.ops:
            number = graph.attribute_table.integers(key)
            nodes = np.flatnonzero((graph.op == graph.ops.index(op)) & (number >= least)).tolist()
            counts |= {node: int(number[node]) for node in nodes}
    return counts
