"""Arguments that are whole along an axis where parts would do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis.sharding.subject import CUTS, LARGE, Subject, Waste
from explorer.model.attached import cached_property
from explorer.model.graph import ComputationCall, Node

_FORGOTTEN_SHARE = 0.1  # of the program's products, that those of a whole weight must have


@dataclass(frozen=True, eq=False)
class ArgumentSearch:
    """What goes in."""

    subject: Subject

    def arguments(self, without: int) -> Iterator[Waste]:
        """Arguments that are whole along an axis where they are used in parts, or where all of their like are split."""
        named: set[int] = set()
        for number, along, spec in self.cut_arguments():
            named.add(number)
            yield self.of_argument("argument", number, along, spec)
        for number, along, spec, flops in self.unsplit_weights(without):
            if number not in named:
                named.add(number)
                yield self.of_argument("unsplit", number, along, spec, flops)
        for number, along, spec in self.unlike_others(without):
            if number not in named:
                yield self.of_argument("unlike", number, along, spec)

    def of_argument(self, kind: str, number: int, along: int, spec: str, flops: float = 0.0) -> Waste:
        node, devices = self.subject.parameters[number], self.subject.mesh.devices_along(along)
        size = self.subject.program.array(node).allocated
        names = self.subject.mesh.names_of(along)
        return Waste(kind, node, names, size, devices, flops, spec, number=number, is_proven=kind == "argument")

    def cut_arguments(self) -> Iterator[tuple[int, int, str]]:
        """Those of which each device uses its part alone."""
        cuts = self.cuts()
        for number, node in enumerate(self.subject.parameters):
            if not self.is_large(number) or node.index not in cuts:
                continue
            cut = cuts[node.index]
            spread = self.subject.leaves[cut[0].index][0]
            along = spread.axes & ~self.subject.leaves[node.index][0].axes
            if along and self.are_parts(cut, along) and all(end in cut for end in self.ends(node)):
                yield number, along, self.subject.program.spec(spread.dims)

    def cuts(self) -> dict[int, list[Node]]:
        """By the node of a parameter, where parts are cut out of it."""
        cuts: dict[int, list[Node]] = {}
        for node in self.subject.program.nodes_of(*CUTS):
            maker = self.subject.outermost(node.operands[0])
            if maker is not None and maker in self.subject.parameters:
                cuts.setdefault(maker.index, []).append(node)
        return cuts

    def are_parts(self, cuts: Sequence[Node], along: int) -> bool:
        """Whether each device cuts its part along some axes, everywhere."""
        spreads = (self.subject.leaves[cut.index][0] for cut in cuts)
        are_cut = all(spread.axes & along == along for spread in spreads)
        return are_cut and all(self.subject.is_part(cut, along) for cut in cuts)

    def is_large(self, number: int) -> bool:
        parameters = self.subject.parameters
        return number < len(parameters) and self.subject.program.array(parameters[number]).allocated >= LARGE

    def ends(self, node: Node) -> list[Node]:
        """Who uses a value, inside of kernels too, as far as only layouts change before."""
        ends: list[Node] = []
        waiting, seen = [node], {node.index}
        while waiting and len(seen) < 1000:
            for user in self.readers(waiting.pop()):
                if user.index in seen:
                    continue
                seen.add(user.index)
                if user.op in ("bitcast", "copy", "reshape", "transpose", "convert", "parameter"):
                    waiting.append(user)
                else:
                    ends.append(user)
        return ends

    def readers(self, node: Node) -> Iterator[Node]:
        graph = self.subject.program.graph
        for user in node.users:
            called = [call.group for call in self._calls.get(user.index, ())] if user.op in ("fusion", "call") else []
            if not called:
                yield user
                continue
            places = {at for at, operand in enumerate(user.operands) if operand == node}
            for at in np.flatnonzero(np.isin(graph.group, called)).tolist():
                inner = Node(graph, at)
                if inner.op == "parameter" and int(graph.parameter_number[at]) in places:
                    yield inner

    @cached_property
    def _calls(self) -> dict[int, list[ComputationCall]]:
        calls: dict[int, list[ComputationCall]] = {}
        for call in self.subject.program.graph.calls:
            calls.setdefault(call.node, []).append(call)
        return calls

    def unsplit_weights(self, without: int) -> Iterator[tuple[int, int, str, float]]:
        """Weights that are whole along an axis, whose products all devices repeat while they split the others."""
        for axis in range(len(self.subject.mesh.sizes)):
            along = 1 << axis & self.subject.mesh.full & ~without
            if not along or not self.splits_weights(along):
                continue
            # Of the whole program's work: what is split is done once, what isn't by each device again.
            split = sum(self.subject.flops[node.index] for node in self.products_along(along))
            whole, devices = self.subject.total - split, self.subject.mesh.devices_along(along)
            if split * devices < whole:
                continue
            yield from self.whole_weights(along)

    def whole_weights(self, along: int) -> Iterator[tuple[int, int, str, float]]:
        least = _FORGOTTEN_SHARE * self.subject.total
        for node in self.subject.products:
            spread, flops = self.subject.leaves[node.index][0], float(self.subject.flops[node.index])
            if (spread.axes | spread.gathered) & along or flops < least:
                continue
            weights = (self.subject.operand(node, at) for at in range(min(2, len(node.operands))))
            for weight in weights:
                if weight.source >= 0 and not weight.axes & along and self.is_large(weight.source):
                    yield weight.source, along, "", flops

    def products_along(self, along: int) -> Iterator[Node]:
        return (node for node in self.subject.products if self.subject.leaves[node.index][0].axes & along)

    def splits_weights(self, along: int) -> bool:
        """Whether other products have weights split along an axis: tensor parallelism."""
        operands = (
            self.subject.operand(node, at) for node in self.subject.products for at in range(min(2, len(node.operands)))
        )
        return any(spread.source >= 0 and spread.axes & along for spread in operands)

    def unlike_others(self, without: int) -> Iterator[tuple[int, int, str]]:
        """Arguments that are whole along an axis while two or more of their own tree and shape are split along it."""
        alike: dict[tuple[str, int], list[int]] = {}
        for number, node in enumerate(self.subject.parameters):
            if self.subject.leaves[node.index] and self.subject.argument_dims(number) is not None:
                spread = self.subject.leaves[node.index][0]
                elements = self.subject.program.elements(self.subject.program.array(node), spread)
                alike.setdefault((_root(node.scope), elements), []).append(number)
        for (root, _), numbers in alike.items():
            if not root or len(numbers) < 3:
                continue
            yield from self.unlike(numbers, without)

    def unlike(self, numbers: Sequence[int], without: int) -> Iterator[tuple[int, int, str]]:
        for axis in range(len(self.subject.mesh.sizes)):
            along = 1 << axis & self.subject.mesh.full & ~without
            split = [at for at in numbers if along & self.subject.leaves[self.subject.parameters[at].index][0].axes]
            whole = [at for at in numbers if at not in split]
            if along and len(split) >= 2 and len(split) > len(whole):
                spec = self.subject.program.spec(self.subject.argument_dims(split[0]))
                yield from ((number, along, spec) for number in filter(self.is_large, whole))


def _root(path: str) -> str:
    return path.partition("[")[0].partition(".")[0]
