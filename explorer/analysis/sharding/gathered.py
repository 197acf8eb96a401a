"""Arrays that are gathered whole though nothing needs them so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from explorer.analysis.sharding.program import Gather
from explorer.analysis.sharding.subject import CUTS, LARGE, Subject, Waste
from explorer.model.attached import cached_property
from explorer.model.graph import Node
from explorer.model.shardings import Axes

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
