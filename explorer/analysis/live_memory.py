"""Every buffer of an optimized module: bytes, producer, lifetime in steps, and buffers it may reuse.

The rules are those of XLA's buffer assignment, as far as the text shows them (openxla/xla: `hlo_live_range.cc`,
`hlo_dataflow_analysis.cc`, `alias_info.cc`, `heap_simulator.cc`). A fusion writes only its outputs. A loop's body
reuses the buffers that the loop carries. Updates, sorts and elementwise operations overwrite an operand that is not
read afterwards. Pointer tables of tuples, alignment, and gaps between buffers are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from explorer.analysis.flops import ELEMENTWISE
from explorer.analysis.graphs import NO_ENTRY, entry_rows, graph_of, has_entry
from explorer.analysis.schedule import Execution, Instructions, Leaves, Schedule, schedule_of
from explorer.analysis.updates import replaced_arguments
from explorer.errors import NotRecordedError
from explorer.model.attributes import Nested, read_nested
from explorer.model.capture import Capture
from explorer.model.graph import Graph, Ints, Node
from explorer.model.live_memory import KINDS, Donation, LiveMemory

_BY_USE = ("argument", "output", "temp")


def read_memory(graph: Graph, replaced: Container[int] | None = None) -> LiveMemory:
    """Return the lifetimes of an HLO module's buffers, in steps of its schedule, else of its text's order.

    Args:
        graph: The optimized module.
        replaced: Rows of parameters that the function computes a new value for; None if unknown, so any may be.
    """
    schedule = schedule_of(graph)
    alive, values = lifetimes(schedule), schedule.values
    kinds = np.full(len(values), KINDS.index("temp"), np.int32)
    constants = {value for leaves in schedule.constants.values() for value in leaves}
    # Later kinds overwrite earlier ones: a donated argument is an argument too.
    for kind, members in (
        ("constant", constants),
        ("output", alive.outputs),
        ("aliased", alive.aliased),
        ("argument", alive.arguments),
        ("donated", alive.donated),
    ):
        kinds[list(members)] = KINDS.index(kind)
    kept = np.flatnonzero(np.asarray(values.size, object))  # tokens and renamings have no bytes

    def column(rows: Sequence[int]) -> Ints:
        return np.asarray(rows, np.int32)[kept]

    return LiveMemory(
        graph=graph,
        order=np.asarray(schedule.steps, np.int32),
        node=column(values.node),
        array=column(values.array),
        # Python integers if the sum may overflow int64: 2**40 × 2**40 elements.
        size=np.asarray(values.size, np.int64 if sum(values.size) < 1 << 62 else object)[kept],
        kind=kinds[kept],
        space=column([type_.memory_space for type_ in values.type]),
        start=column(alive.start),
        end=column(alive.end),
        donations=_possible_donations(schedule, alive, replaced),
        is_scheduled=graph.attributes.get("is_scheduled") == "true",
    )


def live_memory(capture: Capture) -> LiveMemory:
    """Return the buffers at each step of a capture's optimized program.

    Raises:
        NotRecordedError: The capture has no optimized program, or its text has no entry computation.
    """
    if graph_of(capture, "hlo") is None:
        there = ", ".join(stage.name for stage in capture.stages) or "no stage"
        raise NotRecordedError(
            f"memory use is known only for the optimized program (hlo); this capture has {there}. "
            "Hint: explorer.explore(function, *arguments) compiles it."
        )
    if not has_entry(capture.hlo.graph):
        raise NotRecordedError(f"{NO_ENTRY}.")
    live = read_memory(capture.hlo.graph, _replaced(capture))
    return replace(live, reserved=_reserved(live, capture.memory))


def _reserved(live: LiveMemory, uses: Mapping[str, int]) -> int:
    """Return the bytes of device memory that the compiler reserves, reported or summed over its uses; 0 if unknown."""
    if "reserved" in uses or not all(use in uses for use in _BY_USE):
        return uses.get("reserved", 0)
    # The reserved total includes constants; the figures by use don't.
    constants = int(live.size[(live.kind == KINDS.index("constant")) & (live.space == 0)].sum())
    return sum(uses[use] for use in _BY_USE) - uses.get("alias", 0) + constants


def _replaced(capture: Capture) -> set[int] | None:
    """Return the rows of the `hlo` parameters for which the function returns a new value; None without a jaxpr."""
    jaxpr, hlo = graph_of(capture, "jaxpr"), capture.hlo.graph
    if jaxpr is None:
        return None
    replaced = {jaxpr.scopes[int(jaxpr.scope[row])] for row in replaced_arguments(jaxpr)}
    return {row for row in entry_rows(hlo) if hlo.scopes[int(hlo.scope[row])] in replaced}


def _possible_donations(schedule: Schedule, alive: Lifetimes, replaced: Container[int] | None) -> tuple[Donation, ...]:
    """Return donations that XLA could use: each output takes the place of one argument of its type."""
    values, graph = schedule.values, schedule.code.graph
    written = alive.outputs - alive.aliased - alive.arguments
    types = [*map(str, values.type)]
    # The caller still needs a parameter of which the result is the gradient.
    is_gradient = ["transpose(" in scope for scope in graph.scopes]
    free = Counter(types[value] for value in written if not is_gradient[graph.scope[values.node[value]]])
    donations: list[Donation] = []
    # In the order of arguments, as sets have none.
    for value in sorted(alive.arguments - alive.donated):
        type_, node = types[value], values.node[value]
        if free[type_] > 0 and values.size[value] and (replaced is None or node in replaced):
            # Each result takes the memory of one argument.
            free[type_] -= 1
            donations.append(Donation(Node(graph, node), type_, values.size[value]))
    return tuple(donations)


@dataclass(frozen=True)
class Lifetimes:
    """The first and last step of each value, and values with a special role.

    Args:
        start, end: Shape `[values]`.
        arguments, donated: Values of the entry's parameters: all, and the donated ones.
        outputs, aliased: Values that the entry returns: all, and those in a donated argument's place.
    """

    start: list[int]
    end: list[int]
    arguments: set[int]
    donated: set[int]
    outputs: set[int]
    aliased: set[int]


def lifetimes(schedule: Schedule) -> Lifetimes:
    values, last = schedule.values, max(len(schedule.steps) - 1, 0)
    arguments = {value for leaves in schedule.arguments.values() for value in leaves}
    constants = {value for leaves in schedule.constants.values() for value in leaves}
    donated, outputs = _donated(schedule), set(schedule.outputs)
    start, end = list(values.start), list(values.end)
    for own in schedule.renamed:
        value = schedule.original(own)
        end[value] = max(end[value], end[own])
    kept = (arguments - donated) | constants
    for value in kept:
        start[value], end[value] = 0, last
    for value in outputs:
        end[value] = last
    written: set[int] = set()
    for reuse in _reuses(schedule):
        operand = schedule.original(reuse.operand)
        dies = end[operand] == reuse.step > start[operand]
        if dies and operand not in kept and operand not in outputs and reuse.output not in written:
            # From this step on, the output has the operand's buffer, which counts once.
            end[operand] -= 1
            written.add(reuse.output)
    return Lifetimes(start, end, arguments, donated, outputs, _aliased(schedule))


def _aliased(schedule: Schedule) -> set[int]:
    """Return the values that the entry returns in place of a donated argument."""
    places = (max(alias.output, 0) for alias in aliases(schedule.code.graph.attributes.get("input_output_alias", "")))
    return {schedule.outputs[place] for place in places if place < len(schedule.outputs)}


def _reuses(schedule: Schedule) -> Iterator[Reuse]:
    """Yield the values that may reuse an operand's buffer, in schedule order; for one output, mandatory reuse first."""
    values = schedule.values
    updates = [tuple(in_place(schedule.code, execution)) for execution in schedule.executions]
    joined = schedule.joined | {value for reuses in updates for reuse in reuses for value in reuse[:2]}
    largest = max((values.size[output] for output in schedule.outputs), default=0)
    for execution, reuses in zip(schedule.executions, updates, strict=True):
        yield from (reuse for reuse in reuses if values.size[reuse.operand] == values.size[reuse.output])
        for reuse in may_share(schedule.code, execution):
            # XLA doesn't share a buffer between types or layouts.
            old, new = values.type[reuse.operand], values.type[reuse.output]
            is_alike = old is new or old.is_stored_as(new)
            if is_alike and (values.size[reuse.output] <= largest or _is_single(schedule, execution, reuse, joined)):
                yield reuse


def _is_single(schedule: Schedule, execution: Execution, reuse: Reuse, joined: set[int]) -> bool:
    """Return True if XLA's heap lets two values share: each has its own buffer, and the operand isn't a view."""
    if schedule.original(reuse.operand) in joined or reuse.output in joined:
        return False
    code = schedule.code
    return code.op[code.operands(execution.node)[reuse.number]] not in ("get-tuple-element", "bitcast")


def _donated(schedule: Schedule) -> set[int]:
    given_away: set[int] = set()
    for number, element in donations(schedule.code.graph.attributes):
        values: Leaves = schedule.arguments.get(number, ())
        if values and element >= 0:
            values = values[schedule.code.shape(schedule.values.node[values[0]]).element(element)]
        given_away.update(values)
    return given_away


# Operations whose output may take an operand's buffer. A copy may not, except inside a fusion.
_ELEMENTWISE = ELEMENTWISE - {"rng"} | {"map", "mulhi"}
_THROUGH = _ELEMENTWISE | {"copy", "tuple"}  # inside a fusion
# Operations that write in place, and the operand of their first output.
_IN_PLACE = {"dynamic-update-slice": 0, "scatter": 0, "all-reduce-start": 0}
_MAY_UPDATE = {*_IN_PLACE, "fusion"}
_MAY_BE_IN_PLACE = {"triangular-solve": 1, "set-dimension-size": 0}


class Alias(NamedTuple):
    """An output in an operand's place: elements of their tuples, -1 for the whole."""

    output: int
    operand: int  # or the number of a parameter
    element: int


class Reuse(NamedTuple):
    """A value that may reuse the buffer of an operand that dies at the step; `number` is the operand's position."""

    operand: int
    output: int
    step: int
    number: int = 0


def aliases(value: str) -> list[Alias]:
    """Return the aliases in an instruction's `output_to_operand_aliasing` or a module's `input_output_alias`.

    Example:
        >>> aliases("{ {0}: (2, {}, may-alias), {1}: (3, {4}) }")
        [Alias(output=0, operand=2, element=-1), Alias(output=1, operand=3, element=4)]
    """
    parts = read_nested(value) if value else ()
    pairs = zip(parts[::2], parts[1::2], strict=False)
    places = [(output, *_place(operand)) for output, operand in pairs if isinstance(output, tuple)]
    return [Alias(_first(output), operand, element) for output, operand, element in places if operand >= 0]


def donations(module: Mapping[str, str]) -> list[tuple[int, int]]:
    """Return the (parameter number, tuple element) pairs that a module marks as donated; -1 for a whole parameter."""
    written, given = module.get("input_output_alias", ""), module.get("buffer_donor", "")
    donated = [(alias.operand, alias.element) for alias in aliases(written)]
    donors = [*map(_place, read_nested(given))] if given else []
    return donated + [(number, element) for number, element in donors if number >= 0]


def in_place(code: Instructions, execution: Execution) -> Iterable[Reuse]:
    """Return the operands that an instruction updates in place, each with its output.

    The output has the operand's buffer if nothing reads the operand later.
    """
    updates = code.op[execution.node] in _MAY_UPDATE or execution.node in code.has_aliasing
    return _in_place(code, execution) if updates else ()


def _in_place(code: Instructions, execution: Execution) -> Iterator[Reuse]:
    node, step, operands, values = execution
    op = code.op[node]
    if op in _IN_PLACE:
        pairs = zip(operands[_IN_PLACE[op] :], values, strict=False)
        yield from (Reuse(leaves[0], value, step) for leaves, value in pairs if len(leaves) == 1)
    if node in code.has_aliasing:
        yield from _declared(code, execution)
    if op == "fusion":
        yield from _updated_inside(code, execution)


def may_share(code: Instructions, execution: Execution) -> Iterator[Reuse]:
    """Yield the pairs of an operand and an output that may overwrite it elementwise, in the order of XLA's trials."""
    node, step, operands, values = execution
    for number, output in _shareable_operands(code, node):
        if number < len(operands) and len(operands[number]) == 1:
            for value in values if output < 0 else values[output : output + 1]:
                yield Reuse(operands[number][0], value, step, number)


def _shareable_operands(code: Instructions, node: int) -> list[tuple[int, int]]:
    """Return (operand's number, number of the output that may take its buffer) pairs; -1 for any output."""
    op, operands = code.op[node], code.operands(node)
    if op in _ELEMENTWISE:
        return [(number, -1) for number in range(len(operands))]
    if op == "sort":  # sorts in place, unless an array is an operand twice
        return [(number, number) for number, operand in enumerate(operands) if operands.count(operand) == 1]
    if op in _MAY_BE_IN_PLACE:
        number = _MAY_BE_IN_PLACE[op]
        return [(number, -1)] if number < len(operands) and operands.count(operands[number]) == 1 else []
    if op != "fusion":
        return []
    sort = _wrapped_sort(code, node)
    if sort >= 0:
        arrays = code.operands(sort)
        numbers = [code.parameter_number[array] if arrays.count(array) == 1 else -1 for array in arrays]
        return [(number, output) for output, number in enumerate(numbers) if number >= 0]
    return [(number, -1) for number in _shareable_parameters(code, node)]


def _wrapped_sort(code: Instructions, node: int) -> int:
    """Return the sort inside a fusion, as a GPU compiler wraps it with its indices, or -1."""
    if code.fusion_kind(node) != "kCustom":
        return -1
    root = code.root(code.fused(node))
    return root if root >= 0 and code.op[root] == "sort" else -1


def _shareable_parameters(code: Instructions, node: int) -> list[int]:
    inside, kind = code.fused(node), code.fusion_kind(node)
    parameters = code.parameters(inside)
    # On a TPU, most fusions are kOutput and overwrite an addend of their product like any other fusion.
    if kind in ("kLoop", "kInput") or (kind == "kOutput" and code.is_tiled(node)):
        free = _elementwise_uses(code, inside)
        # By number, the order in which XLA tries operands.
        return [number for number in sorted(parameters) if parameters[number] in free]
    root = code.root(inside)
    if kind == "kOutput" and code.op[root] == "add":  # a product added to an operand
        terms = code.operands(root)
        if any(code.op[term] in ("dot", "convolution") for term in terms):
            return [number for number, at in sorted(parameters.items()) if at in terms]
    return []


def _elementwise_uses(code: Instructions, nodes: Sequence[int]) -> set[int]:
    """Return the nodes of a fusion that are read elementwise, all the way to its outputs."""
    free = set(nodes)
    for node in reversed(nodes):
        if node not in free or not (code.op[node] in _THROUGH or code.keeps_tiles(node)):
            operands = code.operands(node)
            updates = node in free and code.op[node] == "dynamic-update-slice"
            free.difference_update(operands[1:] if updates else operands)
    return free


def _declared(code: Instructions, execution: Execution) -> Iterator[Reuse]:
    node, step, operands, values = execution
    text = code.graph.attribute_table.get(node, "output_to_operand_aliasing")
    for alias in aliases(text):
        if alias.operand < len(operands):
            output = _part(code, node, values, alias.output)
            operand = _part(code, code.operands(node)[alias.operand], operands[alias.operand], alias.element)
            yield from (Reuse(*pair, step) for pair in zip(operand[:1], output[:1], strict=False))


def _updated_inside(code: Instructions, execution: Execution) -> Iterator[Reuse]:
    """Yield the reuse of each operand of a fusion that an update inside writes to, if the update is an output."""
    node, step, operands, values = execution
    inside = code.fused(node)
    root = code.root(inside)
    if root < 0:
        return
    roots = code.operands(root) if code.op[root] == "tuple" else [root]
    for value, output in zip(values, roots, strict=False):
        update = code.behind_bitcasts(output)
        if code.op[update] not in ("dynamic-update-slice", "scatter") or not code.operands(update):
            continue
        into = code.behind_bitcasts(code.operands(update)[0])
        number = code.parameter_number[into] if code.op[into] == "parameter" else -1
        if 0 <= number < len(operands) and len(operands[number]) == 1:
            yield Reuse(operands[number][0], value, step)


def _part(code: Instructions, node: int, values: Leaves, element: int) -> Leaves:
    return values if element < 0 else values[code.shape(node).element(element)]


def _place(part: Nested) -> tuple[int, int]:
    if not isinstance(part, tuple):
        return -1, -1
    numbers: Iterable[Nested] = part[:1]
    number = next((int(text) for text in numbers if isinstance(text, str) and text.isdecimal()), -1)
    return number, _first(part[1]) if len(part) > 1 else -1


def _first(path: Nested) -> int:
    first = path[0] if path and isinstance(path, tuple) else ""
    return int(first) if isinstance(first, str) and first.isdecimal() else -1
