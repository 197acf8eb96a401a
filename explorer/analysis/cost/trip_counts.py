"""How often the body of a loop runs, where the compiler or the program says so, or the loop itself proves it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from explorer.analysis.cost.definitions import Definitions, Element, Place
from explorer.model.graph import Graph
from explorer.model.types import parse_type

# What XLA found out about a while, and the length that a scan has.
_COUNTS = {"while": "known_trip_count", "scan": "length"}
_MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}
_BITS = (2, 4, 8, 16, 32, 64)
_RANGES = {f"s{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) for bits in _BITS} | {
    f"u{bits}": (0, (1 << bits) - 1) for bits in _BITS
}
_MOST = 2**31 - 1  # iterations, as columns and files have them


def trip_counts(graph: Graph, least: int = 0) -> dict[int, int]:
    """The number of iterations of each loop that is known to have `least` or more, by the loop's node."""
    counts: dict[int, int] = {}
    for op, key in _COUNTS.items():
        if op in graph.ops:
            number = graph.attribute_table.integers(key)
            nodes = np.flatnonzero((graph.op == graph.ops.index(op)) & (number >= least)).tolist()
            counts |= {node: int(number[node]) for node in nodes}
    proven = proven_trip_counts(graph)
    return counts | {node: number for node, number in proven.items() if number >= least}


def proven_trip_counts(graph: Graph) -> Mapping[int, int]:
    """The number of iterations of each loop that counts by a constant to a constant, and has no count printed.

    libtpu prints none. XLA proves it in the same way (xla/service/while_loop_analysis.cc, `ComputeWhileLoopTripCount`).
    """
    if "while" not in graph.ops:
        return {}
    is_open = (graph.op == graph.ops.index("while")) & (graph.attribute_table.codes("known_trip_count") < 0)
    loops: list[int] = np.flatnonzero(is_open).tolist()
    prover = _Prover(graph) if loops else None
    counts = {loop: prover.count(loop) for loop in loops} if prover is not None else {}
    return {loop: number for loop, number in counts.items() if number is not None}


class _Value(NamedTuple):
    """A constant, or what a loop carries and a constant."""

    element: Element | None
    offset: int


class _Prover:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.definitions = Definitions(graph)

    def count(self, loop: int) -> int | None:
        """How often a loop's body runs; None where that isn't proven."""
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
            left, right, direction = right, left, _MIRRORED.get(direction, "")
        if left.element is None or left.element.loop != loop or right.element is not None:
            return None
        limits = self.range_of(self.definitions.operand(test, 0))
        if limits is None or not limits[0] <= right.offset <= limits[1]:
            return None
        return self.counted(left.element, left.offset, right.offset, direction, limits)

    def counted(self, counter: Element, offset: int, limit: int, direction: str, limits: tuple[int, int]) -> int | None:
        """How often the body runs until `counter + offset` compares with `limit` otherwise."""
        step = self.value(self.definitions.next(counter))
        start = self.value(self.definitions.initial(counter))
        if step is None or step.element != counter or start is None or start.element is not None:
            return None
        number = iterations(start.offset + offset, step.offset, limit, direction)
        if number is None or number > _MOST:
            return None
        ends = start.offset, start.offset + number * step.offset
        # A counter that overflows on its way goes on from the other end.
        is_exact = limits[0] <= min(ends) + min(offset, 0) and max(ends) + max(offset, 0) <= limits[1]
        return number if is_exact else None

    def value(self, place: Place | None) -> _Value | None:
        """A whole number, as far as additions of constants and what passes values on are all that it is made by."""
        offset = 0
        for _ in range(len(self.graph.names)):  # a damaged text may have a sum come from itself
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
        """What a sum or a difference adds a constant to, and the constant; nothing and 0 of any other."""
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
        """What a constant is, also one that was converted to another type that has it."""
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
        """The least and the greatest value of a single whole number's type; None of any other type."""
        arrays = parse_type(self.graph.types[int(self.graph.type[place.node])]).arrays if place is not None else ()
        return _RANGES.get(arrays[0].dtype) if len(arrays) == 1 and not arrays[0].dims else None


def iterations(first: int, step: int, limit: int, direction: str) -> int | None:
    """How often `first + k · step` compares with `limit` so, from k = 0 on; None where it does forever or by overflow.

    Example:
        >>> iterations(0, 1, 12, "LT"), iterations(50, -3, 0, "GT"), iterations(0, 2, 7, "NE")
        (12, 17, None)
    """
    if direction in ("GT", "GE"):
        first, step, limit, direction = -first, -step, -limit, _MIRRORED[direction]
    distance = limit - first + (direction == "LE")  # up to it, exclusively
    if direction in ("LT", "LE"):
        return 0 if distance <= 0 else -(-distance // step) if step > 0 else None
    if direction == "NE":
        return 0 if not distance else distance // step if step and distance % step == 0 <= distance // step else None
    if direction == "EQ":
        return 0 if distance else 1 if step else None
    return None
