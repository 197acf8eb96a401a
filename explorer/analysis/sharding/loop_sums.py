"""Sums over devices in the turns of a loop that only add to what the loop carries: once after it would do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from explorer.analysis.graphs import is_op
from explorer.analysis.loops import Definitions, Element, Place
from explorer.analysis.sharding.program import LARGE, ShardedProgram, Waste
from explorer.model.graph import Graph
from explorer.model.types import parse_type

# A sum of sums is the sum of what is summed, also scaled or of another layout.
_LINEAR = frozenset(("bitcast", "convert", "copy", "multiply", "negate", "reshape", "transpose", "all-reduce-done"))
_REDUCES = ("all-reduce", "all-reduce-start")
_MAX_STEPS = 20


def sums_in_loops(program: ShardedProgram) -> Iterator[Waste]:
    """Yield the large all-reduces of each loop that runs several times, whose sum the loop only adds up."""
    graph, definitions = program.graph, Definitions(program.graph)
    for loop in np.flatnonzero(is_op(graph, ("while",))).tolist():
        arrays = parse_type(graph.types[int(graph.type[loop])]).arrays
        for at, array in enumerate(arrays):
            node = _summed(definitions, Element(loop, (at,))) if array.allocated >= LARGE else None
            runs = float(graph.measures["runs"][node]) if node is not None else 0.0
            if node is not None and runs > 1 and _adds(graph, node):
                yield program.of_sum(node, runs)


def _summed(definitions: Definitions, carried: Element) -> int | None:
    """Return the all-reduce whose result is added to an element of a loop's state in each turn, if one is."""
    adding = definitions.of(definitions.next(carried))
    if not isinstance(adding, int) or definitions.op(adding) != "add":
        return None
    sides = [definitions.operand(adding, number) for number in (0, 1)]
    if carried not in [definitions.of(side) for side in sides]:
        return None
    other = next((side for side in sides if definitions.of(side) != carried), None)
    return _reduced(definitions, other)


def _reduced(definitions: Definitions, place: Place | None) -> int | None:
    """Return the all-reduce that a value is a linear function of; None if it is none."""
    for _ in range(_MAX_STEPS):
        maker = definitions.of(place)
        op = definitions.op(maker) if isinstance(maker, int) else ""
        if not isinstance(maker, int) or op in _REDUCES:
            return maker if isinstance(maker, int) else None
        if op not in _LINEAR:
            return None
        place = _scaled(definitions, maker) if op == "multiply" else definitions.operand(maker, 0)
    return None


def _scaled(definitions: Definitions, product: int) -> Place | None:
    """Return the operand of a product that is no constant; None if both vary."""
    sides = [definitions.operand(product, number) for number in (0, 1)]
    varying = [side for side in sides if not _is_constant(definitions, side)]
    return varying[0] if len(varying) == 1 else None


def _is_constant(definitions: Definitions, place: Place | None) -> bool:
    maker = definitions.of(place)
    if isinstance(maker, int) and definitions.op(maker) == "broadcast":
        maker = definitions.of(definitions.operand(maker, 0))
    return isinstance(maker, int) and definitions.op(maker) == "constant"


def _adds(graph: Graph, node: int) -> bool:
    """Return True if an all-reduce sums."""
    groups = [call.group for call in graph.calls if call.node == node]
    roots = np.flatnonzero(graph.is_root & np.isin(graph.group, groups)).tolist()
    return [graph.ops[int(graph.op[root])] for root in roots] == ["add"]
