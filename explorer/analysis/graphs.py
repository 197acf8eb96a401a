"""Helpers for analyses of graphs: members of computations, callees first, paths, places, and data flow."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Sequence

import numpy as np
from numpy.typing import NDArray

from explorer.errors import ForeignNodeError, OptionError
from explorer.model.capture import Capture
from explorer.model.graph import MOST_COUNTED, Frame, Graph, Ints, Node, Paths, post_order
from explorer.model.stage import is_library_file


def graph_of(capture: Capture, stage: str) -> Graph | None:
    for each in capture.stages:
        if each.name == stage:
            return each.graph
    return None


def device_count(program: Graph) -> int:
    """Return the number of devices between which an optimized program is partitioned, those of all slices together."""
    return math.prod(_count(program, name) for name in ("num_partitions", SLICES))


SLICES = "slices"  # attribute of a TPU's module: it has the partitions of one slice, and each slice runs it


def slice_count(program: Graph) -> int:
    return _count(program, SLICES)


def _count(program: Graph, attribute: str) -> int:
    written = program.attributes.get(attribute, "1")
    return int(written) if written.isdecimal() and len(written) < 10 else 1


NO_ENTRY = "the module has no ENTRY computation: what runs, its cost, memory and collectives are unknown"


def has_entry(graph: Graph) -> bool:
    """Return True if a module's text says where it starts; a text cut before its end often doesn't.

    Instructions outside of all computations are a program too, as XLA's own parser reads them.
    """
    return not graph.groups or any(group.kind == "entry" for group in graph.groups)


def is_op(graph: Graph, ops: Container[str]) -> NDArray[np.bool_]:
    """Return a mask of the nodes that are one of some operations, shape `[n]`."""
    return np.asarray([*map(ops.__contains__, graph.ops)] or [False])[graph.op]


def entry_parameters(graph: Graph) -> Sequence[Node]:
    return [Node(graph, row) for row in entry_rows(graph)]


def entry_rows(graph: Graph) -> list[int]:
    """Return the rows of the entry computation's parameters, ordered by parameter number."""
    is_entry = np.asarray([*(group.kind == "entry" for group in graph.groups), False])[graph.group]  # -1: the last one
    rows = np.flatnonzero(is_op(graph, ("parameter",)) & is_entry)
    # Stable, so that parameters without a number stay in the order of the text.
    return rows[np.argsort(graph.parameter_number[rows], kind="stable")].tolist()


_APART = -2
_ROUNDS = 8  # places pass through at most this many plumbing nodes

Edges = tuple[list[int], list[int]]  # compressed rows: starts, and neighbors


def paths(graph: Graph, a: Node, b: Node) -> Paths:
    """Return the paths from `a` to `b`, or those from `b` to `a`, or no paths.

    If one node is inside a kernel, loop or branch and the other isn't, its caller takes its place.
    """
    start, end = _side_by_side(graph, _index(graph, a), _index(graph, b))
    down, up = _edges(graph)
    for first, last in ((start, end), (end, start)):
        feeds = _reached(up, last)
        if feeds[first] >= 0:
            return _paths_along(graph, first, last, down, feeds)
    return Paths(graph, start, end, (), 0, 0, {})


def neighbourhood(graph: Graph, node: Node, width: int = 1) -> tuple[Node, ...]:
    """Return a node and all nodes at most `width` steps from it, along operands and users, in program order.

    See `Graph.neighbourhood` for errors.
    """
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
        # In a damaged text, a computation may call itself.
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
    """Return each node's distance from `start` along the edges, or -1, shape `[n]`."""
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
    """Return the paths from `first` to `last`; `feeds` is each node's distance to `last`."""
    needs = _reached(down, first)
    nodes: list[int] = np.flatnonzero((needs >= 0) & (feeds >= 0)).tolist()
    on_path = set(nodes)
    away: list[int] = feeds.tolist()
    onwards: dict[int, list[int]] = {}
    for node in nodes:
        # Nearest first makes the first path a shortest one; the index decides ties.
        onwards[node] = sorted(on_path.intersection(_of(down, node)), key=lambda other: (away[other], other))
    onwards[last] = []
    order = post_order(nodes, onwards)  # users first
    position = {node: i for i, node in enumerate(order)}
    # Only damaged input has cycles.
    onwards = {node: [on for on in users if position[on] < position[node]] for node, users in onwards.items()}
    counts = {last: 1}
    for node in order:
        if node != last:
            # Each branching multiplies the number of paths, which would have thousands of digits.
            counts[node] = min(sum(counts[on] for on in onwards[node]), MOST_COUNTED)
    return Paths(graph, first, last, nodes, counts[first], int(feeds[first]), onwards)


def placed(graph: Graph) -> Ints:
    """Return for each node the node whose source position it has: itself, another by structure, or -1.

    A node without a frame inside a fusion or loop body takes the caller's place. Any other takes that of its first
    user, or of its first operand. Parameters, constants, tuples and layout plumbing get a place in this way.
    """
    at = np.where(graph.frame >= 0, np.arange(len(graph.frame), dtype=np.int32), np.int32(-1))
    return spread_places(graph, at, np.zeros(len(at), bool))


def innermost_own(frames: Sequence[Frame]) -> Ints:
    """Return for each frame the index of the first frame in user code from it outwards; its own index without one."""
    own = np.full(len(frames), -1, np.int32)
    for i in range(len(frames)):
        at, steps = i, 0
        # The count of steps ends the walk in a cycle of damaged input.
        while is_library_file(frames[at].file) and 0 <= frames[at].parent < len(frames) and steps < len(frames):
            at, steps = frames[at].parent, steps + 1
        own[i] = i if is_library_file(frames[at].file) else at
    return own


def spread_places(graph: Graph, at: Ints, apart: NDArray[np.bool_], *, readers_first: bool = False) -> Ints:
    """Return for each node the node whose source position it has, by structure, or -1.

    Args:
        at: Node whose position each node has, -1 for nodes still without a position, shape `[n]`.
        apart: True for nodes that get no position and pass none on, shape `[n]`.
        readers_first: If True, a node inside a fusion or loop body takes its reader's position before its caller's.
    """
    at = np.where(apart, np.int32(_APART), at)
    caller = graph.caller[graph.group]
    reader = np.repeat(np.arange(len(at), dtype=np.int32), np.diff(graph.operand_start))
    first_user = np.full(len(at), -1, np.int32)
    first_user[graph.operand[::-1]] = reader[::-1]  # backwards, so that the first user is written last
    has_operands = np.diff(graph.operand_start) > 0
    first_operand = np.full(len(at), -1, np.int32)
    first_operand[has_operands] = graph.operand[graph.operand_start[:-1][has_operands]]
    around = (first_user, caller) if readers_first else (caller, first_user)
    # The caller again, for nodes inside a caller that got its place only then.
    for source in (*around, first_operand, caller):
        for _ in range(_ROUNDS):
            open_ = np.flatnonzero((at == -1) & (source >= 0))
            places = at[source[open_]]
            if not (places >= 0).any():
                break
            at[open_] = np.maximum(places, -1)
    return np.maximum(at, -1)


# Operations with a side effect.
_EFFECT = re.compile(
    r"rng_uniform|\.rng$|callback|print|effect|token|feed|send|recv|swap|addupdate|(?<!dynamic_)set$|check|assert|custom"
)


def is_dead(graph: Graph) -> NDArray[np.bool_]:
    """Return a mask of the nodes of a jaxpr or StableHLO graph that no result or effect depends on, shape `[n]`."""
    returned = _returned_by_group(graph)
    is_live = np.zeros(len(graph.names), bool)
    called: dict[int, list[int]] = {}
    for i, group in enumerate(graph.groups):
        called.setdefault(max(group.caller, -1), []).append(i)
    has_effect = np.asarray([_EFFECT.search(op) is not None for op in graph.ops], bool)
    todo = [node for entry in called.get(-1, ()) for node in returned.get(entry, ())]
    todo += np.flatnonzero(has_effect[graph.op]).tolist()
    start, operand = graph.operand_start.tolist(), graph.operand.tolist()
    groups: list[int] = graph.group.tolist()
    caller_of_group: list[int] = graph.caller.tolist()
    # Ends: a node's operands, computations and caller are added only when it is first reached.
    while todo:
        node = todo.pop()
        if is_live[node]:
            continue
        is_live[node] = True
        todo += operand[start[node] : start[node + 1]]
        for group in called.get(node, ()):
            # A loop's body may only return what it is given, so all its results count.
            todo += returned.get(group, ())
        caller = caller_of_group[groups[node]]
        if caller >= 0:
            todo.append(caller)
    return ~is_live


def _returned_by_group(graph: Graph) -> dict[int, list[int]]:
    """Return by group (function, region or inner jaxpr) the rows of the nodes that it returns."""
    returns = [i for i, op in enumerate(graph.ops) if op.rpartition(".")[2] == "return"]
    by_group: dict[int, list[int]] = {}
    for node in {*np.flatnonzero(np.isin(graph.op, returns)).tolist(), *graph.returned.tolist()}:
        by_group.setdefault(int(graph.group[node]), []).append(node)
    return by_group


def varies(graph: Graph) -> list[bool]:
    """Return for each node True if its value depends on an argument of the program."""
    start: list[int] = graph.operand_start.tolist()
    operand: list[int] = graph.operand.tolist()
    groups: list[int] = graph.group.tolist()
    is_parameter: list[bool] = is_op(graph, ("parameter",)).tolist()
    is_varying = [False] * len(graph.names)
    members_of: list[list[int]] = [nodes.tolist() for nodes in graph.members]
    captured = _captured(graph)
    for group in graph.callers_first:
        inputs = [node for node in members_of[group] if is_parameter[node]]
        for node, value in zip(inputs, _given(graph, group, inputs, is_varying), strict=True):
            is_varying[node] = value
        caller = graph.groups[group].caller
        # In StableHLO, branches read outer values directly; in HLO, they get all in one tuple.
        around = is_varying[caller] if caller in captured else None
        for node in members_of[group]:
            value = is_varying[node]
            for i in (*operand[start[node] : start[node + 1]], *captured.get(node, ())):
                value = value or (is_varying[i] if around is None or groups[i] == group else around)
            is_varying[node] = value
    return is_varying


def _given(graph: Graph, group: int, inputs: Sequence[int], is_varying: Sequence[bool]) -> list[bool]:
    """Return for each of a group's parameters True if its value depends on an argument of the program."""
    caller = graph.groups[group].caller
    if graph.groups[group].kind == "entry":
        return [True] * len(inputs)
    begin, end = graph.operand_start[caller : caller + 2].tolist() if caller >= 0 else (0, 0)
    operands: list[int] = graph.operand[begin:end].tolist()
    given = [is_varying[i] for i in operands]
    together = any(given)
    # If a call drops or adds operands, parameters can't be matched. A loop's iteration takes the results of the last.
    if len(given) != len(inputs) or graph.ops[int(graph.op[caller])].rpartition(".")[2] == "while":
        return [together] * len(inputs)
    numbers = graph.parameter_number[inputs]
    at: list[int] = np.where(numbers >= 0, np.minimum(numbers, len(given)), np.arange(len(numbers))).tolist()
    padded = [*given, together]
    return [padded[i] for i in at]


def _captured(graph: Graph) -> dict[int, set[int]]:
    """Return by operation the outer nodes that its regions read; operations without such reads are missing."""
    reader = np.repeat(graph.group, np.diff(graph.operand_start))
    captured: dict[int, set[int]] = {}
    for at in np.flatnonzero(graph.group[graph.operand] != reader).tolist():
        node, group = int(graph.operand[at]), int(reader[at])
        home = int(graph.group[node])
        while group != home and group >= 0 and graph.groups[group].caller >= 0:
            caller = graph.groups[group].caller
            captured.setdefault(caller, set()).add(node)
            group = int(graph.group[caller])
    return captured
