"""Probable mistakes in a sharded program: arrays gathered whole, work that devices repeat, and idle axes.

The instructions prove that an array is equal along an axis (see `spread`). A sharding that the author requested by a
constraint, a `shard_map` or `out_shardings` is never waste. Neither is a gather whose result each device needs for its
part of the result, such as that of a weight in FSDP, or of a sequence before a product that splits its output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from explorer.analysis.graphs import is_op
from explorer.analysis.loops import Definitions, Element, Place
from explorer.analysis.sharding.program import CUTS, LARGE, Gather, ShardedProgram, Waste
from explorer.model.capture import Capture
from explorer.model.graph import Graph, Node
from explorer.model.shardings import CONSTANT, Axes, Spread
from explorer.model.text import root_of
from explorer.model.types import parse_type


def find_waste(capture: Capture) -> Sequence[Waste]:
    """Return all waste of a capture's program, idle axes first; empty for one device.

    A gather is reported once: with the products it repeats, else with the output, else alone.
    """
    program = ShardedProgram(capture)
    if program.mesh.count == 1:
        return ()
    idle = list(_idle(program))
    without = sum(1 << program.mesh.names.index(name) for waste in idle for name in waste.axes)
    repeated, contracted = list(_repeated(program, without)), list(_contracted(program))
    outputs = _unexplained(_outputs(program, without), repeated)
    gathered = _unexplained(_gathered(program), [*repeated, *contracted, *outputs])
    arguments = _arguments(program, without)
    cut = _unexplained(_cut_again(program), [*repeated, *contracted, *gathered, *outputs])
    sums = _sums_in_loops(program)
    return [*idle, *repeated, *contracted, *gathered, *cut, *outputs, *_made_whole(program), *arguments, *sums]


def _unexplained(wastes: Iterable[Waste], explained: Iterable[Waste]) -> list[Waste]:
    gathers = {waste.of.node.index for waste in explained if waste.of is not None}
    return [waste for waste in wastes if waste.of is None or waste.of.node.index not in gathers]


def _idle(program: ShardedProgram) -> Iterator[Waste]:
    """Yield one waste for all mesh axes along which no value differs, if the arguments are large."""
    mesh, used = program.mesh, 0
    for leaves in program.leaves:
        for leaf in leaves:
            # A device's own number differs along every axis, but is no work.
            used |= leaf.axes if leaf.values is None else 0
    idle = mesh.full & ~used
    size = sum(program.array(node).allocated for node in program.parameters if program.leaves[node.index])
    if idle and size >= LARGE:
        yield Waste("idle", None, mesh.names_of(idle), size, mesh.devices_along(idle), program.total)


_OUTER = ("fusion", "call", "while", "conditional", "tuple", "parameter", "get-tuple-element")
_MIN_REPEATED_SHARE = 0.01  # of the FLOPs of the program's products


def _repeated(program: ShardedProgram, without: int) -> Iterator[Waste]:
    """Yield a waste per gather of operands from which all devices along an axis compute the same products."""
    by_gather: dict[tuple[int, int], tuple[Gather, list[Node]]] = {}
    for node in program.products:
        for axis in range(len(program.mesh.sizes)):
            along = 1 << axis & program.spread(node).gathered & ~without
            if not along or program.flops[node.index] < _MIN_REPEATED_SHARE * program.total:
                continue
            gather = program.gather_before(node, along)
            if gather is not None and not program.is_requested(gather):
                by_gather.setdefault((gather.node.index, gather.along), (gather, []))[1].append(node)
    for gather, products in by_gather.values():
        if gather.array.allocated >= LARGE:
            yield program.of_gather("repeated", gather, products)


def _contracted(program: ShardedProgram) -> Iterator[Waste]:
    """Yield a waste per operand gathered along the contracted dimension, for a weight split along its other one."""
    seen: set[int] = set()
    for node in program.products:
        if node.op != "dot" or len(node.operands) != 2:
            continue
        for mine, other, key, others in ((0, 1, "lhs", "rhs"), (1, 0, "rhs", "lhs")):
            pair = _split_elsewhere(program, node, mine, other, key, others)
            if pair is None or pair[0].node.index in seen:
                continue
            gather, spec = pair
            seen.add(gather.node.index)
            waste = program.of_gather("contracted", gather, [node], is_proven=False)
            # Use the product's line: the gather may have the line of its operand.
            yield replace(waste, node=node, spec=spec, number=program.operand(node, other).source)


def _split_elsewhere(
    program: ShardedProgram, node: Node, mine: int, other: int, key: str, others: str
) -> tuple[Gather, str] | None:
    one, weight = program.operand(node, mine), program.operand(node, other)
    if one.marks is None or weight.source < 0 or weight.dims is None:
        return None
    summed, matching = _numbers(node, f"{key}_contracting_dims"), _numbers(node, f"{others}_contracting_dims")
    for at, opposite in zip(summed, matching, strict=True):
        axes = {axis for axis in one.marks[at] for free in weight.dims if axis in free} - set(weight.dims[opposite])
        if not axes:
            continue
        along = sum(1 << axis for axis in axes)
        gather = program.gather_before(node.operands[mine], along)
        if gather is None or program.is_requested(gather) or gather.array.allocated < LARGE:
            continue
        result = program.array(node).allocated * program.mesh.devices_along(along)
        if 2 * result >= gather.array.allocated:  # an all-reduce of the result sends twice its bytes
            continue
        dims = program.argument_dims(weight.source)
        return gather, _moved(program, dims, tuple(sorted(axes))) if dims is not None else ""
    return None


def _numbers(node: Node, key: str) -> tuple[int, ...]:
    return tuple(int(part) for part in node.attributes.get(key, "").strip("{}").split(",") if part.strip())


def _moved(program: ShardedProgram, dims: Sequence[Axes], axes: Axes) -> str:
    """Return the spec of a weight with its split moved to the dimension that is contracted; empty if not possible."""
    taken = [at for at, split in enumerate(dims) if set(split) & set(axes)]
    free = [at for at in range(len(dims)) if at not in taken]
    if len(taken) != 1 or not free:
        return ""
    changed = [tuple(axis for axis in split if axis not in axes) for split in dims]
    changed[free[-1]] = (*changed[free[-1]], *axes)
    return program.spec(changed)


def _gathered(program: ShardedProgram) -> Iterator[Waste]:
    """Yield the waste of each large gather whose result only operations without a split result use.

    Such operations are sorts, flips and running sums. Gathers that the author requested are skipped.
    """
    needed: dict[int, set[int]] = {}  # gathers, by axes
    for gather in program.gathers:
        if gather.array.allocated < LARGE or program.is_requested(gather):
            continue
        along = gather.along
        if along not in needed:
            needed[along] = {number for at in range(len(program.leaves)) for number in _needed_by(program, at, along)}
        if gather.node.index not in needed[along]:
            yield program.of_gather("gathered", gather, ())


def _needed_by(program: ShardedProgram, at: int, along: int) -> Iterator[int]:
    """Yield the node of each gather whose whole result node `at` needs, as its own result is split along `along`."""
    graph, leaves = program.graph, program.leaves
    if not leaves[at] or not leaves[at][0].axes & along:
        return
    op = graph.ops[int(graph.op[at])]
    if op in _OUTER:  # the instructions inside count
        return
    makers: list[int] = graph.operand[graph.operand_start[at] : graph.operand_start[at + 1]].tolist()
    for maker in makers[1:] if op in CUTS else makers:
        for leaf in leaves[maker]:
            if leaf.gathered & along:
                yield from leaf.gathers


def _cut_again(program: ShardedProgram) -> Iterator[Waste]:
    """Yield gathers whose result is only cut: XLA's "involuntary full rematerialization" between two shardings."""
    for gather in program.gathers:
        if gather.array.allocated >= LARGE and not program.is_by_name(gather.node):
            ends = program.ends(gather.node)
            if ends and all(end.op in CUTS for end in ends):
                yield replace(program.of_gather("cut again", gather, ()), spec="")


# A parameter isn't computed here. An all-reduce followed by a cut is a reduce-scatter that the backend lacks.
_NOT_MADE = ("parameter", "all-reduce", "all-reduce-done", "get-tuple-element")


def _outputs(program: ShardedProgram, without: int) -> Iterator[Waste]:
    roots = (Node(program.graph, at) for at in np.flatnonzero(program.graph.is_root).tolist())
    for root in roots:
        if root.group is not None and root.group.kind == "entry":
            yield from _outputs_of(program, root, without)


def _outputs_of(program: ShardedProgram, root: Node, without: int) -> Iterator[Waste]:
    nodes = (root, *program.parameters)
    is_any_split = any(leaf.axes for node in nodes for leaf in program.leaves[node.index])
    for number, leaf in enumerate(program.leaves[root.index]):
        array = program.array(root, number)
        if array.allocated < LARGE:
            continue
        maker = root.operands[number] if root.op == "tuple" else root
        gather = program.gather_before(maker, leaf.gathered) if leaf.gathered & ~without else None
        if any(program.result_shardings[number : number + 1]):
            yield from _requested_output(program, gather, array.elements, number)
            continue
        if gather is not None and not program.is_requested(gather):
            waste = program.of_gather("output", gather, ())
            spec = waste.spec if len(gather.array.shape) == len(array.shape) else ""
            yield replace(waste, spec=spec, number=number, bytes=array.allocated)
        elif not leaf.axes and leaf.source == CONSTANT and is_any_split:
            names = program.mesh.names_of(program.mesh.full)
            yield Waste("made output", maker, names, array.allocated, program.mesh.count, number=number)


def _requested_output(program: ShardedProgram, gather: Gather | None, elements: int, number: int) -> Iterator[Waste]:
    """Yield an output that `out_shardings` request whole, which is gathered for that alone."""
    if gather is not None and gather.array.elements == elements and not program.is_constrained(gather):
        yield replace(program.of_gather("asked output", gather, (), is_proven=False), number=number)


def _made_whole(program: ShardedProgram) -> Iterator[Waste]:
    """Yield the waste of each large value that each device computes whole and uses only its part of."""
    mesh, kernels = program.mesh, program.graph.kernel
    for node in program.nodes_of(*CUTS):
        maker = program.outermost(node.operands[0])
        if maker is None or maker.op in _NOT_MADE or kernels[maker.index] != maker.index:
            continue
        along, array = _cut_along(program, node, maker), program.array(maker)
        if along and array.allocated >= LARGE:
            spec, elements = program.spec(program.spread(node).dims), program.elements(array, program.spread(maker))
            names, devices = mesh.names_of(along), mesh.devices_along(along)
            yield Waste("made whole", maker, names, array.allocated, devices, spec=spec, elements=elements)


def _cut_along(program: ShardedProgram, cut: Node, maker: Node) -> int:
    """Return the axes, as bits, along which a cut is the only use of a value that was computed whole; 0 for none."""
    leaves = program.leaves[maker.index]
    if not leaves or leaves[0].source == CONSTANT or len(maker.users) != 1:
        return 0
    along = program.spread(cut).axes & ~leaves[0].axes & ~leaves[0].gathered
    return along if along and program.is_part(cut, along) else 0


_MIN_WEIGHT_SHARE = 0.1  # of the FLOPs of the program's products


def _arguments(program: ShardedProgram, without: int) -> Iterator[Waste]:
    named: set[int] = set()
    for number, along, spec in _cut_arguments(program):
        named.add(number)
        yield _of_argument(program, "argument", number, along, spec)
    for number, along, flops in _unsplit_weights(program, without):
        if number not in named:
            named.add(number)
            yield _of_argument(program, "unsplit", number, along, "", flops)
    for number, along, spec in _unlike_others(program, without):
        if number not in named:
            yield _of_argument(program, "unlike", number, along, spec)


def _of_argument(program: ShardedProgram, kind: str, number: int, along: int, spec: str, flops: float = 0.0) -> Waste:
    node, devices = program.parameters[number], program.mesh.devices_along(along)
    size, names = program.array(node).allocated, program.mesh.names_of(along)
    return Waste(kind, node, names, size, devices, flops, spec, number=number, is_proven=kind == "argument")


def _is_large(program: ShardedProgram, number: int) -> bool:
    parameters = program.parameters
    return number < len(parameters) and program.array(parameters[number]).allocated >= LARGE


def _cut_arguments(program: ShardedProgram) -> Iterator[tuple[int, int, str]]:
    """Yield (number, axes as bits, spec) of large arguments that each device only cuts to its own part."""
    cuts = _cuts(program)
    for number, node in enumerate(program.parameters):
        if not _is_large(program, number) or node.index not in cuts:
            continue
        cut = cuts[node.index]
        spread = program.spread(cut[0])
        along = spread.axes & ~program.spread(node).axes
        are_parts = all(program.spread(each).axes & along == along and program.is_part(each, along) for each in cut)
        if along and are_parts and all(end in cut for end in program.ends(node)):
            yield number, along, program.spec(spread.dims)


def _cuts(program: ShardedProgram) -> dict[int, list[Node]]:
    cuts: dict[int, list[Node]] = {}
    for node in program.nodes_of(*CUTS):
        maker = program.outermost(node.operands[0])
        if maker is not None and maker in program.parameters:
            cuts.setdefault(maker.index, []).append(node)
    return cuts


def _weights(program: ShardedProgram, products: Iterable[Node]) -> Iterator[tuple[Node, Spread]]:
    pairs = ((node, program.operand(node, at)) for node in products for at in range(min(2, len(node.operands))))
    return (pair for pair in pairs if pair[1].source >= 0)


def _unsplit_weights(program: ShardedProgram, without: int) -> Iterator[tuple[int, int, float]]:
    """Yield (argument, mesh axis as a bit, FLOPs) of each product that all devices along the axis repeat.

    Its weight is large and whole along the axis, and weights of other products are split along it. Axes in `without`,
    as bits, are left out.
    """
    for axis in range(len(program.mesh.sizes)):
        along = 1 << axis & program.mesh.full & ~without
        # Only with tensor parallelism: other products have weights split along the axis.
        if not along or not any(weight.axes & along for _, weight in _weights(program, program.products)):
            continue
        # Split products are done once, others by each device again.
        split = sum(program.flops[node.index] for node in program.products if program.spread(node).axes & along)
        if split * program.mesh.devices_along(along) >= program.total - split:
            yield from _whole_weights(program, along)


def _whole_weights(program: ShardedProgram, along: int) -> Iterator[tuple[int, int, float]]:
    least = _MIN_WEIGHT_SHARE * program.total
    for node, weight in _weights(program, program.products):
        spread, flops = program.spread(node), float(program.flops[node.index])
        is_repeated = not (spread.axes | spread.gathered) & along and flops >= least
        if is_repeated and not weight.axes & along and _is_large(program, weight.source):
            yield weight.source, along, flops


def _unlike_others(program: ShardedProgram, without: int) -> Iterator[tuple[int, int, str]]:
    """Yield (number, axis, spec) of large arguments whole along an axis that splits several of their tree and size."""
    alike: dict[tuple[str, int], list[int]] = {}
    for number, node in enumerate(program.parameters):
        if program.leaves[node.index] and program.argument_dims(number) is not None:
            elements = program.elements(program.array(node), program.spread(node))
            alike.setdefault((root_of(node.scope), elements), []).append(number)
    for (root, _), numbers in alike.items():
        if root and len(numbers) > 2:
            yield from _unlike(program, numbers, without)


def _unlike(program: ShardedProgram, numbers: Sequence[int], without: int) -> Iterator[tuple[int, int, str]]:
    for axis in range(len(program.mesh.sizes)):
        along = 1 << axis & program.mesh.full & ~without
        split = [at for at in numbers if along & program.spread(program.parameters[at]).axes]
        whole = [at for at in numbers if at not in split]
        if along and len(split) >= 2 and len(split) > len(whole):
            spec = program.spec(program.argument_dims(split[0]))
            yield from ((number, along, spec) for number in whole if _is_large(program, number))


# A sum of sums is the sum of what is summed, also scaled or of another layout.
_LINEAR = frozenset(("bitcast", "convert", "copy", "multiply", "negate", "reshape", "transpose", "all-reduce-done"))
_REDUCES = ("all-reduce", "all-reduce-start")
_MAX_STEPS = 20


def _sums_in_loops(program: ShardedProgram) -> Iterator[Waste]:
    """Yield a waste for each large all-reduce whose sums a loop of several turns only adds up."""
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
    """Return the operand of a product that is no constant; None if both or neither are constant."""
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
