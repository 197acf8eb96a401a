"""Which equation of the jaxpr each StableHLO operation was lowered from.

JAX lowers one equation after the other, so both are in the same order, and the path and place of an operation are its
equation's. Where an equation becomes operations of other names (`logistic`, `random_bits`, `cumsum`), they stand
between those of its neighbours.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.links.equations import is_dead
from explorer.analysis.links.features import dtype_name
from explorer.analysis.links.inlining import Inlined
from explorer.analysis.links.paths import CONTROL, parse_path
from explorer.model.graph import Graph, Ints
from explorer.model.types import parse_type

Key = tuple[object, ...]
_LOOPS = ("scan", "while")
_NOTHING = frozenset(["random_wrap", "random_unwrap", "stop_gradient", "name", "pvary", "copy_p"])  # lowered to nothing
# Lowered to one operation, and what broadcasts a number for it.
_SINGLE = frozenset(
    [
        *("add", "add_any", "sub", "mul", "div", "neg", "max", "min", "and", "or", "not", "xor", "exp", "log", "tanh"),
        *("sin", "cos", "sqrt", "rsqrt", "abs", "floor", "ceil", "is_finite", "eq", "ne", "lt", "le", "gt", "ge"),
        *("select_n", "broadcast_in_dim", "reshape", "squeeze", "transpose", "slice", "pad", "concatenate", "iota"),
        *("convert_element_type", "bitcast_convert_type", "reduce_sum", "reduce_max", "reduce_min", "reduce_and"),
        *("reduce_or", "reduce_prod", "dot_general", "rev", "expand_dims", "real", "imag", "complex", "pow", "copy"),
        *("shift_left", "shift_right_logical", "shift_right_arithmetic", "stop_gradient", "jit", "pjit"),
    ]
)
_ROUNDS = 64  # how deep calls and loops are nested


def lowered_from(jaxpr: Graph, inlined: Inlined) -> Sequence[Sequence[int]]:
    """For each operation of an inlined StableHLO graph, the rows of the equations it may be lowered from; few."""
    graph, order = inlined.graph, inlined.order
    does, does_lowered = jaxpr.is_equation, graph.is_equation
    of_equation, of_operation = equation_keys(jaxpr), operation_keys(graph)
    lives = does & ~is_dead(jaxpr)  # JAX leaves out what nothing depends on
    equations: dict[Key, list[int]] = {}
    for row in np.flatnonzero(lives).tolist():
        equations.setdefault(of_equation[row], []).append(row)
    operations: dict[Key, list[int]] = {}
    foreign = _Foreign(jaxpr, graph, lives)
    nodes: list[int] = order[does_lowered[order]].tolist()
    made = [False] * len(graph.names)  # inside of what is no equation's own operation
    for node in nodes:
        caller = foreign.caller(node)
        if caller >= 0:
            key = of_operation[caller]
            made[node] = made[caller] or (key not in equations and key[2] not in CONTROL)
        if not made[node] and of_operation[node] in equations:
            operations.setdefault(of_operation[node], []).append(node)
    position = _positions(graph, nodes)
    left: list[tuple[Sequence[int], Sequence[int]]] = []
    for key, named in operations.items():
        shared = _shared_out(jaxpr, equations[key], graph, named, position)
        if shared is None:
            left.append((equations[key], named))
        for node, rows in zip(named, shared or (), strict=False):
            foreign.found[node] = rows
    foreign.fill_named(nodes, left)
    foreign.fill(nodes)
    return foreign.found


def _positions(graph: Graph, nodes: Sequence[int]) -> list[int]:
    """Of each of some nodes, its place among those of its group: neighbours' differ by one."""
    groups: list[int] = graph.group.tolist()
    position = [0] * len(groups)
    count = [0] * (len(graph.groups) + 1)
    for node in nodes:
        # Far enough from the last of another group that these are no neighbours.
        position[node] = groups[node] * 2 * len(groups) + count[groups[node]]
        count[groups[node]] += 1
    return position


def _shared_out(
    jaxpr: Graph, rows: Sequence[int], graph: Graph, nodes: Sequence[int], position: Sequence[int]
) -> Sequence[Sequence[int]] | None:
    """Which of some equations of one name each of their operations is of, both in program order; None if unclear.

    An equation's operations stand together. It ends in one that gives its result, with what prepares it (the broadcast
    of a number) before. What another equation becomes may have its name too.
    """
    wanted = [_size(jaxpr, row) for row in rows]
    sizes = [_size(graph, node) for node in nodes]
    begins = [0, *(i for i in range(1, len(nodes)) if position[nodes[i]] != position[nodes[i - 1]] + 1)]
    runs = list(zip(begins, [*begins[1:], len(nodes)], strict=True))
    fits = [run for run in runs if sizes[run[1] - 1] in wanted]
    if [sizes[end - 1] for _, end in fits] == wanted:  # a run for each equation, what else there is is not theirs
        owner = {i: (row,) for row, run in zip(rows, fits, strict=True) for i in range(*run)}
        return [owner.get(i, ()) for i in range(len(nodes))]
    last = graph.op[nodes[-1]]
    ends = [i for i, node in enumerate(nodes) if graph.op[node] == last]
    if [sizes[i] for i in ends] == wanted:
        return [(rows[bisect_left(ends, i)],) for i in range(len(nodes))]
    return None


def _size(graph: Graph, node: int) -> tuple[int, str]:
    """The number of elements and the dtype of what a node gives."""
    array = parse_type(graph.types[int(graph.type[node])]).arrays[:1]
    return (array[0].elements, dtype_name(array[0].dtype)) if array else (1, "")


class _Foreign:
    """Operations of another name than their equation's; `found` has the equations of every node.

    Args:
        jaxpr, graph: Of the equations and of the inlined operations.
        lives: Which equations of the jaxpr are lowered at all.
    """

    def __init__(self, jaxpr: Graph, graph: Graph, lives: NDArray[np.bool_]) -> None:
        self.jaxpr, self.graph = jaxpr, graph
        self.found: list[Sequence[int]] = [()] * len(graph.names)
        is_lowered = ~np.isin(jaxpr.op, [code for code, op in enumerate(jaxpr.ops) if op in _NOTHING])
        self._rows: list[int] = np.flatnonzero(lives & is_lowered).tolist()
        self._ops = [jaxpr.ops[code] for code in jaxpr.op.tolist()]
        self._callers = [*(group.caller for group in graph.groups), -1]
        self._groups: list[int] = graph.group.tolist()
        self._callers_of_equations = [*(group.caller for group in jaxpr.groups), -1]
        self._groups_of_equations: list[int] = jaxpr.group.tolist()
        self._places = frame_places(jaxpr), frame_places(graph)

    def caller(self, node: int) -> int:
        """The operation that calls the function or has the region that a node is in; -1 for none."""
        return self._callers[self._groups[node]]

    def fill_named(self, nodes: Sequence[int], left: Sequence[tuple[Sequence[int], Sequence[int]]]) -> None:
        """Add the equations of operations of a name that too many have: those that stand where the operation stands.

        Args:
            nodes: All that do something, in program order.
            left: The equations of some name, and the operations.
        """
        bounds = self._bounds(nodes)
        added: dict[int, Sequence[int]] = {}
        for rows, named in left:
            of_size: dict[tuple[int, str], list[int]] = {}
            for row in rows:
                of_size.setdefault(_size(self.jaxpr, row), []).append(row)
            for node in named:
                low, high = bounds[node]
                size = _size(self.graph, node)
                here = [row for row in of_size.get(size, rows) if low < row < high]
                added[node] = tuple(here)
        for node, rows in added.items():
            self.found[node] = rows

    def fill(self, nodes: Sequence[int]) -> None:
        """Add the equations of the operations that have none yet; `nodes`: all that do something, in program order."""
        lowered = {row for rows in self.found for row in rows}
        rows = np.asarray([row for row in self._rows if row not in lowered], np.int64)
        bounds = self._bounds(nodes)
        for node in nodes:
            if not self.found[node]:
                low, high = bounds[node]
                between = rows[np.searchsorted(rows, low + 1) : np.searchsorted(rows, high)].tolist()
                self.found[node] = self._candidates(node, between) or self._beside(node, (low, high))

    def _bounds(self, nodes: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Of each node, the equations of the last and of the next one whose equation is known; -1 and more for none."""
        low, high = -1, len(self.jaxpr.names)
        next_of: dict[int, int] = {}
        for node in reversed(nodes):
            next_of[node] = high
            high = min(self.found[node], default=high)
        bounds: dict[int, tuple[int, int]] = {}
        for node in nodes:
            bounds[node] = low, next_of[node]
            low = max(self.found[node], default=low)
        return bounds

    def _candidates(self, node: int, between: Sequence[int]) -> Sequence[int]:
        """Of the equations without operations that stand where a node stands, those inside of its caller's and of its
        place."""
        caller = self.caller(node)
        above = self.found[caller] if caller >= 0 else ()
        here, there = self._places[0], self._places[1][node]
        inside = [row for row in between if not above or self._is_inside(row, above)]
        return tuple(row for row in inside if here[row] == there) or (tuple(inside) if len(inside) == 1 else ())

    def _beside(self, node: int, neighbours: tuple[int, int]) -> Sequence[int]:
        """The loop that a node counts; else the neighbours of its place that become more than one operation."""
        caller = self.caller(node)
        above = self.found[caller] if caller >= 0 else ()
        if above and self._ops[above[0]] == "scan":
            return above
        here, there = self._places[0], self._places[1][node]
        beside = [row for row in neighbours if 0 <= row < len(here) and (not above or self._is_inside(row, above))]
        beside = [row for row in beside if here[row] == there] or beside
        several = [row for row in beside if self._ops[row] not in _SINGLE]
        return tuple(dict.fromkeys(several or beside)) or above

    def _is_inside(self, row: int, above: Sequence[int]) -> bool:
        for _ in range(_ROUNDS):
            row = self._callers_of_equations[self._groups_of_equations[row]]
            if row < 0 or row in above:
                return row >= 0
        return False


def equation_keys(jaxpr: Graph) -> list[Key]:
    """The name and place of each equation, as lowering writes them."""
    names, loops, is_body = _contexts(jaxpr)
    parsed = [parse_path(f"/{path}") for path in jaxpr.scopes]
    places, label = frame_places(jaxpr), _call_names(jaxpr)
    keys: list[Key] = []
    groups: list[int] = jaxpr.group.tolist()
    scopes: list[int] = jaxpr.scope.tolist()
    for row, scope in enumerate(scopes):
        path, group = parsed[scope], groups[row]
        own = (*path.names, *names[group], *label.get(row, ()))
        keys.append((path.transforms, tuple(sorted(own)), path.primitive, loops[group], is_body[group], places[row]))
    return keys


def operation_keys(graph: Graph) -> list[Key]:
    """The name and place of each operation of an inlined graph."""
    parsed = [parse_path(path) for path in graph.scopes]
    places = frame_places(graph)
    return [
        (path.transforms, path.names, path.primitive, path.loops, path.is_body, place)
        for path, place in zip(map(parsed.__getitem__, graph.scope.tolist()), places, strict=True)
    ]


def frame_places(graph: Graph) -> list[tuple[str, int, int]]:
    """Where the innermost expression of each node begins; of one without a frame, its caller's.

    Only the beginning counts: XLA keeps one end for all expressions that begin together.
    """
    frame = frames_with_callers(graph)
    places = [(at.file, at.line, at.column) for at in graph.frames] + [("", 0, 0)]
    return [places[i] for i in frame.tolist()]


def frames_with_callers(graph: Graph) -> Ints:
    """The frame of each node, or of what calls it: a function that was traced before keeps no frames inside."""
    frame = graph.frame.copy()
    callers = np.asarray([group.caller for group in graph.groups] + [-1], np.int32)
    caller = callers[graph.group]
    for _ in range(_ROUNDS):
        open_ = np.flatnonzero((caller >= 0) & (frame < 0))
        if not len(open_):
            break
        above = caller[open_]
        frame[open_] = frame[above]
        caller[open_] = callers[graph.group[above]]
    return frame


def _contexts(jaxpr: Graph) -> tuple[list[tuple[str, ...]], list[int], list[bool]]:
    """Of each group: the calls and branches around it, how many loops, and whether it is a scan's body."""
    names: list[tuple[str, ...]] = []
    loops: list[int] = []
    is_body: list[bool] = []
    label = _call_names(jaxpr)
    for group in jaxpr.groups:  # callers stand before what they call
        op = jaxpr.ops[int(jaxpr.op[group.caller])] if group.caller >= 0 else ""
        above = int(jaxpr.group[group.caller]) if group.caller >= 0 else -1
        own = label.get(group.caller, ())
        if group.kind == "branch":
            own = (f"branch:{group.name.partition('[')[2].rstrip(']')}",)
        names.append((*(names[above] if above >= 0 else ()), *own))
        loops.append((loops[above] if above >= 0 else 0) + (op in _LOOPS))
        is_body.append(op == "scan" if op in _LOOPS else above >= 0 and is_body[above])
    return [*names, ()], [*loops, 0], [*is_body, False]


def _call_names(jaxpr: Graph) -> Mapping[int, tuple[str, ...]]:
    """The name of the function that each call of a jitted one has in paths."""
    calls = [code for code, op in enumerate(jaxpr.ops) if op in ("jit", "pjit")]
    names = jaxpr.attribute_table
    return {row: (f"jit:{names.get(row, 'name')}",) for row in np.flatnonzero(np.isin(jaxpr.op, calls)).tolist()}
