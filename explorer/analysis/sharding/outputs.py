"""Outputs and intermediates that each device has whole, and axes that nothing is split along."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from explorer.analysis.sharding.subject import CUTS, LARGE, Subject, Waste
from explorer.model.attached import cached_property
from explorer.model.graph import Node
from explorer.model.shardings import CONSTANT

# What comes in isn't made here; an all-reduce whose result is cut is a reduce-scatter that the backend doesn't have.
_NOT_MADE = ("parameter", "all-reduce", "all-reduce-done", "get-tuple-element")


@dataclass(frozen=True, eq=False)
class OutputSearch:
    """What comes back, what is made whole, and what no axis is for."""

    subject: Subject

    def outputs(self, without: int) -> Iterator[Waste]:
        """Outputs that are whole on each device though nobody asked for that."""
        for root in self.roots():
            yield from self.outputs_of(root, without)

    def outputs_of(self, root: Node, without: int) -> Iterator[Waste]:
        requested = self.requested
        for number, leaf in enumerate(self.subject.leaves[root.index]):
            array = self.subject.program.array(root, number)
            if array.allocated < LARGE or any(requested[number : number + 1]):
                continue
            maker = root.operands[number] if root.op == "tuple" else root
            gather = self.subject.program.gather_before(maker, leaf.gathered) if leaf.gathered & ~without else None
            if gather is not None and not self.subject.is_requested(gather):
                waste = self.subject.of_gather("output", gather, ())
                spec = waste.spec if len(gather.array.shape) == len(array.shape) else ""
                yield replace(waste, spec=spec, number=number, bytes=array.allocated)
            elif not leaf.axes and leaf.source == CONSTANT and self.is_any_split(root):
                names = self.subject.mesh.names_of(self.subject.mesh.full)
                yield Waste("made output", maker, names, array.allocated, self.subject.mesh.count, number=number)

    def is_any_split(self, root: Node) -> bool:
        """Whether any output or argument is."""
        nodes = (root, *self.subject.parameters)
        return any(leaf.axes for node in nodes for leaf in self.subject.leaves[node.index])

    @cached_property
    def requested(self) -> Sequence[str]:
        stage = next((stage for stage in self.subject.program.capture.stages if stage.name == "stablehlo"), None)
        text = stage.graph.attributes.get("result_shardings", "") if stage is not None else ""
        return text.split("|") if text else ()

    def roots(self) -> Iterator[Node]:
        graph = self.subject.program.graph
        for at in np.flatnonzero(graph.is_root).tolist():
            group = Node(graph, at).group
            if group is not None and group.kind == "entry":
                yield Node(graph, at)

    def made_whole(self) -> Iterator[Waste]:
        """What each device makes whole, and of which it uses its part alone."""
        kernels = self.subject.program.graph.kernel
        for node in self.subject.program.nodes_of(*CUTS):
            maker = self.subject.outermost(node.operands[0])
            if maker is None or maker.op in _NOT_MADE or kernels[maker.index] != maker.index:
                continue
            along, leaves_of = self.cut_along(node, maker), self.subject.leaves[maker.index]
            if along and self.subject.program.array(maker).allocated >= LARGE:
                yield Waste(
                    "made whole",
                    maker,
                    self.subject.mesh.names_of(along),
                    self.subject.program.array(maker).allocated,
                    self.subject.mesh.devices_along(along),
                    spec=self.subject.program.spec(self.subject.leaves[node.index][0].dims),
                    elements=self.subject.program.elements(self.subject.program.array(maker), leaves_of[0]),
                )

    def cut_along(self, cut: Node, maker: Node) -> int:
        """The axes along which a cut is all that uses a value that was computed whole; 0 for none."""
        leaves = self.subject.leaves[maker.index]
        if not leaves or leaves[0].source == CONSTANT or len(maker.users) != 1:
            return 0
        along = self.subject.leaves[cut.index][0].axes & ~leaves[0].axes & ~leaves[0].gathered
        return along if along and self.subject.is_part(cut, along) else 0

    def idle(self) -> Iterator[Waste]:
        """Axes along which no value differs: all devices along them do the same."""
        used = 0
        for leaves in self.subject.leaves:
            for leaf in leaves:
                used |= leaf.axes if leaf.values is None else 0
        idle = self.subject.mesh.full & ~used
        size = sum(
            self.subject.program.array(node).allocated
            for node in self.subject.parameters
            if self.subject.leaves[node.index]
        )
        if idle and size >= LARGE:
            yield Waste(
                "idle",
                None,
                self.subject.mesh.names_of(idle),
                size,
                self.subject.mesh.devices_along(idle),
                self.subject.total,
            )
