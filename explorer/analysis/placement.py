"""Where in the source the nodes without a place of their own belong."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from explorer.model.graph import Frame, Graph, Ints
from explorer.model.stage import is_library_file


def placed(graph: Graph) -> Ints:
    """For each node, the node whose place it has: itself, or what it belongs to by structure; -1 for none.

    A node without a frame inside a fusion or a loop body belongs to the caller, any other to its first user, then to
    its first operand: parameters, constants, tuples and layout plumbing get a place so.
    """
    at = np.where(graph.frame >= 0, np.arange(len(graph.frame), dtype=np.int32), np.int32(-1))
    return spread_places(graph, at, np.zeros(len(at), bool))


def innermost_own(frames: Sequence[Frame]) -> Ints:
    """For each frame, the innermost of its stack that is in the user's own code; itself where there is none."""
    own = np.full(len(frames), -1, np.int32)
    for i in range(len(frames)):
        at, steps = i, 0
        # The steps end the walk where parents of damaged input go in a circle.
        while is_library_file(frames[at].file) and 0 <= frames[at].parent < len(frames) and steps < len(frames):
            at, steps = frames[at].parent, steps + 1
        own[i] = i if is_library_file(frames[at].file) else at
    return own


def spread_places(graph: Graph, at: Ints, apart: NDArray[np.bool_], *, readers_first: bool = False) -> Ints:
    """For each node, the node whose place it has, by structure; -1 for none.

    Args:
        graph: Of any stage.
        at: Each node that has a place, -1 for the others, shape `[n]`.
        apart: Nodes that get no place, and through which none is found, shape `[n]`.
        readers_first: Whether what is inside a fusion or a loop body belongs to its reader there before its caller.
    """
    at = np.where(apart, np.int32(_APART), at)
    caller = np.asarray([group.caller for group in graph.groups] or [-1], np.int32)[graph.group]
    caller[graph.group < 0] = -1
    reader = np.repeat(np.arange(len(at), dtype=np.int32), np.diff(graph.operand_start))
    first_user = np.full(len(at), -1, np.int32)
    first_user[graph.operand[::-1]] = reader[::-1]  # backwards: of several, the first is written last
    first_operand = _first(graph.operand_start, graph.operand)
    around = (first_user, caller) if readers_first else (caller, first_user)
    # Once more the caller: what is inside of one that found its place only then.
    for source in (*around, first_operand, caller):
        for _ in range(_ROUNDS):
            open_ = np.flatnonzero((at == -1) & (source >= 0))
            places = at[source[open_]]
            if not (places >= 0).any():
                break
            at[open_] = np.maximum(places, -1)
    return np.maximum(at, -1)


_APART = -2
_ROUNDS = 8  # how far a place travels: a chain of this many plumbing nodes


def _first(start: Ints, values: Ints) -> Ints:
    """The first value of each compressed row, -1 for an empty row."""
    has = start[1:] > start[:-1]
    first = np.full(len(has), -1, np.int32)
    first[has] = values[start[:-1][has]]
    return first
