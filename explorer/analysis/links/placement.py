"""Where in the source the nodes without a place of their own belong."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from explorer.model.graph import Graph, Ints


def placed(graph: Graph, known: Sequence[int] = ()) -> Ints:
    """For each node, the node whose place it has: itself, or what it belongs to by structure; -1 for none.

    A node without a frame inside a fusion or a loop body belongs to the caller, any other to its first user, then to
    its first operand: parameters, constants, tuples and layout plumbing get a place so.

    Args:
        graph: Of any stage.
        known: Nodes without a frame whose place is known from elsewhere.
    """
    at = np.where(graph.frame >= 0, np.arange(len(graph.frame), dtype=np.int32), np.int32(-1))
    at[list(known)] = list(known)
    caller = np.asarray([group.caller for group in graph.groups] or [-1], np.int32)[graph.group]
    caller[graph.group < 0] = -1
    reader = np.repeat(np.arange(len(at), dtype=np.int32), np.diff(graph.operand_start))
    first_user = np.full(len(at), -1, np.int32)
    first_user[graph.operand[::-1]] = reader[::-1]  # backwards: of several, the first is written last
    first_operand = _first(graph.operand_start, graph.operand)
    # Once more the caller: what is inside of one that found its place only then.
    for source in (caller, first_user, first_operand, caller):
        for _ in range(_ROUNDS):
            open_ = np.flatnonzero((at < 0) & (source >= 0))
            places = at[source[open_]]
            if not (places >= 0).any():
                break
            at[open_] = places
    return at


_ROUNDS = 8  # how far a place travels: a chain of this many plumbing nodes


def _first(start: Ints, values: Ints) -> Ints:
    """The first value of each compressed row, -1 for an empty row."""
    has = start[1:] > start[:-1]
    first = np.full(len(has), -1, np.int32)
    first[has] = values[start[:-1][has]]
    return first
