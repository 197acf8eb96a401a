"""Loops: how often each runs, and which counts remain unknown.

A trip count is known if the compiler or the program prints it, or if the loop proves it. `Definitions` finds the
instruction that makes a value, through instructions that only pass it on (tuples, copies, fusions, loops). A carried
value differs in each iteration, so an element of the loop's state represents it, unless the body returns it unchanged.
Nothing is guessed: a computation with several callers, or an operation not listed here, ends the search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.flops import call_target
from explorer.analysis.graphs import NO_ENTRY, has_entry, is_op
from explorer.analysis.kernel_costs import running_nodes
from explorer.model.attribution import CountLimits
from explorer.model.graph import ComputationCall, Graph, Ints
from explorer.model.types import parse_type

_MAX_STEPS = 200  # instructions that pass a value on; a damaged text may have cycles
_CALLS = ("fusion", "call")
# Operations whose value is that of their first operand.
_PASSED = ("copy", "copy-start", "copy-done", "opt-barrier", "add-dependency")
_BRANCHES = {"true_computation": 1, "false_computation": 2}

Path = tuple[int, ...]  # indices into nested tuples; empty for a whole value


class Element(NamedTuple):
    """A value that a loop carries: the `while`, and the index in its state."""

    loop: int
    path: Path


class Place(NamedTuple):
    """A node, or an element of its tuple."""

    node: int
    path: Path = ()


class Definitions:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._called: dict[int, list[ComputationCall]] = {}
        self._callers: dict[int, list[ComputationCall]] = {}
        for call in graph.calls:
            self._called.setdefault(call.node, []).append(call)
            self._callers.setdefault(call.group, []).append(call)
        roots = np.flatnonzero(graph.is_root)
        self._root: dict[int, int] = dict(zip(graph.group[roots].tolist(), roots.tolist(), strict=True))
        self._index = graph.attribute_table.integers("index")
        self._invariant: dict[Element, bool] = {}
        self._step: dict[str, Callable[[Place], Place | Element | None]] = {
            "parameter": self._argument,
            "get-tuple-element": self._from_tuple,
            "tuple": self._into_tuple,
            "while": self._after_loop,
            **dict.fromkeys(_CALLS, self._result),
            **dict.fromkeys(_PASSED, self._passed),
        }

    def op(self, node: int) -> str:
        return self.graph.ops[int(self.graph.op[node])]

    def operand(self, node: int, number: int, path: Path = ()) -> Place | None:
        start, end = self.graph.operand_start[node : node + 2].tolist()
        return Place(int(self.graph.operand[start + number]), path) if 0 <= number < end - start else None

    def of(self, place: Place | None) -> int | Element | None:
        """Return the node or the loop element that makes a value; None if neither can be proven."""
        for _ in range(_MAX_STEPS):
            if place is None:
                return None
            step = self._step.get(self.op(place.node))
            if step is None:
                return None if place.path else place.node
            at = step(place)
            if isinstance(at, Element):
                return at
            place = at
        return None

    def outside(self, place: Place | None) -> int | Element | None:
        """Return the maker of a value like `of`.

        For a loop element that no iteration changes, return the maker of its first value.
        """
        for _ in range(_MAX_STEPS):
            at = self.of(place)
            if not isinstance(at, Element) or not self.is_invariant(at):
                return at
            place = self.initial(at)
        return None

    def root(self, loop: int, role: str) -> Place | None:
        groups = [call.group for call in self._called.get(loop, ()) if call.role == role]
        # The parameter of a computation with several callers has no single value.
        root = self._root.get(groups[0]) if len(groups) == 1 and len(self._callers[groups[0]]) == 1 else None
        return None if root is None else Place(root)

    def initial(self, element: Element) -> Place | None:
        return self.operand(element.loop, 0, element.path)

    def next(self, element: Element) -> Place | None:
        root = self.root(element.loop, "body")
        return None if root is None else Place(root.node, element.path)

    def is_invariant(self, element: Element) -> bool:
        if element not in self._invariant:
            self._invariant[element] = False  # ends the recursion if a damaged text has a loop in itself
            self._invariant[element] = self.of(self.next(element)) == element
        return self._invariant[element]

    def _from_tuple(self, place: Place) -> Place | None:
        index = int(self._index[place.node])
        return self.operand(place.node, 0, (index, *place.path)) if index >= 0 else None

    def _into_tuple(self, place: Place) -> Place | None:
        return self.operand(place.node, place.path[0], place.path[1:]) if place.path else None

    def _passed(self, place: Place) -> Place | None:
        # A start returns both copies and a context; its done operation returns the copy.
        is_part = self.op(place.node) == "copy-start" and place.path
        return None if is_part else self.operand(place.node, 0, place.path)

    def _result(self, place: Place) -> Place | None:
        groups = [call.group for call in self._called.get(place.node, ())]
        root = self._root.get(groups[0]) if len(groups) == 1 else None
        return None if root is None else Place(root, place.path)

    def _after_loop(self, place: Place) -> Place | None:
        element = Element(place.node, place.path)
        return self.initial(element) if self.is_invariant(element) else None

    def _argument(self, place: Place) -> Place | Element | None:
        callers = self._callers.get(int(self.graph.group[place.node]), ())
        if len(callers) != 1:
            return None
        (call,) = callers
        op, number = self.op(call.node), int(self.graph.parameter_number[place.node])
        if op == "while":
            return Element(call.node, place.path) if number == 0 else None
        if op == "conditional":
            number = self._branch(call) if number == 0 else -1
        return self.operand(call.node, number, place.path) if op in (*_CALLS, "conditional") else None

    def _branch(self, call: ComputationCall) -> int:
        if call.role in _BRANCHES:
            return _BRANCHES[call.role]
        branches = [each.group for each in self._called[call.node]]
        start, end = self.graph.operand_start[call.node : call.node + 2].tolist()
        # If the text lacks a branch, the numbers of later branches are unknown.
        return 1 + branches.index(call.group) if len(branches) == end - start - 1 else -1


# Attributes with the count that XLA found for a while, and the length of a scan.
_COUNTS = {"while": "known_trip_count", "scan": "length"}
_MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}
_BITS = (2, 4, 8, 16, 32, 64)
_RANGES = {f"s{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) for bits in _BITS} | {
    f"u{bits}": (0, (1 << bits) - 1) for bits in _BITS
}
_MAX_ITERATIONS = 2**31 - 1  # fits in the columns of files


def trip_counts(graph: Graph, least: int = 0) -> dict[int, int]:
    """Return the number of iterations by loop's node, without loops of unknown length or of fewer than `least`."""
    counts: dict[int, int] = {}
    for op, key in _COUNTS.items():
        if op not in graph.ops:
            continue
        number = graph.attribute_table.integers(key)
        nodes = np.flatnonzero(is_op(graph, (op,)) & (number >= least)).tolist()
        counts |= {node: int(number[node]) for node in nodes}
    proven = proven_trip_counts(graph)
    return counts | {node: number for node, number in proven.items() if number >= least}


def proven_trip_counts(graph: Graph) -> Mapping[int, int]:
    """Return the iterations of each loop that counts by a constant to a constant and has no printed count.

    libtpu prints none. XLA proves counts in the same way (xla/service/while_loop_analysis.cc,
    `ComputeWhileLoopTripCount`).
    """
    if "while" not in graph.ops:
        return {}
    is_open = is_op(graph, ("while",)) & (graph.attribute_table.codes("known_trip_count") < 0)
    loops: list[int] = np.flatnonzero(is_open).tolist()
    prover = _Prover(graph) if loops else None
    counts = {loop: prover.count(loop) for loop in loops} if prover is not None else {}
    return {loop: number for loop, number in counts.items() if number is not None}


class _Value(NamedTuple):
    element: Element | None
    offset: int


class _Prover:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.definitions = Definitions(graph)

    def count(self, loop: int) -> int | None:
        test = self.definitions.outside(self.definitions.root(loop, "condition"))
        if not isinstance(test, int):
            return None
        if self.definitions.op(test) != "compare":
            return 0 if self.literal(test) == "false" else None
        left, right = (self.value(self.definitions.operand(test, number)) for number in range(2))
        direction = self.graph.attribute_table.get(test, "direction")
        if left is None or right is None:
            return None
        if left.element is None:
            # `n > i` is `i < n`.
            left, right, direction = right, left, _MIRRORED.get(direction, "")
        if left.element is None or left.element.loop != loop or right.element is not None:
            return None
        limits = self.range_of(self.definitions.operand(test, 0))
        if limits is None or not limits[0] <= right.offset <= limits[1]:
            return None
        return self.counted(left.element, left.offset, right.offset, direction, limits)

    def counted(self, counter: Element, offset: int, limit: int, direction: str, limits: tuple[int, int]) -> int | None:
        """Return the number of iterations while `counter + offset` compares true with `limit`; None if not proven."""
        step = self.value(self.definitions.next(counter))
        start = self.value(self.definitions.initial(counter))
        if step is None or step.element != counter or start is None or start.element is not None:
            return None
        number = iterations(start.offset + offset, step.offset, limit, direction)
        if number is None or number > _MAX_ITERATIONS:
            return None
        ends = start.offset, start.offset + number * step.offset
        # An overflowing counter wraps around.
        is_exact = limits[0] <= min(ends) + min(offset, 0) and max(ends) + max(offset, 0) <= limits[1]
        return number if is_exact else None

    def value(self, place: Place | None) -> _Value | None:
        """Return an integer as a constant offset, plus a loop element if it depends on one; None for other values."""
        offset = 0
        for _ in range(len(self.graph.names)):  # a damaged text may have cycles
            at = self.definitions.outside(place)
            if isinstance(at, Element):
                return _Value(at, offset)
            if at is None:
                return None
            if (number := self.number(at)) is not None:
                return _Value(None, number + offset)
            place, added = self.addends(at)
            offset += added
        return None

    def addends(self, node: int) -> tuple[Place | None, int]:
        op = self.definitions.op(node)
        if op not in ("add", "subtract"):
            return None, 0
        left, right = (self.definitions.operand(node, number) for number in range(2))
        numbers = [self.number(self.definitions.outside(side)) for side in (left, right)]
        if op == "subtract":
            return (None, 0) if numbers[1] is None else (left, -numbers[1])
        return (
            (right, numbers[0])
            if numbers[0] is not None
            else (left, numbers[1])
            if numbers[1] is not None
            else (None, 0)
        )

    def number(self, node: int | Element | None) -> int | None:
        """Return the value of a constant, also through a conversion that preserves it; None for another operation."""
        if not isinstance(node, int):
            return None
        limits = self.range_of(Place(node))
        if self.definitions.op(node) == "convert":
            node = self.definitions.outside(self.definitions.operand(node, 0))
        literal = self.literal(node) if isinstance(node, int) else ""
        if limits is None or not literal.removeprefix("-").isdecimal():
            return None
        return number if limits[0] <= (number := int(literal)) <= limits[1] else None

    def literal(self, node: int) -> str:
        is_constant = self.definitions.op(node) == "constant"
        return self.graph.attribute_table.get(node, "literal") if is_constant else ""

    def range_of(self, place: Place | None) -> tuple[int, int] | None:
        arrays = parse_type(self.graph.types[int(self.graph.type[place.node])]).arrays if place is not None else ()
        return _RANGES.get(arrays[0].dtype) if len(arrays) == 1 and not arrays[0].dims else None


def iterations(first: int, step: int, limit: int, direction: str) -> int | None:
    """Return the iterations of a loop that runs while `first + k · step` compares true with `limit`, for k = 0, 1, ….

    None for endless or overflowing loops.

    Example:
        >>> iterations(0, 1, 12, "LT"), iterations(50, -3, 0, "GT"), iterations(0, 2, 7, "NE")
        (12, 17, None)
    """
    if direction in ("GT", "GE"):
        first, step, limit, direction = -first, -step, -limit, _MIRRORED[direction]
    distance = limit - first + (direction == "LE")  # up to it, exclusively
    if direction in ("LT", "LE"):
        return 0 if distance <= 0 else -(-distance // step) if step > 0 else None
    # A counter that steps over its limit, or away from it, runs until it wraps around.
    if direction == "NE":
        return 0 if not distance else distance // step if step and distance % step == 0 <= distance // step else None
    if direction == "EQ":
        return 0 if distance else 1 if step else None
    return None


def count_limits(graph: Graph, loops: Ints | None = None) -> CountLimits:
    """Return the loops, branches and kernels that make a program's FLOPs and bytes uncertain; empty without measures.

    `loops` are the program's `unknown_loops`, computed if not given.
    """
    runs, flops = graph.measures.get("runs"), graph.measures.get("flops")
    if runs is None or flops is None:
        return CountLimits()
    if not has_entry(graph):
        return CountLimits(nothing=NO_ENTRY)
    kernels = running_nodes(graph)
    unknown = kernels[np.isnan(flops[kernels])]
    return CountLimits(
        loops=_names(graph, unknown_loops(graph) if loops is None else loops),
        branches=_names(graph, np.flatnonzero(is_op(graph, ("conditional",)) & (runs != 0))),
        unknown=[call_target(graph, int(node)) or graph.names[int(node)] for node in unknown],
    )


def unknown_loops(graph: Graph) -> Ints:
    """Return the nodes of the loops counted as one iteration: neither the text nor a profile gives their length."""
    runs = graph.measures.get("runs")
    if runs is None or "while" not in graph.ops:
        return np.zeros(0, np.int32)
    loops = np.flatnonzero(is_op(graph, ("while",)) & (runs != 0))
    with_length = set(trip_counts(graph))
    # If a profile recorded how often a body ran, its nodes have a number of runs.
    measured = np.unique(graph.group[~np.isnan(runs)])
    unmeasured = np.unique(graph.group[np.isnan(runs)])
    is_counted = set(measured.tolist()) - set(unmeasured.tolist())
    counted = {call.node for call in graph.calls if call.role == "body" and call.group in is_counted}
    return np.asarray([node for node in loops.tolist() if node not in with_length | counted], np.int32)


def is_one_iteration(graph: Graph, unknown: Ints | None = None) -> NDArray[np.bool_]:
    """Return a mask of the nodes whose counts are those of one iteration of an unknown loop, shape `[n]`."""
    inside = np.zeros(len(graph.groups) + 1, bool)
    loops = set((unknown_loops(graph) if unknown is None else unknown).tolist())
    if not loops:
        return inside[graph.group]
    front = {call.group for call in graph.calls if call.node in loops}
    while front:
        inside[list(front)] = True
        front = {call.group for call in graph.calls if inside[graph.group[call.node]] and not inside[call.group]}
    return inside[graph.group]


def _names(graph: Graph, nodes: Iterable[int]) -> list[str]:
    return [graph.names[int(node)] for node in nodes]
