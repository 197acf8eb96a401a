"""What of a sharded program nobody can have meant: arrays gathered whole, work that all devices repeat, idle axes.

An array is *the same* along an axis where the instructions prove it (`spread`). What the author asked for, by a
constraint, a `shard_map` or `out_shardings`, is never waste; neither is a gather whose result every device needs for
another part of the result, as that of a weight in FSDP, or of the sequence before a product that splits its output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from explorer.analysis.sharding.program import CUTS, LARGE, Gather, ShardedProgram, Subject, Waste
from explorer.model.cached import cached_property
from explorer.model.graph import ComputationCall, Node
from explorer.model.mesh import Axes
from explorer.model.shardings import CONSTANT


def find_waste(program: ShardedProgram) -> Sequence[Waste]:
    """All of it, the axes that nothing uses first.

    What is said of one gather is said once: of the products that repeat, else of the output, else of itself.
    """
    if program.mesh.count == 1:
        return ()
    subject = Subject(program)
    gathers, results = GatheredSearch(subject), OutputSearch(subject)
    idle = list(results.idle())
    without = sum(1 << program.mesh.names.index(name) for waste in idle for name in waste.axes)
    repeated, contracted = list(gathers.repeated(without)), list(gathers.contracted())
    outputs = _unexplained(results.outputs(without), repeated)
    gathered = _unexplained(gathers.gathered(), [*repeated, *contracted, *outputs])
    arguments = ArgumentSearch(subject).arguments(without)
    return [*idle, *repeated, *contracted, *gathered, *outputs, *results.made_whole(), *arguments]


def _unexplained(wastes: Iterable[Waste], explained: Iterable[Waste]) -> list[Waste]:
    gathers = {waste.of.node.index for waste in explained if waste.of is not None}
    return [waste for waste in wastes if waste.of is None or waste.of.node.index not in gathers]


_OUTER = ("fusion", "call", "while", "conditional", "tuple", "parameter", "get-tuple-element")
_LEAST_SHARE = 0.01  # of the program's products, that repeated ones must have


@dataclass(frozen=True, eq=False)
class GatheredSearch:
    """What is gathered, and what devices then repeat."""

    subject: Subject

    def repeated(self, without: int) -> Iterator[Waste]:
        """Products that each device along an axis computes alike, of what was split along it before a gather."""
        by_gather: dict[tuple[int, int], tuple[Gather, list[Node]]] = {}
        for node in self.subject.products:
            spread = self.subject.leaves[node.index][0]
            for axis in range(len(self.subject.mesh.sizes)):
                along = 1 << axis & spread.gathered & ~without
                if not along or self.subject.flops[node.index] < _LEAST_SHARE * self.subject.total:
                    continue
                gather = self.subject.program.gather_before(node, along)
                if gather is not None and not self.subject.is_requested(gather):
                    by_gather.setdefault((gather.node.index, gather.along), (gather, []))[1].append(node)
        for gather, products in by_gather.values():
            if gather.array.allocated >= LARGE:
                yield self.subject.of_gather("repeated", gather, products)

    def contracted(self) -> Iterator[Waste]:
        """An operand gathered for the dimension that is summed over, against a weight split along its other one."""
        seen: set[int] = set()
        for node in self.subject.products:
            if node.op != "dot" or len(node.operands) != 2:
                continue
            for mine, other, key, others in ((0, 1, "lhs", "rhs"), (1, 0, "rhs", "lhs")):
                pair = self.split_elsewhere(node, mine, other, key, others)
                if pair is None or pair[0].node.index in seen:
                    continue
                gather, spec = pair
                seen.add(gather.node.index)
                waste = self.subject.of_gather("contracted", gather, [node], is_proven=False)
                # On the product's line: a gather may have that of what it gathers.
                yield replace(waste, node=node, spec=spec, number=self.subject.operand(node, other).source)

    def split_elsewhere(self, node: Node, mine: int, other: int, key: str, others: str) -> tuple[Gather, str] | None:
        one, weight = self.subject.operand(node, mine), self.subject.operand(node, other)
        if one.marks is None or weight.source < 0 or weight.dims is None:
            return None
        summed, matching = _numbers(node, f"{key}_contracting_dims"), _numbers(node, f"{others}_contracting_dims")
        for at, opposite in zip(summed, matching, strict=True):
            axes = {axis for axis in one.marks[at] for free in weight.dims if axis in free} - set(weight.dims[opposite])
            if not axes:
                continue
            along = sum(1 << axis for axis in axes)
            gather = self.subject.program.gather_before(node.operands[mine], along)
            if gather is None or self.subject.is_requested(gather) or gather.array.allocated < LARGE:
                continue
            result = self.subject.program.array(node).allocated * self.subject.mesh.devices_along(along)
            if 2 * result >= gather.array.allocated:  # an all-reduce of the result sends twice its bytes
                continue
            dims = self.subject.argument_dims(weight.source)
            return gather, self.moved(dims, tuple(sorted(axes))) if dims is not None else ""
        return None

    def moved(self, dims: Sequence[Axes], axes: Axes) -> str:
        """A weight's split along another of its two last dimensions, which is the one that is summed over."""
        taken = [at for at, split in enumerate(dims) if set(split) & set(axes)]
        free = [at for at in range(len(dims)) if at not in taken]
        if len(taken) != 1 or not free:
            return ""
        target = free[-1]
        changed = [tuple(axis for axis in split if axis not in axes) for split in dims]
        changed[target] = (*changed[target], *axes)
        return self.subject.program.spec(changed)

    def gathered(self) -> Iterator[Waste]:
        """What is gathered though nothing that needs the whole splits its own result: a sort, a flip, a running sum."""
        for gather in self.subject.program.gathers:
            if gather.array.allocated < LARGE or self.subject.is_requested(gather):
                continue
            if not self.is_needed(gather) and not self.subject.is_by_name(gather.node):
                yield self.subject.of_gather("gathered", gather, ())

    def is_needed(self, gather: Gather) -> bool:
        """Whether devices use the whole for results that differ, and not only to cut their parts out again."""
        return gather.node.index in self.needed(gather.along)

    def needed(self, along: int) -> set[int]:
        """The gathers whose result is used so."""
        if along not in self._needed:
            at = range(len(self.subject.leaves))
            self._needed[along] = {number for node in at for number in self.needed_by(node, along)}
        return self._needed[along]

    @cached_property
    def _needed(self) -> dict[int, set[int]]:
        return {}

    def needed_by(self, at: int, along: int) -> Iterator[int]:
        graph, leaves = self.subject.program.graph, self.subject.leaves
        if not leaves[at] or not leaves[at][0].axes & along:
            return
        op = graph.ops[int(graph.op[at])]
        if op in _OUTER:  # what is inside of them needs it, or doesn't
            return
        makers: list[int] = graph.operand[graph.operand_start[at] : graph.operand_start[at + 1]].tolist()
        for maker in makers[1:] if op in CUTS else makers:
            for leaf in leaves[maker]:
                if leaf.gathered & along:
                    yield from leaf.gathers


def _numbers(node: Node, key: str) -> tuple[int, ...]:
    return tuple(int(part) for part in node.attributes.get(key, "").strip("{}").split(",") if part.strip())


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
