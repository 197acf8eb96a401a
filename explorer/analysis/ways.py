"""Ways through a graph: the paths between two instructions, and what is near one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.post_order import post_order
from explorer.errors import ForeignNodeError, OptionError
from explorer.model.graph import MOST_COUNTED, Graph, Node, Paths

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
    """The nodes, or what calls their computations, so that both are in one computation."""
    around_a, around_b = _callers(graph, a), _callers(graph, b)
    at_group = {int(graph.group[node]): node for node in around_a}
    for node in around_b:
        if int(graph.group[node]) in at_group:
            return at_group[int(graph.group[node])], node
    return a, b


def _callers(graph: Graph, node: int) -> list[int]:
    """A node, what calls its computation, what calls that one's, and so on; a circle in damaged input ends it."""
    chain = [node]
    while True:
        group = int(graph.group[chain[-1]])
        caller = graph.groups[group].caller if group >= 0 else -1
        if caller < 0 or caller in chain:
            return chain
        chain.append(caller)


def _edges(graph: Graph) -> tuple[Edges, Edges]:
    """To the users, and to the operands."""
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
