"""Propagation of shardings along the instructions of the optimized program, by the rules in `operations`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from explorer.analysis.collectives import mesh_of
from explorer.analysis.graphs import device_count, graph_of, slice_count
from explorer.analysis.sharding.operations import spread_of
from explorer.analysis.sharding.spread import Operation, joined, replicated, union, unknown
from explorer.errors import NotRecordedError
from explorer.model.capture import Capture
from explorer.model.graph import Graph
from explorer.model.shardings import Axes, DeviceMesh, Shardings, Spread
from explorer.model.types import ArrayType, Type, parse_type

Leaves = tuple[Spread, ...]  # one for each array of a type, in order
_MAX_ROUNDS = 8  # of a loop; each round can only add axes, and a mesh has few
_PASSED = frozenset(["optimization-barrier", "domain", "add-dependency", "opt-barrier"])
_CALLS = ("fusion", "call", "async-start")
_START, _DONE = "-start", "-done"


def shardings(capture: Capture) -> Shardings:
    """Return the sharding of each value of a capture's optimized program; see `Capture.shardings`."""
    graph = capture.hlo.graph
    if slice_count(graph) > 1:
        raise NotRecordedError("the program is that of one slice, whose transfers to others don't say what they split.")
    mesh = DeviceMesh.of(mesh_of(capture), device_count(graph))
    if mesh.count == 1:
        return Shardings(graph, mesh, [()] * len(graph))
    return Shardings(graph, mesh, propagate(graph, mesh, given_arguments(capture)))


def propagate(graph: Graph, mesh: DeviceMesh, given: Sequence[GivenArgument] = ()) -> Sequence[Leaves]:
    """Return for each node the spreads of the arrays in its type.

    `given`, the arguments of the lowered program, count if the program's parameters carry no sharding.
    """
    return _Propagation(graph, mesh, given).run()


class _Propagation:
    leaves: list[Leaves]

    def __init__(self, graph: Graph, mesh: DeviceMesh, given: Sequence[GivenArgument]) -> None:
        self.graph, self.mesh, self.given = graph, mesh, given
        self.leaves = [() for _ in range(len(graph))]
        self.members: list[list[int]] = [nodes.tolist() for nodes in graph.members]
        self.types = [parse_type(text) for text in graph.types]
        self.type: list[int] = graph.type.tolist()
        self.op: list[int] = graph.op.tolist()
        self.start: list[int] = graph.operand_start.tolist()
        self.operand: list[int] = graph.operand.tolist()
        self.number: list[int] = graph.parameter_number.tolist()
        self.root = set(np.flatnonzero(graph.is_root).tolist())
        self.called: dict[int, list[tuple[str, int]]] = {}
        for call in graph.calls:
            self.called.setdefault(call.node, []).append((call.role, call.group))
        self.evaluated: set[int] = set()

    def run(self) -> Sequence[Leaves]:
        for at, group in enumerate(self.graph.groups):
            if group.kind == "entry":
                self.evaluate(at, None)
        return self.leaves

    def evaluate(self, group: int, arguments: Sequence[Leaves] | None) -> Leaves:
        """Evaluate a computation for given arguments; return the spreads of its result."""
        # Nodes keep what holds for the arguments of every evaluation.
        is_again = group in self.evaluated
        self.evaluated.add(group)
        result: Leaves = ()
        for node in self.members[group]:
            leaves = self.node(node, arguments)
            before = self.leaves[node]
            if is_again and len(before) == len(leaves):
                self.leaves[node] = tuple(map(joined, before, leaves))
            else:
                self.leaves[node] = leaves
            if node in self.root:
                result = leaves
        return result

    def node(self, node: int, arguments: Sequence[Leaves] | None) -> Leaves:
        op = self.graph.ops[self.op[node]]
        type_ = self.types[self.type[node]]
        operands = self.operand[self.start[node] : self.start[node + 1]]
        if op == "parameter":
            return self.parameter(node, type_, arguments)
        given = [self.leaves[operand] for operand in operands]
        if op == "tuple":
            return tuple(leaf for leaves in given for leaf in leaves)
        if op == "get-tuple-element":
            index = self.graph.attribute_table.of(node).get("index", "0")
            return given[0][self.types[self.type[operands[0]]].element(int(index))] if given else ()
        if op.endswith(_DONE):
            return _finished(op, given[0], type_) if given else ()
        return self.called_or_computed(node, op, type_, operands, given)

    def called_or_computed(
        self, node: int, op: str, type_: Type, operands: Sequence[int], given: Sequence[Leaves]
    ) -> Leaves:
        called = dict(self.called.get(node, ()))
        if op in _CALLS and len(called) == 1:
            (group,) = called.values()
            return self.started(op, self.evaluate(group, given), given, type_)
        if op == "while" and "body" in called and given:
            return self.loop(called["body"], called.get("condition", -1), given[0])
        if op == "conditional" and given:
            return self.branches([group for _, group in self.called[node]], given)
        if op in _PASSED:  # a damaged text may lack the operand
            return given[0] if given else tuple(unknown(self.mesh, ()) for _ in type_.arrays)
        return self.computed(node, op, type_, operands, given) if type_.arrays else ()

    def computed(self, node: int, op: str, type_: Type, operands: Sequence[int], given: Sequence[Leaves]) -> Leaves:
        spreads = [leaf for leaves in given for leaf in leaves]
        if op == "copy-start":
            return tuple(spreads[0] for _ in type_.arrays) if spreads else ()
        try:
            return self.spread_over(node, op, type_, operands, given, spreads)
        except (IndexError, KeyError, ValueError):  # a damaged text may lack an operand or an attribute
            return tuple(unknown(self.mesh, spreads) for _ in type_.arrays)

    def spread_over(
        self,
        node: int,
        op: str,
        type_: Type,
        operands: Sequence[int],
        given: Sequence[Leaves],
        spreads: Sequence[Spread],
    ) -> Leaves:
        base = op.removesuffix(_START)
        operation = Operation(
            base,
            _result_type(op, type_),
            [self.types[self.type[operand]] for operand in operands],
            self.graph.attribute_table.of(node) if base not in _PLAIN else {},
            self.mesh,
        )
        is_external = op in ("custom-call", "rng", "infeed", "recv", "send") and not spreads
        result = unknown(self.mesh, spreads) if is_external else spread_of(operation, spreads)
        results = self.each_result(base, operation, spreads, result)
        if base == "all-gather":
            results = tuple(replace(each, gathers=each.gathers | {node}) for each in results)
        return self.started(op, results, given, type_)

    def each_result(self, op: str, operation: Operation, spreads: Sequence[Spread], result: Spread) -> Leaves:
        count = len(operation.type.arrays)
        if count > 1 and count == len(spreads) and op in ("all-reduce", "all-gather", "reduce-scatter"):
            parts = zip(operation.type.arrays, operation.operands, spreads, strict=True)
            return tuple(
                spread_of(Operation(op, Type((array,), (0,)), [type_], operation.attributes, self.mesh), [spread])
                for array, type_, spread in parts
            )
        if count > 1:
            axes = union(spreads)
            return tuple(
                Spread(axes, result.dims if len(result.dims or ()) == len(array.dims) else None)
                for array in operation.type.arrays
            )
        return (result,)

    def started(self, op: str, results: Leaves, given: Sequence[Leaves], type_: Type) -> Leaves:
        """Return the spreads of a start operation: operands, results, then scratch arrays; of others, the results."""
        if not op.endswith(_START) or len(type_.arrays) == len(results):
            return _fitted(results, type_)
        operands = tuple(leaf for leaves in given for leaf in leaves)
        rest = tuple(replicated(len(array.dims)) for array in type_.arrays[len(operands) + len(results) :])
        return _fitted((*operands, *results, *rest), type_)

    def parameter(self, node: int, type_: Type, arguments: Sequence[Leaves] | None) -> Leaves:
        number = self.number[node]
        if arguments is not None:
            return _fitted(arguments[number] if 0 <= number < len(arguments) else (), type_)
        text = self.graph.attribute_table.of(node).get("sharding", "")
        if not text:  # the XLA of JAX 0.12 prints no sharding of parameters
            return tuple(spread_of_argument(self.mesh, self.given, number, array) for array in type_.arrays)
        shardings = _shardings(text, len(type_.arrays))
        leaves: list[Spread] = []
        for sharding, array in zip(shardings, type_.arrays, strict=True):
            split = self.mesh.split(sharding, len(array.dims))
            axes, dims = (self.mesh.full, None) if split is None else split
            leaves.append(Spread(axes, dims, number))
        return tuple(leaves)

    def loop(self, body: int, condition: int, carried: Leaves) -> Leaves:
        for _ in range(_MAX_ROUNDS):
            after = self.evaluate(body, [carried])
            if len(after) != len(carried):
                break
            both = tuple(
                # Values of a loop counter differ between rounds.
                joined(one, other) if one == other else replace(joined(one, other), values=None)
                for one, other in zip(carried, after, strict=True)
            )
            if both == carried:
                break
            carried = both
        else:
            # Not settled after the last round: only that they may differ is certain.
            carried = tuple(unknown(self.mesh, ()) for _ in carried)
            self.evaluate(body, [carried])
        if condition >= 0:
            self.evaluate(condition, [carried])
        return carried

    def branches(self, groups: Sequence[int], given: Sequence[Leaves]) -> Leaves:
        results = [self.evaluate(group, [given[at + 1]]) for at, group in enumerate(groups) if at + 1 < len(given)]
        if not results or any(len(result) != len(results[0]) for result in results):
            return ()
        either = results[0]
        for result in results[1:]:
            either = tuple(map(joined, either, result))
        chosen = union(given[0])  # devices along these axes may take different branches
        return tuple(leaf.with_axes(leaf.axes | chosen, leaf.dims if not chosen else None) for leaf in either)


def _fitted(leaves: Leaves, type_: Type) -> Leaves:
    if len(leaves) == len(type_.arrays):
        return leaves
    axes = union(leaves) if leaves else -1
    # The mesh isn't known here: 16 axes are more than any has.
    return tuple(Spread(axes & 0xFFFF, None) for _ in type_.arrays)


def _finished(op: str, leaves: Leaves, type_: Type) -> Leaves:
    """Return the spreads of a done operation: the results among those of its start."""
    count = len(type_.arrays)
    if len(leaves) == count:
        return leaves
    if op == "copy-done":
        return leaves[:1]
    return _fitted(leaves[count : 2 * count] if len(leaves) >= 2 * count else leaves[:count], type_)


def _result_type(op: str, type_: Type) -> Type:
    if not op.endswith(_START) or len(type_.arrays) < 2:
        return type_
    if op == "all-reduce-start":  # returns only its results
        return type_
    return Type((type_.arrays[1],), (0,))


# Their rules read no attributes, so these needn't be looked up.
_PLAIN = frozenset(
    [
        *("add", "subtract", "multiply", "divide", "maximum", "minimum", "negate", "exponential", "select", "convert"),
        *("copy", "tanh", "power", "rsqrt", "sqrt", "log", "and", "or", "not", "bitcast", "reshape", "abs", "sign"),
    ]
)


# A program's parameters have few distinct shardings.
@lru_cache(maxsize=1 << 10)
def _shardings(text: str, count: int) -> tuple[str, ...]:
    if count == 1 and not text.startswith("{{"):
        return (text,)
    parts: list[str] = []
    depth, begin = 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if letter == "{" and depth == 2:
            begin = at
        if letter == "}" and depth == 1:
            parts.append(text[begin : at + 1])
    return tuple(parts) if len(parts) == count else ("",) * count


_DIMENSIONS = re.compile(r"\[((?:\{[^{}]*\}(?:, )?)*)\]")
_DIMENSION = re.compile(r"\{([^{}]*)\}")
_AXIS = re.compile(r'"([^"]+)"(:\(\d+\)\d+)?')


@dataclass(frozen=True)
class GivenArgument:
    """An argument of the lowered program: type of the whole array and its `sdy.sharding`, or an empty text."""

    array: ArrayType
    sharding: str


def given_arguments(capture: Capture) -> Sequence[GivenArgument]:
    """Return the arguments of a capture's lowered program in order; empty without StableHLO."""
    graph = graph_of(capture, "stablehlo")
    return [
        GivenArgument(arrays[0], node.attributes.get("sdy.sharding", ""))
        for node in (graph.nodes if graph is not None else ())
        if node.op == "parameter" and node.group is not None and node.group.kind == "entry"
        if (arrays := parse_type(node.type).arrays)
    ]


def spread_of_argument(mesh: DeviceMesh, given: Sequence[GivenArgument], number: int, part: ArrayType) -> Spread:
    """Return the spread of an argument from the whole array's sharding and the type of one device's part.

    If they don't fit, it may differ along each axis.
    """
    if 0 <= number < len(given):  # a damaged text may have any number
        whole = given[number]
        if whole.array.shape == part.shape:
            return Spread(0, ((),) * len(part.shape), number)
        dims = _dims(mesh, whole.sharding)
        if dims is not None and _sizes(mesh, part, dims) == whole.array.shape:
            axes = sum(1 << axis for split in dims for axis in split)
            return Spread(axes, dims, number)
    return Spread(mesh.full, None, number)


def _dims(mesh: DeviceMesh, sharding: str) -> tuple[Axes, ...] | None:
    """Return each dimension's axes in `#sdy.sharding<@mesh, [{"data"}, {}]>`; None for a part of an axis or no text."""
    written = _DIMENSIONS.search(sharding)
    if written is None:
        return None
    axes = [_AXIS.findall(dimension) for dimension in _DIMENSION.findall(written[1])]
    if any(part or name not in mesh.names for dimension in axes for name, part in dimension):
        return None
    return tuple(tuple(mesh.names.index(name) for name, _ in dimension) for dimension in axes)


def _sizes(mesh: DeviceMesh, part: ArrayType, dims: Sequence[Axes]) -> tuple[int, ...]:
    devices = (mesh.devices_along(sum(1 << axis for axis in split)) for split in dims)
    return tuple(size * count for size, count in zip(part.shape, devices, strict=False))
