"""A partitioned program to look at: its instructions with how each lies on the devices, and what was asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.model.attached import cached_property
from explorer.model.capture import Capture
from explorer.model.graph import Graph, Node
from explorer.model.shardings import Axes, DeviceMesh, Spread
from explorer.model.types import ArrayType, parse_type

_GATHERS = ("all-gather", "all-gather-start")
_SPLIT = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r'"([^"]+)"')
_SDY = re.compile(r"<@[\w.]*, (\[[^\]]*\])")


@dataclass(frozen=True)
class Request:
    """A sharding that the author asked for, of some value.

    Args:
        elements: How many the whole array has.
        axes: The axes that split it.
    """

    elements: int
    axes: frozenset[str]


@dataclass(frozen=True)
class Gather:
    """An all-gather of one array.

    Args:
        node: The instruction.
        given, whole: How its operand and its result lie on the devices.
        array: The type of its result.
        along: The axes along which parts were gathered.
    """

    node: Node
    given: Spread
    whole: Spread
    array: ArrayType
    along: int


@dataclass(eq=False)
class ShardedProgram:
    """The optimised program of a capture.

    Args:
        capture: Of a program for several devices.
    """

    capture: Capture

    @cached_property
    def graph(self) -> Graph:
        return self.capture.hlo.graph

    @property
    def mesh(self) -> DeviceMesh:
        return self.capture.shardings.mesh

    @property
    def leaves(self) -> Sequence[tuple[Spread, ...]]:
        """For each node how the arrays of its type lie on the devices."""
        return self.capture.shardings.leaves

    def nodes_of(self, *ops: str) -> Iterator[Node]:
        """The nodes of some opcodes, in program order."""
        codes = [code for code, op in enumerate(self.graph.ops) if op in ops]
        return (Node(self.graph, at) for at in np.flatnonzero(np.isin(self.graph.op, codes)).tolist())

    def array(self, node: Node, at: int = 0) -> ArrayType:
        return parse_type(node.type).arrays[at]

    @cached_property
    def gathers(self) -> Sequence[Gather]:
        """All that parts are gathered by, in program order."""
        return [gather for node in self.nodes_of(*_GATHERS) for gather in self._gathers(node)]

    def _gathers(self, node: Node) -> Iterator[Gather]:
        leaves, arrays = self.leaves[node.index], parse_type(node.type).arrays
        given = [self.leaves[operand.index][0] for operand in node.operands if self.leaves[operand.index]]
        for at, spread in enumerate(given):
            result = at + len(given) if len(leaves) >= 2 * len(given) else at
            if result < len(leaves) and (along := spread.axes & ~leaves[result].axes):
                yield Gather(node, spread, leaves[result], arrays[result], along)

    def elements(self, array: ArrayType, spread: Spread) -> int:
        """Of the whole array of which each device has a part, as far as it is known what is split."""
        split = {axis for axes in spread.dims or () for axis in axes}
        return array.elements * self.mesh.devices_along(sum(1 << axis for axis in split))

    def spec(self, dims: Sequence[Axes] | None) -> str:
        """The splits of an array's dimensions as JAX writes them: `P('data', None)`; empty where they aren't known."""
        if dims is None:
            return ""
        parts: list[str] = []
        for axes in dims:
            names = [self.mesh.names[axis] for axis in axes]
            parts.append(
                "None" if not names else repr(names[0]) if len(names) == 1 else f"({', '.join(map(repr, names))})"
            )
        return f"P({', '.join(parts)})"

    @cached_property
    def requests(self) -> Sequence[Request]:
        """What the author asked for: constraints, what goes into a `shard_map` and comes out, and outputs."""
        requests = list(self._constraints())
        stage = next((stage for stage in self.capture.stages if stage.name == "stablehlo"), None)
        if stage is None:
            return requests
        shardings = stage.graph.attributes.get("result_shardings", "").split("|")
        root = next((node for node in stage.graph.nodes if node.op in ("return", "func.return")), None)
        for sharding, array in zip(shardings, parse_type(root.type).arrays if root else (), strict=False):
            if sharding and (split := self._axes(sharding)) is not None:
                requests.append(Request(array.elements, split))
        return requests

    def _constraints(self) -> Iterator[Request]:
        stage = next((stage for stage in self.capture.stages if stage.name == "stablehlo"), None)
        for node in stage.graph.nodes if stage is not None else ():
            if node.op == "sdy.sharding_constraint" or node.attributes.get("call_target_name") == "Sharding":
                text = node.attributes.get("arguments") or node.attributes.get("mhlo.sharding", "")
                if (split := self._axes(text)) is not None:
                    yield Request(parse_type(node.type).elements, split)
            elif node.op == "sdy.manual_computation":
                given = [parse_type(operand.type).elements for operand in node.operands]
                given += [array.elements for array in parse_type(node.type).arrays]
                for elements, sharding in zip(given, _SDY.findall(node.attributes.get("arguments", "")), strict=False):
                    yield Request(elements, _names(sharding))

    def _axes(self, sharding: str) -> frozenset[str] | None:
        """The axes that a sharding names; None where it leaves open how a dimension is split."""
        written = _SDY.search(sharding)
        if written is not None:
            return None if "?" in written[1] else _names(written[1])
        rank = sharding.count(",") + 1
        split = self.mesh.split(sharding, rank) if "devices" not in sharding else None
        return None if split is None else frozenset(self.mesh.names_of(split[0]))

    def is_requested(self, array: ArrayType, spread: Spread, along: int) -> bool:
        """Whether the author asked for an array of this size that is whole along some axes."""
        elements, names = self.elements(array, spread), set(self.mesh.names_of(along))
        return any(request.elements == elements and not names & request.axes for request in self.requests)

    @cached_property
    def callers(self) -> dict[int, list[int]]:
        """By group, the nodes that call it."""
        callers: dict[int, list[int]] = {}
        for call in self.graph.calls:
            callers.setdefault(call.group, []).append(call.node)
        return callers

    def makers(self, node: Node) -> Iterator[int]:
        """What a value is made of: its operands, or of a computation's parameter what its callers give."""
        graph = self.graph
        if node.op != "parameter":
            yield from graph.operand[graph.operand_start[node.index] : graph.operand_start[node.index + 1]].tolist()
            return
        number = int(graph.parameter_number[node.index])
        for caller in self.callers.get(int(graph.group[node.index]), ()):
            operands = Node(graph, caller).operands
            if len(operands) == 1 and number == 0:
                yield operands[0].index
            elif number < len(operands):
                yield operands[number].index

    @cached_property
    def _gather_at(self) -> dict[int, Gather]:
        return {gather.node.index: gather for gather in self.gathers}

    def gather_before(self, node: Node, along: int) -> Gather | None:
        """The last all-gather that a value was made of, along some axes."""
        numbers = {number for leaf in self.leaves[node.index] for number in leaf.gathers}
        gathers = (self._gather_at[number] for number in sorted(numbers, reverse=True) if number in self._gather_at)
        return next((gather for gather in gathers if gather.along & along), None)


def _names(sharding: str) -> frozenset[str]:
    return frozenset(name for split in _SPLIT.findall(sharding) for name in _NAME.findall(split))
