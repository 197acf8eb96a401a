"""Where in the source the nodes without a place belong, and each frame's stack."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from explorer.model.capture import Capture
from explorer.model.graph import Graph, Ints

__all__ = ["coverage", "placed", "stacks"]


def placed(graph: Graph, known: Sequence[int] = ()) -> Ints:
    """For each node, the node whose place it has: itself, or what it belongs to by structure; -1 for none.

    A node without a frame inside a fusion or a loop body belongs to the caller, any other to its first user, then to
    its first operand: parameters, constants, tuples and layout plumbing get a place so.

    Args:
        graph: Of any stage.
        known: Nodes without a frame whose place is known from elsewhere.
    """
    at = np.where(graph.frame >= 0, np.arange(len(graph), dtype=np.int32), np.int32(-1))
    at[list(known)] = list(known)
    caller = np.asarray([group.caller for group in graph.groups] or [-1], np.int32)[graph.group]
    caller[graph.group < 0] = -1
    user_start, user = graph.user_columns
    first_user = _first(user_start, user)
    first_operand = _first(graph.operand_start, graph.operand)
    # Once more the caller: what is inside of one that found its place only then.
    for source in (caller, first_user, first_operand, caller):
        for _ in range(_ROUNDS):
            open_ = np.flatnonzero((at < 0) & (source >= 0))
            found = at[source[open_]]
            if not (found >= 0).any():
                break
            at[open_] = found
    return at


_ROUNDS = 8  # how far a place travels: a chain of this many plumbing nodes


def _first(start: Ints, values: Ints) -> Ints:
    """The first value of each compressed row, -1 for an empty row."""
    has = start[1:] > start[:-1]
    first = np.full(len(has), -1, np.int32)
    first[has] = values[start[:-1][has]]
    return first


_DEEPEST = 1_000  # calls: Python's own limit; a chain or a cycle in damaged input is cut there


def stacks(graph: Graph) -> Sequence[tuple[int, ...]]:
    """For each frame, the indices of its stack, outermost first."""
    known: list[tuple[int, ...] | None] = [None] * len(graph.frames)
    for i in range(len(known)):
        walk: list[int] = []
        seen: set[int] = set()
        at = i
        while 0 <= at < len(known) and known[at] is None and len(walk) < _DEEPEST and at not in seen:
            walk.append(at)
            seen.add(at)
            at = graph.frames[at].parent
        base = (known[at] or ()) if 0 <= at < len(known) else ()
        for frame in reversed(walk):
            base = known[frame] = (*base[-_DEEPEST:], frame)
    return [stack or () for stack in known]


def coverage(capture: Capture, stage: str) -> float:
    """The share of a stage's nodes, 0 to 1, that have a place in the user's source, their own or by structure."""
    by = capture.stage(stage).graph.placed
    return float((by >= 0).mean()) if len(by) else 0.0
