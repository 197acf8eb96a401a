"""An HLO module in the order in which it runs: the instruction of each step, what it defines, and what it reads.

Tuples and bitcasts are names for what is there; a computation that is called runs inside its caller's step; a loop's
body runs once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from explorer.analysis.graphs import members
from explorer.model.graph import Graph
from explorer.model.types import ArrayType, Type, parse_type

_CALLS = ("body", "condition", "to_apply", "true_computation", "false_computation", "branch_computations")
_LONGEST_CHAIN = 100  # bitcasts of bitcasts: real chains are a few long, and damaged text may go round


class Instructions:
    """The instructions of a module by index, as lists: a hundred thousand of them are looked at one by one."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        codes: list[int] = graph.op.tolist()
        self.op = [graph.ops[code] for code in codes]
        attributes = graph.attribute_table
        self.parameter_number: list[int] = graph.parameter_number.tolist()
        self.tuple_index: list[int] = attributes.integers("index").tolist()
        self.has_aliasing = set(attributes.nodes("output_to_operand_aliasing").tolist())
        self.fusion_kinds = attributes.codes("kind")
        self._type: list[int] = graph.type.tolist()
        self._shapes: list[Type | None] = [None] * len(graph.types)
        self._is_root: list[bool] = graph.is_root.tolist()
        self._first: list[int] = graph.operand_start.tolist()
        self._operand: list[int] = graph.operand.tolist()
        self._nodes = members(graph)
        self._calls: dict[int, list[tuple[str, int]]] = {}
        for call in graph.calls:
            if call.role in _CALLS:
                self._calls.setdefault(call.node, []).append((call.role, call.group))
        self._fused = {g.caller: i for i, g in enumerate(graph.groups) if g.kind == "fusion" and g.caller >= 0}

    def __len__(self) -> int:
        return len(self.op)

    @property
    def entry(self) -> int:
        """The computation that runs first: the one marked so, else the last; -1 if there is none."""
        groups = self.graph.groups
        return next((i for i, group in enumerate(groups) if group.kind == "entry"), len(groups) - 1)

    def nodes(self, group: int) -> list[int]:
        return self._nodes[group].tolist() if 0 <= group < len(self._nodes) else []

    def root(self, nodes: Sequence[int]) -> int:
        """What a computation of these instructions returns; its last one where none is marked, -1 for none."""
        return next((node for node in reversed(nodes) if self._is_root[node]), nodes[-1] if nodes else -1)

    def parameters(self, nodes: Sequence[int]) -> dict[int, int]:
        return {self.parameter_number[node]: node for node in nodes if self.op[node] == "parameter"}

    def operands(self, node: int) -> list[int]:
        return self._operand[self._first[node] : self._first[node + 1]]

    def shape(self, node: int) -> Type:
        code = self._type[node]
        shape = self._shapes[code]
        if shape is None:
            shape = self._shapes[code] = parse_type(self.graph.types[code])
        return shape

    def calls(self, node: int) -> Sequence[tuple[str, int]]:
        """The computations that run inside an instruction: in which role, and which."""
        return self._calls.get(node, ())

    def fused(self, node: int) -> list[int]:
        return self.nodes(self._fused.get(node, -1))

    def fusion_kind(self, node: int) -> str:
        code = int(self.fusion_kinds[node])
        return self.graph.attribute_table.columns.values[code] if code >= 0 else ""

    def is_tiled(self, node: int) -> bool:
        return any(array.tiling for array in self.shape(node).arrays)

    def keeps_tiles(self, node: int) -> bool:
        """Whether a node is a bitcast that gives a TPU's tiles another name, each element where it was."""
        if self.op[node] != "bitcast" or not self.is_tiled(node):
            return False
        before = [array.stored[:3] for operand in self.operands(node) for array in self.shape(operand).arrays]
        return before == [array.stored[:3] for array in self.shape(node).arrays]

    def behind_bitcasts(self, node: int) -> int:
        """The instruction that a chain of bitcasts starts at: they are names for what is there."""
        for _ in range(_LONGEST_CHAIN):
            operands = self.operands(node)
            if self.op[node] != "bitcast" or not operands:
                break
            node = operands[0]
        return node


_RENAMING = {"bitcast", "opt-barrier", "optimization-barrier", "add-dependency", "domain"}
_DEEPEST = 100  # computations in computations: real ones are a few deep

Leaves = tuple[int, ...]
"""Values by their number: one for each array of a type, a tuple's flat."""


class Values:
    """One row for each array that is defined, in columns: what defines it, its type and bytes, its steps."""

    def __init__(self) -> None:
        self.node: list[int] = []
        self.array: list[int] = []  # which of its node's arrays it is
        self.type: list[ArrayType] = []
        self.size: list[int] = []  # bytes; 0 for another name of what is there
        self.start: list[int] = []
        self.end: list[int] = []

    def __len__(self) -> int:
        return len(self.node)

    def define(self, node: int, arrays: Sequence[ArrayType], step: int) -> Leaves:
        first, count = len(self.node), len(arrays)
        if count == 1:  # nearly all
            self.node.append(node)
            self.array.append(0)
            self.type.append(arrays[0])
            self.size.append(arrays[0].allocated)
            self.start.append(step)
            self.end.append(step)
            return (first,)
        self.node += [node] * count
        self.array += range(count)
        self.type += arrays
        self.size += [array.allocated for array in arrays]
        self.start += [step] * count
        self.end += [step] * count
        return tuple(range(first, first + count))

    def prolong(self, values: Sequence[int], step: int) -> None:
        for value in values:
            self.end[value] = max(self.end[value], step)


class Execution(NamedTuple):
    """An instruction at its step: the values of each operand, and those that it defines."""

    node: int
    step: int
    operands: Sequence[Leaves]
    values: Leaves


@dataclass
class Schedule:
    """What runs when.

    Args:
        values: All that is defined; alive from its definition to its last reader.
        steps: The node that runs at each step. The first step is the call itself: arguments and constants are there.
        executions: The instructions that read an array as large as one that they define.
        arguments, constants: The values of the entry's parameters, by number, and of each constant, by node.
        renamed: What a loop only passes on: its own value, and the one that it is another name for.
        joined: Values of which several have one buffer: what a loop carries, what a branch gives.
    """

    code: Instructions
    values: Values = field(default_factory=Values)
    steps: list[int] = field(default_factory=list[int])
    executions: list[Execution] = field(default_factory=list[Execution])
    arguments: dict[int, Leaves] = field(default_factory=dict[int, Leaves])
    constants: dict[int, Leaves] = field(default_factory=dict[int, Leaves])
    outputs: Leaves = ()
    renamed: dict[int, int] = field(default_factory=dict[int, int])
    joined: set[int] = field(default_factory=set[int])
    _running: list[int] = field(default_factory=list[int])  # computations

    def run(self, node: int, operands: Sequence[Leaves]) -> int:
        """The step at which an instruction runs, which reads its operands."""
        self.steps.append(node)
        step = len(self.steps) - 1
        for leaves in operands:
            for value in leaves:
                self.values.end[value] = step
        return step

    def original(self, value: int) -> int:
        while value in self.renamed:
            value = self.renamed[value]
        return value

    def called(self, node: int) -> dict[str, list[int]]:
        """The computations that a node calls, by role; none that is running, for no real one calls itself.

        A computation that many call is traversed for each, so damaged text could take for ever: it may take four
        times its own length.
        """
        calls: dict[str, list[int]] = {}
        if len(self._running) > _DEEPEST or len(self.steps) > 4 * len(self.code) + 1000:
            return calls
        for role, group in self.code.calls(node):
            if group not in self._running:
                calls.setdefault(role, []).append(group)
        return calls

    def run_computation(self, group: int, given: Sequence[Leaves] | None) -> Leaves:
        code, leaves = self.code, dict[int, Leaves]()
        self._running.append(group)
        nodes = code.nodes(group)
        for node in nodes:
            op = code.op[node]
            if op == "parameter":
                leaves[node] = _parameter(self, node, given)
            else:
                operands = [leaves.get(operand, ()) for operand in code.operands(node)]
                leaves[node] = _handler(op)(self, node, operands)
        self._running.pop()
        return leaves.get(code.root(nodes), ())


def schedule_of(graph: Graph) -> Schedule:
    schedule = Schedule(Instructions(graph))
    entry = schedule.code.entry
    nodes = schedule.code.nodes(entry)
    if nodes:
        schedule.run(nodes[0], ())  # the call
        outputs = schedule.run_computation(entry, None)
        schedule.outputs = tuple(map(schedule.original, outputs))
    return schedule


# What each operation does ---------------------------------------------------------------------------------------------

_Handler = Callable[[Schedule, int, Sequence[Leaves]], Leaves]


def _handler(op: str) -> _Handler:
    handler = _HANDLERS.get(op)
    if handler is None:
        handler = _start if op.endswith("-start") else _done if op.endswith("-done") else _define
        handler = _HANDLERS[op] = _rename if op in _RENAMING else handler
    return handler


def _define(schedule: Schedule, node: int, operands: Sequence[Leaves]) -> Leaves:
    """Most: reads its operands, writes arrays of its own."""
    step = schedule.run(node, operands)
    values = schedule.values.define(node, schedule.code.shape(node).arrays, step)
    if _has_equal_sizes(schedule.values.size, operands, values):
        schedule.executions.append(Execution(node, step, operands, values))
    return values


def _has_equal_sizes(sizes: Sequence[int], operands: Sequence[Leaves], values: Leaves) -> bool:
    """Whether something that is read is as large as a value: only then can that lie in its place."""
    written = {sizes[value] for value in values}
    for leaves in operands:
        for leaf in leaves:
            if sizes[leaf] in written:
                return True
    return False


def _parameter(schedule: Schedule, node: int, given: Sequence[Leaves] | None) -> Leaves:
    number = max(schedule.code.parameter_number[node], 0)
    if given is not None:
        return given[number] if number < len(given) else ()
    values = schedule.arguments[number] = schedule.values.define(node, schedule.code.shape(node).arrays, 0)
    return values


def _constant(schedule: Schedule, node: int, _: Sequence[Leaves]) -> Leaves:
    if node not in schedule.constants:  # a computation may run twice, and its constants are there once
        schedule.constants[node] = schedule.values.define(node, schedule.code.shape(node).arrays, 0)
    return schedule.constants[node]


def _tuple(_: Schedule, __: int, operands: Sequence[Leaves]) -> Leaves:
    return tuple(leaf for leaves in operands for leaf in leaves)


def _element(schedule: Schedule, node: int, operands: Sequence[Leaves]) -> Leaves:
    code = schedule.code
    of = code.operands(node)
    return operands[0][code.shape(of[0]).element(code.tuple_index[node])] if of else ()


def _rename(schedule: Schedule, node: int, operands: Sequence[Leaves]) -> Leaves:
    return operands[0] if operands and operands[0] else _define(schedule, node, operands)


def _update(schedule: Schedule, node: int, operands: Sequence[Leaves]) -> Leaves:
    """Runs, and gives on what was there before."""
    schedule.run(node, operands)
    return operands[0] if operands else ()


def _copy_start(schedule: Schedule, node: int, operands: Sequence[Leaves]) -> Leaves:
    """(where to, where from, a handle)"""
    values = _define(schedule, node, operands)
    return _with_operands(schedule.values, values, 1, operands[0] if operands else ())


def _start(schedule: Schedule, node: int, operands: Sequence[Leaves]) -> Leaves:
    """(what is read, what will be written, handles)"""
    values = _define(schedule, node, operands)
    return _with_operands(schedule.values, values, 0, _tuple(schedule, node, operands))


def _with_operands(values: Values, own: Leaves, at: int, read: Leaves) -> Leaves:
    """The operands' values where the type of a start repeats them."""
    place = own[at : at + len(read)]
    if len(own) <= len(read) or [values.size[v] for v in place] != [values.size[v] for v in read]:
        return own
    for value in place:
        values.size[value] = 0
    return (*own[:at], *read, *own[at + len(read) :])


def _done(schedule: Schedule, node: int, operands: Sequence[Leaves]) -> Leaves:
    """The written part of what its start gave."""
    code, given = schedule.code, operands[0] if operands else ()
    step, arrays = schedule.run(node, operands), code.shape(node).arrays
    if code.op[node] in ("copy-done", "recv-done", "all-reduce-done"):
        written = given[: len(arrays)]
    else:
        written = given[code.shape(code.operands(node)[0] if operands else node).element(1)]
    if [schedule.values.size[value] for value in written] == [array.allocated for array in arrays]:
        return written
    return schedule.values.define(node, arrays, step)


def _call(schedule: Schedule, node: int, operands: Sequence[Leaves]) -> Leaves:
    called = schedule.called(node).get("to_apply", [])
    if not called:
        return _define(schedule, node, operands)
    given = schedule.run_computation(called[0], operands)
    schedule.run(node, ())
    return given


def _while(schedule: Schedule, node: int, operands: Sequence[Leaves]) -> Leaves:
    called, values = schedule.called(node), schedule.values
    carried = operands[0] if operands else ()
    arrays = schedule.code.shape(node).arrays
    if len(carried) != len(arrays) or not called.get("body"):
        return _define(schedule, node, operands)
    first = len(schedule.steps)
    # Inside, what is carried goes by a name of its own: it is written anew in each turn.
    inside = values.define(node, arrays, first)
    for condition in called.get("condition", []):
        schedule.run_computation(condition, [inside])
    result = schedule.run_computation(called["body"][0], [inside])
    step = schedule.run(node, ())
    after = list(values.define(node, arrays, step))
    for at, (value, own) in enumerate(zip(carried, inside, strict=True)):
        given = result[at : at + 1]
        if given == (own,):  # passed on as it is: one buffer before, inside and after
            schedule.renamed[own] = value
            values.size[own] = values.size[after[at]] = 0
            values.prolong([value], step)
            after[at] = value
        else:
            values.prolong([value], first - 1)
            values.prolong(given, step - 1)
            schedule.joined.update((value, own, after[at], *given))
    return tuple(after)


def _conditional(schedule: Schedule, node: int, operands: Sequence[Leaves]) -> Leaves:
    called = schedule.called(node)
    branches = [g for role, groups in called.items() if role not in ("to_apply", "body", "condition") for g in groups]
    for branch, given in zip(branches, operands[1:], strict=False):
        result = schedule.run_computation(branch, [given])
        schedule.values.prolong(result, len(schedule.steps) - 1)
        schedule.joined.update(result)
    step = schedule.run(node, operands[:1])
    values = schedule.values.define(node, schedule.code.shape(node).arrays, step)
    schedule.joined.update(values)
    return values


_HANDLERS: dict[str, _Handler] = {
    "constant": _constant,
    "tuple": _tuple,
    "get-tuple-element": _element,
    "while": _while,
    "conditional": _conditional,
    "call": _call,
    "copy-start": _copy_start,
    "async-update": _update,
}
