"""What every analysis asks of a graph: members of computations, callees first, paths, places of nodes without one."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from explorer.errors import ForeignNodeError, OptionError
from explorer.model.capture import Capture
from explorer.model.graph import MOST_COUNTED, Floats, Frame, Graph, Ints, Node, Paths
from explorer.model.stage import Stage, is_library_file


def graph_of(capture: Capture, stage: str) -> Graph | None:
    """Return the graph of a capture's stage; None where it has no such stage."""
    return next((each.graph for each in capture.stages if each.name == stage), None)


def with_measures(capture: Capture, measures: Mapping[str, Floats]) -> Capture:
    """Return the capture with these measures of its `hlo` stage."""
    stage, text = capture.hlo, capture.hlo.text

    def measure(_: Graph) -> Mapping[str, Floats]:
        return measures

    measured = replace(stage.graph, measure=measure)
    measured_stage = Stage("hlo", lambda: (text, measured))
    return replace(capture, stages=tuple(measured_stage if each is stage else each for each in capture.stages))


def is_op(graph: Graph, ops: Container[str]) -> NDArray[np.bool_]:
    """Return whether each node is one of some operations, shape `[n]`."""
    return np.asarray([op in ops for op in graph.ops] or [False])[graph.op]


def callers(graph: Graph) -> Ints:
    """Return the node that calls each group, -1 for none, and -1 at the end: for nodes in no group."""
    return np.asarray([*(group.caller for group in graph.groups), -1], np.int32)


def members(graph: Graph) -> list[Ints]:
    """Return the nodes of each computation, in text order."""
    order = np.argsort(graph.group, kind="stable").astype(np.int32)
    start = np.searchsorted(graph.group[order], np.arange(len(graph.groups) + 1))
    return [order[start[i] : start[i + 1]] for i in range(len(graph.groups))]


def entry_parameters(graph: Graph) -> Sequence[Node]:
    """Return the arguments of the program, by number."""
    is_entry = np.asarray([*(group.kind == "entry" for group in graph.groups), False])[graph.group]  # -1: the last one
    rows = np.flatnonzero(is_op(graph, ("parameter",)) & is_entry)
    in_order = rows[np.argsort(graph.parameter_number[rows], kind="stable")]
    return [Node(graph, row) for row in in_order.tolist()]


def post_order(starts: Iterable[int], successors: Sequence[Sequence[int]] | Mapping[int, Sequence[int]]) -> list[int]:
    """What can be reached from `starts`, each after all its successors; a cycle, as in damaged input, ends there.

    Example:
        >>> post_order([0], [[1, 2], [2], []])
        [2, 1, 0]
    """
    order: list[int] = []
    seen: set[int] = set()
    for start in starts:
        stack = [(start, False)]
        while stack:
            at, is_done = stack.pop()
            if is_done:
                order.append(at)
            elif at not in seen:
                seen.add(at)
                stack.append((at, True))
                stack += [(successor, False) for successor in successors[at] if successor not in seen]
    return order


_APART = -2
_ROUNDS = 8  # how far a place travels: a chain of this many plumbing nodes

Edges = tuple[list[int], list[int]]
"""Compressed rows: where the neighbours of each node start, and the neighbours."""


def paths(graph: Graph, a: Node, b: Node) -> Paths:
    """The paths from `a` to `b`, or where there are none, from `b` to `a`.

    Where one is in a kernel, a loop or a branch that the other is outside of, what calls it stands for it.
    """
    start, end = _side_by_side(graph, _index(graph, a), _index(graph, b))
    down, up = _edges(graph)
    for first, last in ((start, end), (end, start)):
        feeds = _reached(up, last)
        if feeds[first] >= 0:
            return _paths_along(graph, first, last, down, feeds)
    return Paths(graph, start, end, (), 0, 0, {})


def neighbourhood(graph: Graph, node: Node, width: int = 1) -> tuple[Node, ...]:
    """The nodes that are at most `width` steps away from one, along operands and users, in program order."""
    if not isinstance(width, int) or isinstance(width, bool) or width < 0:  # pyright: ignore[reportUnnecessaryIsInstance]: users write no types
        raise OptionError(f"width is {width!r}; allowed is a number of steps, 0 or more.")
    edges = _edges(graph)
    near = front = {_index(graph, node)}
    for _ in range(width):
        front = {other for at in front for edge in edges for other in _of(edge, at)} - near
        if not front:
            break
        near = near | front
    return tuple(Node(graph, at) for at in sorted(near))


def _index(graph: Graph, node: Node) -> int:
    if not isinstance(node, Node):  # pyright: ignore[reportUnnecessaryIsInstance]: users write no types
        raise ForeignNodeError(f"{node!r:.60} is no node. Hint: graph['name'], or what graph.where(query) gives.")
    if node.graph is not graph:
        raise ForeignNodeError(f"{node.name} is a node of another graph.")
    return node.index


def _side_by_side(graph: Graph, a: int, b: int) -> tuple[int, int]:
    around_a, around_b = _callers(graph, a), _callers(graph, b)
    at_group = {int(graph.group[node]): node for node in around_a}
    for node in around_b:
        if int(graph.group[node]) in at_group:
            return at_group[int(graph.group[node])], node
    return a, b


def _callers(graph: Graph, node: int) -> list[int]:
    chain = [node]
    while True:
        group = int(graph.group[chain[-1]])
        caller = graph.groups[group].caller if group >= 0 else -1
        if caller < 0 or caller in chain:
            return chain
        chain.append(caller)


def _edges(graph: Graph) -> tuple[Edges, Edges]:
    start, user = graph.user_columns
    return (start.tolist(), user.tolist()), (graph.operand_start.tolist(), graph.operand.tolist())


def _of(edges: Edges, node: int) -> Sequence[int]:
    starts, ends = edges
    return ends[starts[node] : starts[node + 1]]


def _reached(edges: Edges, start: int) -> NDArray[np.int32]:
    """How many steps away from `start` each node is along the edges, -1 for out of reach; shape `[n]`."""
    steps = [-1] * (len(edges[0]) - 1)
    steps[start] = 0
    front, distance = [start], 0
    while front:
        distance += 1
        following: list[int] = []
        for node in front:
            for other in _of(edges, node):
                if steps[other] < 0:
                    steps[other] = distance
                    following.append(other)
        front = following
    return np.asarray(steps, np.int32)


def _paths_along(graph: Graph, first: int, last: int, down: Edges, feeds: NDArray[np.int32]) -> Paths:
    """The paths between two nodes of which the first feeds the last; `feeds` is how far each is from the last."""
    needs = _reached(down, first)
    nodes: list[int] = np.flatnonzero((needs >= 0) & (feeds >= 0)).tolist()
    on_path = set(nodes)
    away: list[int] = feeds.tolist()
    onwards: dict[int, list[int]] = {}
    for node in nodes:
        onwards[node] = sorted(on_path.intersection(_of(down, node)), key=lambda other: (away[other], other))
    onwards[last] = []
    order = post_order(nodes, onwards)  # users first
    position = {node: i for i, node in enumerate(order)}
    # An edge back can only be in damaged input: a program has no circles.
    onwards = {node: [on for on in users if position[on] < position[node]] for node, users in onwards.items()}
    counts = {last: 1}
    for node in order:
        if node != last:
            counts[node] = min(sum(counts[on] for on in onwards[node]), MOST_COUNTED)
    return Paths(graph, first, last, nodes, counts[first], int(feeds[first]), onwards)


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
        at: Each node that has a place, -1 for the others, shape `[n]`.
        apart: Nodes that get no place, and through which none is found, shape `[n]`.
        readers_first: Whether what is inside a fusion or a loop body belongs to its reader there before its caller.
    """
    at = np.where(apart, np.int32(_APART), at)
    caller = callers(graph)[graph.group]
    reader = np.repeat(np.arange(len(at), dtype=np.int32), np.diff(graph.operand_start))
    first_user = np.full(len(at), -1, np.int32)
    first_user[graph.operand[::-1]] = reader[::-1]  # backwards: of several, the first is written last
    has_operands = np.diff(graph.operand_start) > 0
    first_operand = np.full(len(at), -1, np.int32)
    first_operand[has_operands] = graph.operand[graph.operand_start[:-1][has_operands]]
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
