"""An HLO module in execution order: the instruction of each step, and the values it defines and reads.

Tuples and bitcasts rename existing values. A called computation runs inside its caller's step. A loop's body runs once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from explorer.model.graph import Graph
from explorer.model.types import ArrayType, Type, parse_type

_CALLS = ("body", "condition", "to_apply", "true_computation", "false_computation", "branch_computations")
_MAX_CHAIN = 100  # of bitcasts; damaged text may have cycles


class Instructions:
    """The instructions of a module by index, as lists, which are fast to read one by one."""

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
        self._nodes = graph.members
        self._calls: dict[int, list[tuple[str, int]]] = {}
        for call in graph.calls:
            if call.role in _CALLS:
                self._calls.setdefault(call.node, []).append((call.role, call.group))
        self._fused = {g.caller: i for i, g in enumerate(graph.groups) if g.kind == "fusion" and g.caller >= 0}

    def __len__(self) -> int:
        return len(self.op)

    @property
    def entry(self) -> int:
        """Return the index of the entry computation, else of the last computation; -1 without computations."""
        groups = self.graph.groups
        return next((i for i, group in enumerate(groups) if group.kind == "entry"), len(groups) - 1)

    def nodes(self, group: int) -> list[int]:
        return self._nodes[group].tolist() if 0 <= group < len(self._nodes) else []

    def root(self, nodes: Sequence[int]) -> int:
        """Return the root instruction among `nodes`, else the last instruction; -1 if `nodes` is empty."""
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
        """Return the (role, group) of computations that run inside an instruction."""
        return self._calls.get(node, ())

    def fused(self, node: int) -> list[int]:
        return self.nodes(self._fused.get(node, -1))

    def fusion_kind(self, node: int) -> str:
        code = int(self.fusion_kinds[node])
        return self.graph.attribute_table.columns.values[code] if code >= 0 else ""

    def is_tiled(self, node: int) -> bool:
        return any(array.tiling for array in self.shape(node).arrays)

    def keeps_tiles(self, node: int) -> bool:
        """Return True for a bitcast that only renames a TPU's tiles."""
        if self.op[node] != "bitcast" or not self.is_tiled(node):
            return False
        before = [array.stored[:3] for operand in self.operands(node) for array in self.shape(operand).arrays]
        return before == [array.stored[:3] for array in self.shape(node).arrays]

    def behind_bitcasts(self, node: int) -> int:
        """Return the instruction that a chain of bitcasts ends at, going to the operands; other nodes themselves."""
        for _ in range(_MAX_CHAIN):
            operands = self.operands(node)
            if self.op[node] != "bitcast" or not operands:
                break
            node = operands[0]
        return node


_RENAMING = {"bitcast", "opt-barrier", "optimization-barrier", "add-dependency", "domain"}
_MAX_DEPTH = 100  # of nested computations

Leaves = tuple[int, ...]  # value numbers, one for each array of a flattened type


class Values:
    """Columns of the defined arrays: producer, type, bytes, lifetime."""

    def __init__(self) -> None:
        self.node: list[int] = []
        self.array: list[int] = []  # index among its node's arrays
        self.type: list[ArrayType] = []
        self.size: list[int] = []  # bytes; 0 for another name of a value
        self.start: list[int] = []
        self.end: list[int] = []

    def __len__(self) -> int:
        return len(self.node)

    def define(self, node: int, arrays: Sequence[ArrayType], step: int) -> Leaves:
        first, count = len(self.node), len(arrays)
        if count == 1:  # the frequent case
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
    """An instruction at its step: the values of each operand, and the defined values."""

    node: int
    step: int
    operands: Sequence[Leaves]
    values: Leaves


@dataclass
class Schedule:
    """A module's execution.

    Args:
        values: All defined values, alive from definition to last reader.
        steps: Node at each step. The first step is the call itself, which defines arguments and constants.
        executions: Instructions that read an array as large as one that they define.
        arguments, constants: Values of the entry's parameters by number, and of constants by node.
        renamed: Values that a loop only passes on, with the original value.
        joined: Values that share a buffer with others: those a loop carries or a branch returns.
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
        """Append an instruction that reads its operands; return its step, an index of `steps`."""
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
        """Return the computations that a node calls, by role, without those already running."""
        # A computation is traversed for each caller, which may explode in damaged text: at most four times its length.
        calls: dict[str, list[int]] = {}
        if len(self._running) > _MAX_DEPTH or len(self.steps) > 4 * len(self.code) + 1000:
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


_Handler = Callable[[Schedule, int, Sequence[Leaves]], Leaves]


def _handler(op: str) -> _Handler:
    # Found handlers are added to the table, because an operation occurs many times.
    handler = _HANDLERS.get(op)
    if handler is None:
        handler = _start if op.endswith("-start") else _done if op.endswith("-done") else _define
        handler = _HANDLERS[op] = _rename if op in _RENAMING else handler
    return handler


def _define(schedule: Schedule, node: int, operands: Sequence[Leaves]) -> Leaves:
    """Append an instruction to the schedule; return new values for its result, the default for operations."""
    step = schedule.run(node, operands)
    values = schedule.values.define(node, schedule.code.shape(node).arrays, step)
    if _has_equal_sizes(schedule.values.size, operands, values):
        schedule.executions.append(Execution(node, step, operands, values))
    return values


def _has_equal_sizes(sizes: Sequence[int], operands: Sequence[Leaves], values: Leaves) -> bool:
    """Return True if an operand is as large as a value, a condition for reuse."""
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
    if node not in schedule.constants:  # a computation may run twice, but its constants exist once
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
    """Append an instruction to the schedule; return the values of its first operand, which it updates, or ()."""
    schedule.run(node, operands)
    return operands[0] if operands else ()


def _copy_start(schedule: Schedule, node: int, operands: Sequence[Leaves]) -> Leaves:
    """Return the values of an asynchronous copy's start: (target, source, handle).

    The source is the operand's value; target and handle are new.
    """
    values = _define(schedule, node, operands)
    return _with_operands(schedule.values, values, 1, operands[0] if operands else ())


def _start(schedule: Schedule, node: int, operands: Sequence[Leaves]) -> Leaves:
    """Return the values of an asynchronous operation's start: (operands, results, handles).

    Results and handles are new values.
    """
    values = _define(schedule, node, operands)
    return _with_operands(schedule.values, values, 0, _tuple(schedule, node, operands))


def _with_operands(values: Values, own: Leaves, at: int, read: Leaves) -> Leaves:
    """Return `own` with the values `read` from position `at` on; unchanged if their sizes differ.

    Replaced values get size 0. The type of an asynchronous start repeats its operands.
    """
    place = own[at : at + len(read)]
    if len(own) <= len(read) or [values.size[v] for v in place] != [values.size[v] for v in read]:
        return own
    for value in place:
        values.size[value] = 0
    return (*own[:at], *read, *own[at + len(read) :])


def _done(schedule: Schedule, node: int, operands: Sequence[Leaves]) -> Leaves:
    """Return the values of an asynchronous operation's done: the results among its start's values.

    If their sizes don't match the type of `node`, new values are defined.
    """
    code, given = schedule.code, operands[0] if operands else ()
    step, arrays = schedule.run(node, operands), code.shape(node).arrays
    # Starts of these list their results first, other starts their operands.
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
    # Inside the body, carried values are new: each iteration writes them again.
    inside = values.define(node, arrays, first)
    for condition in called.get("condition", []):
        schedule.run_computation(condition, [inside])
    result = schedule.run_computation(called["body"][0], [inside])
    step = schedule.run(node, ())
    after = list(values.define(node, arrays, step))
    for at, (value, own) in enumerate(zip(carried, inside, strict=True)):
        given = result[at : at + 1]
        if given == (own,):  # passed on unchanged: one buffer before, inside and after
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
    # The first operand selects the branch; a damaged text may lack others.
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
