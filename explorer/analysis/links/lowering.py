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
_PRIMITIVE, _IS_BODY = 2, 4  # places in a key
_Sizes = Sequence[tuple[int, str]]
_LOOPS = ("scan", "while")
# Lowered to nothing of their own; what some of them hold is lowered in their place.
_NOTHING = frozenset(
    [
        *("random_wrap", "random_unwrap", "stop_gradient", "name", "pvary", "copy_p"),
        *("custom_linear_solve", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_lin"),
    ]
)
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
_WITH_REGIONS = ("stablehlo.while", "stablehlo.case", "stablehlo.if")
_KEY_WORDS = {"key<fry>": 2, "key<rbg>": 4, "key<urbg>": 4}  # what a random key is lowered to
_PREPARING = ("stablehlo.broadcast_in_dim", "stablehlo.convert", "stablehlo.reshape")
_SOLUTION = "jaxprs[2]"  # of `matvec, vecmat, solve, transpose_solve`
_ROUNDS = 64  # how deep calls and loops are nested


def lowered_from(jaxpr: Graph, inlined: Inlined) -> Sequence[Sequence[int]]:
    """For each operation of an inlined StableHLO graph, the rows of the equations it may be lowered from; few."""
    graph, order = inlined.graph, inlined.order
    does, does_lowered = jaxpr.is_equation, graph.is_equation
    of_equation, of_operation = equation_keys(jaxpr), operation_keys(graph)
    # JAX leaves out what nothing depends on, and of a linear solve all but the solution.
    lives = does & ~is_dead(jaxpr) & ~_only_describes(jaxpr)
    equations: dict[Key, list[int]] = {}
    for row in np.flatnonzero(lives).tolist():
        equations.setdefault(of_equation[row], []).append(row)
    foreign = _Foreign(jaxpr, graph, lives, of_operation)
    nodes: list[int] = order[does_lowered[order]].tolist()
    operations = foreign.named_operations(nodes, equations)
    position = _positions(graph, nodes)
    left: list[tuple[Sequence[int], Sequence[int]]] = []
    for key, named in operations.items():
        shared = _shared_out(equations[key], graph, named, foreign.sizes, position)
        if shared is None:
            left.append((equations[key], named))
        for node, rows in zip(named, shared or (), strict=False):
            foreign.found[node] = rows
    # An equation's constants bear its name, even where its operations have names of their own.
    constants = [node for node in _constants(graph) if foreign.has_no_body(equations.get(of_operation[node], ()))]
    for node in constants:
        foreign.found[node] = equations[of_operation[node]]
    is_known = does_lowered.copy()
    is_known[constants] = True
    nodes = order[is_known[order]].tolist()
    foreign.fill_named(nodes, left)
    foreign.narrow(nodes)
    foreign.fill(nodes)
    foreign.narrow(nodes)
    return foreign.found


def _only_describes(jaxpr: Graph) -> NDArray[np.bool_]:
    """Which equations only say what system a linear solve is of: how it multiplies, and how its transpose is solved."""
    inside = [False] * (len(jaxpr.groups) + 1)
    for index, group in enumerate(jaxpr.groups):  # callers stand before what they call
        if group.caller >= 0:
            is_solve = jaxpr.ops[int(jaxpr.op[group.caller])] == "custom_linear_solve"
            is_solved = group.name.partition("=")[0] == _SOLUTION
            inside[index] = inside[int(jaxpr.group[group.caller])] or (is_solve and not is_solved)
    return np.asarray(inside)[jaxpr.group]


def _constants(graph: Graph) -> Sequence[int]:
    code = graph.ops.index("stablehlo.constant") if "stablehlo.constant" in graph.ops else -1
    return np.flatnonzero(graph.op == code).tolist()


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
    rows: Sequence[int], graph: Graph, nodes: Sequence[int], sizes: tuple[_Sizes, _Sizes], position: Sequence[int]
) -> Sequence[Sequence[int]] | None:
    """Which of some equations of one name each of their operations is of, both in program order; None if unclear.

    An equation's operations stand together. It ends in one that gives its result, with what prepares it (the broadcast
    of a number) before. What another equation becomes may have its name too.
    """
    wanted, given = [sizes[0][row] for row in rows], [sizes[1][node] for node in nodes]
    begins = [0, *(i for i in range(1, len(nodes)) if position[nodes[i]] != position[nodes[i - 1]] + 1)]
    runs = list(zip(begins, [*begins[1:], len(nodes)], strict=True))
    fits = [run for run in runs if given[run[1] - 1] in wanted]
    if [given[end - 1] for _, end in fits] == wanted:  # a run for each equation, what else there is is not theirs
        owner = {i: (row,) for row, run in zip(rows, fits, strict=True) for i in range(*run)}
        return [owner.get(i, ()) for i in range(len(nodes))]
    last = graph.op[nodes[-1]]
    ends = [i for i, node in enumerate(nodes) if graph.op[node] == last]
    if [given[i] for i in ends] == wanted:
        return [(rows[bisect_left(ends, i)],) for i in range(len(nodes))]
    return None


def _sizes(graph: Graph) -> _Sizes:
    """The number of elements and the dtype of what each node gives."""
    sizes, types = list(map(_size, graph.types)), graph.type.tolist()
    return list(map(sizes.__getitem__, types))


def _size(type_: str) -> tuple[int, str]:
    array = parse_type(type_).arrays[:1]
    if not array:
        return 1, ""
    words = _KEY_WORDS.get(array[0].dtype)
    return (array[0].elements * words, "u32") if words else (array[0].elements, dtype_name(array[0].dtype))


class _Foreign:
    """Operations of another name than their equation's; `found` has the equations of every node.

    Args:
        jaxpr, graph: Of the equations and of the inlined operations.
        lives: Which equations of the jaxpr are lowered at all.
        keys: Of the operations.
    """

    def __init__(self, jaxpr: Graph, graph: Graph, lives: NDArray[np.bool_], keys: Sequence[Key]) -> None:
        self.jaxpr, self.graph = jaxpr, graph
        self.found: list[Sequence[int]] = [()] * len(graph.names)
        is_lowered = ~np.isin(jaxpr.op, [code for code, op in enumerate(jaxpr.ops) if op in _NOTHING])
        self._rows: list[int] = np.flatnonzero(lives & is_lowered).tolist()
        self._ops = [jaxpr.ops[code] for code in jaxpr.op.tolist()]
        self._callers = [*(group.caller for group in graph.groups), -1]
        self._groups: list[int] = graph.group.tolist()
        self._callers_of_equations = [*(group.caller for group in jaxpr.groups), -1]
        self._with_body, self._calls = set(self._callers_of_equations), set(self._callers)
        self._groups_of_equations: list[int] = jaxpr.group.tolist()
        self.sizes = _sizes(jaxpr), _sizes(graph)
        self._places = frame_places(jaxpr), frame_places(graph)
        self._prepares: list[bool] = np.asarray([op in _PREPARING for op in graph.ops] or [False])[graph.op].tolist()
        self._keys = keys
        # Where no path says what a scan was given, nothing says what it does itself.
        self._is_marked = any(key[_IS_BODY] for key in keys)

    def named_operations(
        self, nodes: Sequence[int], equations: Mapping[Key, Sequence[int]]
    ) -> Mapping[Key, Sequence[int]]:
        """The operations that have the name of equations, by name; `nodes`: all that do something, in program order."""
        keys = self._keys
        operations: dict[Key, list[int]] = {}
        made = [False] * len(keys)  # inside of what is no equation's own operation
        for node in nodes:
            caller = self.caller(node)
            if caller >= 0:
                key = keys[caller]
                made[node] = made[caller] or (key not in equations and key[_PRIMITIVE] not in CONTROL)
            if not made[node] and keys[node] in equations:
                operations.setdefault(keys[node], []).append(node)
        return operations

    def has_no_body(self, rows: Sequence[int]) -> bool:
        """Whether some equations are operations, not what calls or repeats others."""
        return bool(rows) and self._with_body.isdisjoint(rows)

    def caller(self, node: int) -> int:
        """The operation that calls the function or has the region that a node is in; -1 for none."""
        return self._callers[self._groups[node]]

    def fill_named(self, nodes: Sequence[int], left: Sequence[tuple[Sequence[int], Sequence[int]]]) -> None:
        """Add the equations of operations of a name that too many have: those that stand where the operation stands.

        Args:
            nodes: All that do something, in program order.
            left: The equations of some name, and the operations.
        """
        bounds, (here, there) = self._bounds(nodes), self.sizes
        added: dict[int, Sequence[int]] = {}
        for rows, named in left:
            of_size: dict[tuple[int, str], list[int]] = {}
            for row in rows:
                of_size.setdefault(here[row], []).append(row)
            is_single = self._ops[rows[0]] in _SINGLE
            for node in named:
                prepares = not is_single or self._prepares[node]
                low, high = bounds[node]
                added[node] = tuple(
                    row for row in of_size.get(there[node], rows if prepares else ()) if low < row < high
                )
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
        """Of each node, the equations between which its own stands, by what is known of those before and after it; -1
        and more for none.

        Of several equations that an operation may be of, only the first surely isn't after those of the next one.
        """
        candidates, low, high = self.found, -1, len(self.jaxpr.names)
        next_of: dict[int, int] = {}
        for node in reversed(nodes):
            next_of[node] = high
            rows = candidates[node]  # ascending
            if rows and rows[-1] < high and not self._follows_body(node):
                high = rows[-1]
        bounds: dict[int, tuple[int, int]] = {}
        for node in nodes:
            bounds[node] = low, next_of[node]
            rows = candidates[node]
            if rows and rows[0] > low:
                low = rows[0]
        return bounds

    def _follows_body(self, node: int) -> bool:
        """Whether an operation may stand after those of equations that are inside of its own, as a loop's counter."""
        begins_body = self.graph.ops[int(self.graph.op[node])] in _WITH_REGIONS or (
            node in self._calls and not any(self._ops[row] in _LOOPS for row in self.found[node])
        )
        return not begins_body and not self._with_body.isdisjoint(self.found[node])

    def narrow(self, nodes: Sequence[int]) -> None:
        """Of the equations that an operation may be of, keep those that stand where it stands."""
        bounds = self._bounds(nodes)
        for node in nodes:
            rows = self.found[node]
            if len(rows) > 1:
                low, high = bounds[node]
                self.found[node] = tuple(row for row in rows if low <= row <= high) or rows

    def _candidates(self, node: int, between: Sequence[int]) -> Sequence[int]:
        """Of the equations without operations that stand where a node stands, those inside of its caller's and of its
        place."""
        above = self._above(node)
        if above and self._ops[above[0]] == "scan" and self._is_marked and not self._keys[node][_IS_BODY]:
            return above  # it counts the iterations, or slices what is scanned
        here, there = self._places[0], self._places[1][node]
        inside = [row for row in between if self._may_be(row, node) and self._is_inside(row, above)]
        return tuple(row for row in inside if here[row] == there) or (tuple(inside) if len(inside) == 1 else ())

    def _beside(self, node: int, neighbours: tuple[int, int]) -> Sequence[int]:
        """The neighbours of a node's place that become more than one operation."""
        above = self._above(node)
        here, there = self._places[0], self._places[1][node]
        beside = [row for row in neighbours if 0 <= row < len(here) and self._is_inside(row, above)]
        beside = [row for row in beside if self._may_be(row, node)]
        return tuple(dict.fromkeys([row for row in beside if here[row] == there] or beside)) or above

    def _may_be(self, row: int, node: int) -> bool:
        """Whether an operation may be of an equation that becomes several, or has its name but not its path."""
        return self._ops[row] not in _SINGLE or self._ops[row] == self._keys[node][_PRIMITIVE]

    def _above(self, node: int) -> Sequence[int]:
        """The equations of the operation that calls the function or has the region that a node is in."""
        caller = self.caller(node)
        return self.found[caller] if caller >= 0 else ()

    def _is_inside(self, row: int, above: Sequence[int]) -> bool:
        if not above:
            return True
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
            # Of those for several platforms, the branch for this one is lowered, as the only one.
            number = group.name.partition("[")[2].rstrip("]")
            is_of_platform = bool(jaxpr.attribute_table.get(group.caller, "branches_platforms"))
            own = (f"branch:{0 if is_of_platform else number}",)
        names.append((*(names[above] if above >= 0 else ()), *own))
        loops.append((loops[above] if above >= 0 else 0) + (op in _LOOPS))
        is_body.append(op == "scan" if op in _LOOPS else above >= 0 and is_body[above])
    return [*names, ()], [*loops, 0], [*is_body, False]


def _call_names(jaxpr: Graph) -> Mapping[int, tuple[str, ...]]:
    """The name of the function that each call of a jitted one has in paths."""
    calls = [code for code, op in enumerate(jaxpr.ops) if op in ("jit", "pjit")]
    names = jaxpr.attribute_table
    return {row: (f"jit:{names.get(row, 'name')}",) for row in np.flatnonzero(np.isin(jaxpr.op, calls)).tolist()}
