"""A partitioned program: its gathers and products, the spreads of values, and the shardings its author requested."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from explorer.analysis.flops import own_flops
from explorer.analysis.graphs import entry_parameters, graph_of, is_op
from explorer.model.capture import Capture
from explorer.model.declared import cached_property
from explorer.model.graph import Floats, Graph, Node
from explorer.model.shardings import Axes, DeviceMesh, Spread, axes_of, parse_groups
from explorer.model.types import ArrayType, parse_type

LARGE = 1_000_000  # bytes on one device; smaller arrays aren't worth a user's time
CUTS = ("dynamic-slice",)
# Operations that keep all elements of a value.
_LAYOUT = ("bitcast", "copy", "reshape", "transpose", "convert")
_SPLIT = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r'"([^"]+)"')
_SDY = re.compile(r"<@[\w.]*, (\[[^\]]*\])")


@dataclass(frozen=True)
class Gather:
    """An all-gather of one array: spreads before and after, result type, and gathered axes."""

    node: Node
    given: Spread
    whole: Spread
    array: ArrayType
    along: int


@dataclass(frozen=True)
class Waste:
    """A part of a sharded program that is probably unintended.

    Args:
        kind: `repeated`, `contracted`, `gathered`, `output`, `made output`, `made whole`, `argument`, `unsplit`,
            `unlike`, `idle`, `asked output`, `cut again`, `sum in loop`, `there and back`.
        node: Instruction that gives the line; for an argument, its parameter.
        bytes: On each device; `devices` devices hold or do the same.
        flops: FLOPs of the repeated products in one run.
        spec: Inferred sharding that fixes it; empty if unknown.
        number: Index of the argument or output; of a `sum in loop` how often it runs.
        wire: Bytes that each device sends for it.
        of: The gather it is about, or None.
        elements: Elements of the whole array; 0 if unknown.
        results: Equations by their `id`, each with the position of the output that gets `spec`.
    """

    kind: str
    node: Node | None
    axes: tuple[str, ...]
    bytes: int = 0
    devices: int = 1
    flops: float = 0.0
    spec: str = ""
    products: tuple[Node, ...] = ()
    number: int = -1
    is_proven: bool = True
    wire: int = 0
    of: Gather | None = field(default=None, repr=False)
    elements: int = 0
    results: tuple[tuple[int, int], ...] = ()


class ShardedProgram:
    def __init__(self, capture: Capture) -> None:
        self.graph: Graph = capture.hlo.graph
        self.lowered = graph_of(capture, "stablehlo")
        self.mesh: DeviceMesh = capture.shardings.mesh
        self.leaves: Sequence[tuple[Spread, ...]] = capture.shardings.leaves

    @cached_property
    def flops(self) -> Floats:
        return np.nan_to_num(own_flops(self.graph))

    @cached_property
    def products(self) -> Sequence[Node]:
        return [node for node in self.nodes_of("dot", "convolution") if self.leaves[node.index]]

    @cached_property
    def total(self) -> float:
        return float(sum(self.flops[node.index] for node in self.products))

    @cached_property
    def parameters(self) -> Sequence[Node]:
        return entry_parameters(self.graph)

    def nodes_of(self, *ops: str) -> Iterator[Node]:
        return (Node(self.graph, at) for at in np.flatnonzero(is_op(self.graph, ops)).tolist())

    def spread(self, node: Node) -> Spread:
        return self.leaves[node.index][0]

    def operand(self, node: Node, at: int) -> Spread:
        return self.spread(node.operands[at])

    def array(self, node: Node, at: int = 0) -> ArrayType:
        return parse_type(node.type).arrays[at]

    @cached_property
    def gathers(self) -> Sequence[Gather]:
        return [gather for node in self.nodes_of("all-gather", "all-gather-start") for gather in self._gathers(node)]

    def _gathers(self, node: Node) -> Iterator[Gather]:
        leaves, arrays = self.leaves[node.index], parse_type(node.type).arrays
        given = [self.spread(operand) for operand in node.operands if self.leaves[operand.index]]
        for at, spread in enumerate(given):
            # A start lists its operands before its results.
            result = at + len(given) if len(leaves) >= 2 * len(given) else at
            if result < len(leaves) and (along := spread.axes & ~leaves[result].axes):
                yield Gather(node, spread, leaves[result], arrays[result], along)

    @cached_property
    def _gather_at(self) -> dict[int, Gather]:
        return {gather.node.index: gather for gather in self.gathers}

    def gather_before(self, node: Node, along: int) -> Gather | None:
        """Return the last all-gather that a value comes from, along any axis of the bits `along`, or None."""
        numbers = {number for leaf in self.leaves[node.index] for number in leaf.gathers}
        # The last gather is the nearest to the value.
        gathers = (self._gather_at[number] for number in sorted(numbers, reverse=True) if number in self._gather_at)
        return next((gather for gather in gathers if gather.along & along), None)

    def of_gather(self, kind: str, gather: Gather, products: Sequence[Node], *, is_proven: bool = True) -> Waste:
        devices = self.mesh.devices_along(gather.along)
        return Waste(
            kind,
            gather.node,
            self.mesh.names_of(gather.along),
            gather.array.allocated,
            devices,
            float(sum(self.flops[node.index] for node in products)),
            self.spec(gather.given.dims),
            tuple(products),
            is_proven=is_proven,
            wire=gather.array.allocated * (devices - 1) // devices,
            of=gather,
            elements=self.elements(gather.array, gather.whole),
        )

    def of_sum(self, node: int, runs: float) -> Waste:
        """Return the waste of an all-reduce that runs several times and could run once."""
        reduce = Node(self.graph, node)
        size = parse_type(reduce.type).arrays[0].allocated
        groups = parse_groups(reduce.attributes.get("replica_groups", ""))
        devices = len(groups[0]) if groups else self.mesh.count
        names = axes_of(groups, tuple(zip(self.mesh.names, self.mesh.sizes, strict=True)))
        wire = round(2 * size * (devices - 1) / devices * runs)
        return Waste("sum in loop", reduce, tuple(names), size, devices, wire=wire, number=int(runs))

    def elements(self, array: ArrayType, spread: Spread) -> int:
        """Return the number of elements of the whole array, from those of one device's part."""
        split = {axis for axes in spread.dims or () for axis in axes}
        return array.elements * self.mesh.devices_along(sum(1 << axis for axis in split))

    def spec(self, dims: Sequence[Axes] | None) -> str:
        """Return splits in JAX's notation, `P('data', None)`; empty if unknown."""
        if dims is None:
            return ""
        named = [[repr(self.mesh.names[axis]) for axis in axes] for axes in dims]
        parts = ["None" if not names else names[0] if len(names) == 1 else f"({', '.join(names)})" for names in named]
        return f"P({', '.join(parts)})"

    def argument_dims(self, number: int) -> tuple[Axes, ...] | None:
        node = self.parameters[number] if 0 <= number < len(self.parameters) else None
        return None if node is None or len(self.leaves[node.index]) != 1 else self.spread(node).dims

    def is_part(self, cut: Node, along: int) -> bool:
        before, after = self.array(cut.operands[0]).elements, self.array(cut).elements
        return after * self.mesh.devices_along(along) == before

    def _given_to(self, parameter: Node) -> list[Node]:
        number = int(self.graph.parameter_number[parameter.index])
        group = int(self.graph.group[parameter.index])
        callers = self.graph.callers[group] if group >= 0 else ()
        of_callers = [Node(self.graph, caller).operands for caller in callers]
        return [operands[number] for operands in of_callers if number < len(operands)]

    def outermost(self, node: Node) -> Node | None:
        """Return the producer of a value, through kernels and operations that change only the layout.

        None if it is a parameter of a computation with several callers.
        """
        # Bounded, as a damaged text may have cycles.
        for _ in range(64):
            if node.op in _LAYOUT and node.operands:
                node = node.operands[0]
            elif node.op == "parameter" and (makers := self._given_to(node)):
                if len(makers) > 1:
                    return None
                node = makers[0]
            else:
                return node
        return None

    @cached_property
    def _called(self) -> dict[int, list[int]]:
        """Groups that each node calls."""
        called: dict[int, list[int]] = {}
        for call in self.graph.calls:
            called.setdefault(call.node, []).append(call.group)
        return called

    def ends(self, node: Node) -> list[Node]:
        """Return the users of a value, through kernels and operations that change only the layout."""
        ends: list[Node] = []
        waiting, seen = [node], {node.index}
        while waiting and len(seen) < 1000:
            for user in self._readers(waiting.pop()):
                if user.index in seen:
                    continue
                seen.add(user.index)
                (waiting if user.op in (*_LAYOUT, "parameter") else ends).append(user)
        return ends

    def _readers(self, node: Node) -> Iterator[Node]:
        for user in node.users:
            groups = self._called.get(user.index, []) if user.op in ("fusion", "call") else []
            if not groups:
                yield user
                continue
            places = [at for at, operand in enumerate(user.operands) if operand == node]
            is_given = np.isin(self.graph.group, groups) & np.isin(self.graph.parameter_number, places)
            nodes = (Node(self.graph, at) for at in np.flatnonzero(is_given).tolist())
            yield from (inner for inner in nodes if inner.op == "parameter")

    def is_by_name(self, node: Node) -> bool:
        return "shard_map" in node.scope or node.scope.rpartition("/")[2] == "all_gather"

    def is_requested(self, gather: Gather) -> bool:
        """Return True if the author requested the gather, or an array of its size without its axes."""
        return self.is_constrained(gather) or self._is_in(gather, self._requested_results)

    def is_constrained(self, gather: Gather) -> bool:
        """Return True if the function itself requests the gather, by a constraint or a `shard_map`.

        A request by `out_shardings` alone gives False.
        """
        return self.is_by_name(gather.node) or self._is_in(gather, self._requests)

    def _is_in(self, gather: Gather, requests: Sequence[tuple[int, frozenset[str]]]) -> bool:
        elements, names = self.elements(gather.array, gather.whole), set(self.mesh.names_of(gather.along))
        return any(requested == elements and not names & axes for requested, axes in requests)

    @cached_property
    def result_shardings(self) -> Sequence[str]:
        text = self.lowered.attributes.get("result_shardings", "") if self.lowered is not None else ""
        return text.split("|") if text else ()

    @cached_property
    def _requests(self) -> Sequence[tuple[int, frozenset[str]]]:
        """Return requested shardings as (elements, axes): of constraints, `shard_map`'s inputs and outputs."""
        nodes = self.lowered.nodes if self.lowered is not None else ()
        return [request for node in nodes for request in self._requests_of(node)]

    @cached_property
    def _requested_results(self) -> Sequence[tuple[int, frozenset[str]]]:
        nodes = self.lowered.nodes if self.lowered is not None else ()
        root = next((node for node in nodes if node.op in ("return", "func.return")), None)
        arrays = parse_type(root.type).arrays if root else ()
        pairs = zip(self.result_shardings, arrays, strict=False)
        split = [(array.elements, self._axes(sharding)) for sharding, array in pairs if sharding]
        return [(elements, axes) for elements, axes in split if axes is not None]

    def _requests_of(self, node: Node) -> Iterator[tuple[int, frozenset[str]]]:
        if node.op == "sdy.sharding_constraint" or node.attributes.get("call_target_name") == "Sharding":
            text = node.attributes.get("arguments") or node.attributes.get("mhlo.sharding", "")
            if (split := self._axes(text)) is not None:
                yield parse_type(node.type).elements, split
        elif node.op == "sdy.manual_computation":
            given = [parse_type(operand.type).elements for operand in node.operands]
            given += [array.elements for array in parse_type(node.type).arrays]
            for elements, sharding in zip(given, _SDY.findall(node.attributes.get("arguments", "")), strict=False):
                yield elements, _names(sharding)

    def _axes(self, sharding: str) -> frozenset[str] | None:
        """Return the axes that a sharding names; None if it leaves the split of a dimension open."""
        written = _SDY.search(sharding)
        if written is not None:
            return None if "?" in written[1] else _names(written[1])
        split = self.mesh.split(sharding, sharding.count(",") + 1) if "devices" not in sharding else None
        return None if split is None else frozenset(self.mesh.names_of(split[0]))


def _names(sharding: str) -> frozenset[str]:
    return frozenset(name for split in _SPLIT.findall(sharding) for name in _NAME.findall(split))
