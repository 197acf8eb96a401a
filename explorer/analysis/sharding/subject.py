"""One thing of a sharded program that nobody can have meant, and what the searches for such things share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from explorer.analysis.cost.flops import own_flops
from explorer.analysis.sharding.program import Gather, ShardedProgram
from explorer.model.attached import cached_property
from explorer.model.graph import Node
from explorer.model.shardings import Axes, DeviceMesh, Spread

LARGE = 1_000_000  # bytes on one device: less is not worth a person's time
PRODUCTS = ("dot", "convolution")
CUTS = ("dynamic-slice",)


@dataclass(frozen=True)
class Waste:
    """One thing.

    Args:
        kind: `repeated`, `contracted`, `gathered`, `output`, `made whole`, `argument`, `unsplit`, `idle`.
        node: The instruction that the line is taken from; of an argument, its parameter.
        axes: Of the mesh, by name.
        bytes: On each device.
        devices: How many have or do the same.
        flops: Of the products that each of them repeats, in one run.
        spec: The sharding that would cure it, an inference; empty where none is known.
        products: Those that are repeated.
        number: Of the argument or the output.
        is_proven: Whether it is waste for certain.
        wire: Bytes that each device sends for it.
        of: The gather that it is about, where it is about one.
        elements: Of the whole array; 0 where that isn't known.
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


class Subject:
    """A program with its products.

    Args:
        program: For several devices.
    """

    def __init__(self, program: ShardedProgram) -> None:
        self.program = program
        self.mesh: DeviceMesh = program.mesh
        self.leaves: Sequence[tuple[Spread, ...]] = program.leaves
        self.flops = np.nan_to_num(own_flops(program.graph))
        self.products = [node for node in program.nodes_of(*PRODUCTS) if self.leaves[node.index]]
        self.total = float(sum(self.flops[node.index] for node in self.products))

    def operand(self, node: Node, at: int) -> Spread:
        return self.leaves[node.operands[at].index][0]

    def is_by_name(self, node: Node) -> bool:
        """Whether the program asks for the collective itself."""
        return "shard_map" in node.scope or node.scope.rpartition("/")[2] == "all_gather"

    def is_requested(self, gather: Gather) -> bool:
        return self.is_by_name(gather.node) or self.program.is_requested(gather.array, gather.whole, gather.along)

    def of_gather(self, kind: str, gather: Gather, products: Sequence[Node], *, is_proven: bool = True) -> Waste:
        devices = self.mesh.devices_along(gather.along)
        return Waste(
            kind,
            gather.node,
            self.mesh.names_of(gather.along),
            gather.array.allocated,
            devices,
            float(sum(self.flops[node.index] for node in products)),
            self.program.spec(gather.given.dims),
            tuple(products),
            is_proven=is_proven,
            wire=gather.array.allocated * (devices - 1) // devices,
            of=gather,
            elements=self.program.elements(gather.array, gather.whole),
        )

    def is_part(self, cut: Node, along: int) -> bool:
        before, after = self.program.array(cut.operands[0]).elements, self.program.array(cut).elements
        return after * self.mesh.devices_along(along) == before

    def outermost(self, node: Node) -> Node | None:
        """The instruction outside of kernels that gives a value, as far as only layouts change."""
        for _ in range(64):
            if node.op in ("bitcast", "copy", "reshape", "transpose", "convert") and node.operands:
                node = node.operands[0]
            elif node.op == "parameter" and (makers := list(self.program.makers(node))):
                if len(makers) > 1:
                    return None
                node = Node(self.program.graph, makers[0])
            else:
                return node
        return None

    @cached_property
    def parameters(self) -> Sequence[Node]:
        """Of the entry, by number."""
        graph = self.program.graph
        of_entry = [node for node in self.program.nodes_of("parameter") if node.group and node.group.kind == "entry"]
        return sorted(of_entry, key=lambda node: int(graph.parameter_number[node.index]))

    def argument_dims(self, number: int) -> tuple[Axes, ...] | None:
        node = self.parameters[number] if 0 <= number < len(self.parameters) else None
        return None if node is None or len(self.leaves[node.index]) != 1 else self.leaves[node.index][0].dims
