"""When each buffer of an HLO module is alive, if it runs in the order of its text.

The rules are those of XLA's own buffer assignment as far as a text tells them (openxla/xla: `hlo_live_range.cc`,
`hlo_dataflow_analysis.cc`, `alias_info.cc`): a fusion writes its outputs alone; tuples and bitcasts are names for
what is there; a loop's body reuses the buffers that the loop carries; an element-wise operation writes over an
operand that nobody reads afterwards. What they leave out: the tables of pointers that tuples are, alignment, and
fragmentation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from explorer.analysis.memory.buffer_aliasing import (
    ELEMENTWISE,
    IN_PLACE,
    aliases,
    donations,
    elementwise_uses,
    written_over,
)
from explorer.model.graph import ComputationCall, Graph, Ints
from explorer.model.types import Type, parse_type

_PASSING = {"tuple", "get-tuple-element", "bitcast", "opt-barrier", "optimization-barrier", "add-dependency", "domain"}
_CALLS = ("body", "condition", "to_apply", "true_computation", "false_computation", "branch_computations")
_DEEPEST = 100  # computations in computations: real ones are a few deep

Leaves = tuple[int, ...]


class Walk:
    """One pass over the schedule: `steps` are the nodes that run, and each value is alive from `start` to `end`.

    The first step is the call itself: arguments and constants are there, and nothing runs yet.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.steps: list[int] = []
        # One entry a value: what defines it, which of its arrays, how large and where, and its steps.
        self.node: list[int] = []
        self.array: list[int] = []
        self.size: list[int] = []
        self.space: list[int] = []
        self.start: list[int] = []
        self.end: list[int] = []
        self.arguments: dict[int, Leaves] = {}  # by the number of the parameter
        self.constants: set[int] = set()
        self.outputs: Leaves = ()
        self._replaced: dict[int, int] = {}  # a loop's own name for what it only passes on
        self._reused: list[tuple[int, int, int]] = []  # operand, output, step: may lie in the same place
        self._shapes: dict[int, Type] = {}
        # As lists: a hundred thousand nodes are asked for one by one.
        self._op: list[int] = graph.op.tolist()
        self._type: list[int] = graph.type.tolist()
        attributes = graph.attribute_table
        self._parameter_number: list[int] = attributes.integers("parameter_number").tolist()
        self._tuple_index: list[int] = attributes.integers("index").tolist()
        kinds, values = attributes.codes("kind"), attributes.columns.values
        elementwise = [code for code, value in enumerate(values) if value in ("kLoop", "kInput")]
        self._elementwise_fusions = set(np.flatnonzero(np.isin(kinds, elementwise)).tolist())
        self._aliasing = set(attributes.nodes("output_to_operand_aliasing").tolist())
        self._is_root: list[bool] = graph.is_root.tolist()
        self._first, self._operand = graph.operand_start.tolist(), graph.operand.tolist()
        self._calls = _calls_by_node(graph)
        self._nodes = _by_group(graph)
        self._open: list[int] = []
        self._budget = 4 * len(graph.names) + 1000  # steps: a computation that many call is walked for each
        self._passes = [op in _PASSING for op in graph.ops]
        self._handlers: list[Callable[[int, list[Leaves]], Leaves]] = [self._handler(op) for op in graph.ops]
        self._fusions = {g.caller: i for i, g in enumerate(graph.groups) if g.kind == "fusion" and g.caller >= 0}
        entry = _entry(graph)
        if entry >= 0 and len(self._nodes[entry]):
            self._step(int(self._nodes[entry][0]))  # the call: arguments and constants are there, nothing runs yet
            self.outputs = self._resolve(self._run(entry, None))
        self._settle()

    # The walk ---------------------------------------------------------------------------------------------------------

    def _run(self, group: int, given: Sequence[Leaves] | None) -> Leaves:
        """Walk a computation; `given` are the values of its parameters, None for the entry's, which are arguments."""
        graph, leaves = self.graph, dict[int, Leaves]()
        self._open.append(group)
        nodes: list[int] = self._nodes[group].tolist()
        first, operands = self._first, self._operand
        for node in nodes:
            op = self._op[node]
            if graph.ops[op] == "parameter":
                leaves[node] = self._parameter(node, given)
            else:
                args = [leaves.get(at, ()) for at in operands[first[node] : first[node + 1]]]
                leaves[node] = self._handlers[op](node, args)
        self._open.pop()
        return leaves.get(self._root(nodes), ())

    def _handler(self, op: str) -> Callable[[int, list[Leaves]], Leaves]:
        handlers: dict[str, Callable[[int, list[Leaves]], Leaves]] = {
            "constant": self._constant,
            "tuple": lambda _, args: tuple(leaf for arg in args for leaf in arg),
            "get-tuple-element": self._element,
            "while": self._while,
            "conditional": self._conditional,
            "call": self._call,
            "fusion": self._fusion,
            "custom-call": self._custom_call,
            "copy-start": self._copy_start,
            "async-update": lambda node, args: self._passed(node, args, args[0] if args else ()),
        }
        if op in handlers:
            return handlers[op]
        if op in _PASSING:
            return lambda node, args: args[0] if args and args[0] else self._plain(node, args)
        if op in IN_PLACE:
            return self._in_place
        if op in ELEMENTWISE:
            return self._elementwise
        if op.endswith("-start"):
            return self._start
        if op.endswith("-done"):
            return self._done
        return self._plain

    def _parameter(self, node: int, given: Sequence[Leaves] | None) -> Leaves:
        number = max(self._parameter_number[node], 0)
        if given is not None:
            return given[number] if number < len(given) else ()
        values = self.arguments[number] = self._new(node, 0)
        return values

    def _plain(self, node: int, args: Sequence[Leaves]) -> Leaves:
        """What runs: reads its operands, writes arrays of its own."""
        step = self._step(node)
        self._read(args, step)
        return self._new(node, step)

    def _passed(self, node: int, args: Sequence[Leaves], leaves: Leaves) -> Leaves:
        """What runs and gives on what was there before."""
        self._read(args, self._step(node))
        return leaves

    def _constant(self, node: int, _: Sequence[Leaves]) -> Leaves:
        values = self._new(node, 0)
        self.constants.update(values)
        return values

    def _element(self, node: int, args: Sequence[Leaves]) -> Leaves:
        operand = self._operand[self._first[node]] if args else node
        return args[0][self._shape(operand).element(self._tuple_index[node])] if args else ()

    def _elementwise(self, node: int, args: Sequence[Leaves]) -> Leaves:
        values = self._plain(node, args)
        if len(values) == 1:
            self._reuse([arg[0] for arg in args if len(arg) == 1], values[0])
        return values

    def _in_place(self, node: int, args: Sequence[Leaves]) -> Leaves:
        values = self._plain(node, args)
        wanted = IN_PLACE[self.graph.ops[self._op[node]]]
        for value, arg in list(zip(values, args, strict=False))[: wanted if wanted > 0 else None]:
            self._reuse(arg[:1], value)
        return values

    def _custom_call(self, node: int, args: Sequence[Leaves]) -> Leaves:
        values = self._plain(node, args)
        self._reuse_aliases(node, args, values)
        return values

    def _fusion(self, node: int, args: Sequence[Leaves]) -> Leaves:
        values = self._plain(node, args)
        self._reuse_aliases(node, args, values)
        group = self._fusions.get(node, -1)
        if group >= 0 and self._has_equal_sizes(args, values):
            self._reuse_in_fusion(node, self._nodes[group].tolist(), args, values)
        return values

    def _has_equal_sizes(self, args: Sequence[Leaves], values: Leaves) -> bool:
        """Is a value as large as something that is read? Only then can it lie in its place."""
        wide = {self.size[value] for value in values}
        return any(self.size[leaf] in wide for arg in args for leaf in arg)

    def _reuse_in_fusion(self, node: int, inside: list[int], args: Sequence[Leaves], values: Leaves) -> None:
        """Which arguments a fusion may write over: those it updates in place, and those it reads element by element."""
        parameters = self._parameters(inside)
        number = {at: key for key, at in parameters.items()}
        for value, source in zip(values, written_over(self.graph, self._root(inside)), strict=False):
            if number.get(source, -1) in range(len(args)):
                self._reuse(args[number[source]][:1], value)
        if node not in self._elementwise_fusions:
            return
        free = elementwise_uses(self.graph, inside)
        whole = [arg for key, arg in enumerate(args) if len(arg) == 1 and parameters.get(key, -1) in free]
        for arg, value in product(whole, values):
            self._reuse(arg, value)

    def _parameters(self, inside: list[int]) -> dict[int, int]:
        """The parameters of a computation by their number."""
        return {self._parameter_number[at]: at for at in inside if self.graph.ops[self._op[at]] == "parameter"}

    def _reuse_aliases(self, node: int, args: Sequence[Leaves], values: Leaves) -> None:
        """What the instruction itself says it writes over."""
        if node not in self._aliasing:
            return
        shape = self._shape(node)
        for alias in aliases(self.graph.attribute_table.get(node, "output_to_operand_aliasing")):
            place = values[shape.element(alias.output)] if alias.output >= 0 else values
            if alias.operand < len(args) and place:
                self._reuse(args[alias.operand][:1], place[0])

    # Pairs of a start and its end -------------------------------------------------------------------------------------

    def _copy_start(self, node: int, args: Sequence[Leaves]) -> Leaves:
        """(where to, where from, a handle)"""
        values = self._plain(node, args)
        return self._standing_for(values, 1, args[0] if args else ())

    def _start(self, node: int, args: Sequence[Leaves]) -> Leaves:
        """(what is read, what will be written, handles)"""
        values = self._plain(node, args)
        return self._standing_for(values, 0, tuple(leaf for arg in args for leaf in arg))

    def _standing_for(self, values: Leaves, at: int, read: Leaves) -> Leaves:
        """The operands' own values where the start's type repeats them."""
        place = values[at : at + len(read)]
        if len(values) <= len(read) or [self.size[v] for v in place] != [self.size[v] for v in read]:
            return values
        for value in place:
            self.size[value] = 0
        return (*values[:at], *read, *values[at + len(read) :])

    def _done(self, node: int, args: Sequence[Leaves]) -> Leaves:
        """The written part of what its start gave."""
        given, wanted = args[0] if args else (), self._shape(node)
        self._read(args, self._step(node))
        name = self.graph.ops[self._op[node]]
        if name in ("copy-done", "recv-done", "all-reduce-done"):
            written = given[: len(wanted)]
        else:
            operand = self._operand[self._first[node]] if args else node
            written = given[self._shape(operand).element(1)]
        if tuple(self.size[v] for v in written) == wanted.sizes:
            return written
        return self._new(node, len(self.steps) - 1)

    # Computations that run inside another -----------------------------------------------------------------------------

    def _called(self, node: int) -> dict[str, list[int]]:
        """The computations that a node calls, by how; none of those that are open, for no real one calls itself."""
        calls: dict[str, list[int]] = {}
        if len(self._open) > _DEEPEST or len(self.steps) > self._budget:
            return calls
        for call in self._calls.get(node, ()):
            if call.group not in self._open:
                calls.setdefault(call.role, []).append(call.group)
        return calls

    def _call(self, node: int, args: list[Leaves]) -> Leaves:
        called = self._called(node).get("to_apply", [])
        if not called:
            return self._plain(node, args)
        given = self._run(called[0], args)
        return self._passed(node, (), given)

    def _while(self, node: int, args: list[Leaves]) -> Leaves:
        called = self._called(node)
        carried = args[0] if args else ()
        first = len(self.steps)
        if len(carried) != len(self._shape(node).arrays) or not called.get("body"):
            return self._plain(node, args)
        # Inside, what is carried goes by a name of its own: it is written anew in each turn.
        inside = self._new(node, first)
        for condition in called.get("condition", []):
            self._run(condition, [inside])
        result = self._run(called["body"][0], [inside])
        step = self._step(node)
        after = self._new(node, step)
        for at, (value, own) in enumerate(zip(carried, inside, strict=True)):
            if at < len(result) and result[at] == own:  # passed on as it is: one buffer before, inside and after
                self._replaced[own] = value
                self.size[own] = self.size[after[at]] = 0
                self.end[value] = max(self.end[value], step)
                after = (*after[:at], value, *after[at + 1 :])
            else:
                self.end[value] = max(self.end[value], first - 1)
                if at < len(result):
                    self.end[result[at]] = max(self.end[result[at]], step - 1)
        return after

    def _conditional(self, node: int, args: list[Leaves]) -> Leaves:
        called = self._called(node)
        branches = [g for how, groups in called.items() if how not in ("to_apply", "body", "condition") for g in groups]
        for branch, given in zip(branches, args[1:], strict=False):
            for value in self._run(branch, [given]):
                self.end[value] = max(self.end[value], len(self.steps) - 1)
        step = self._step(node)
        self._read(args[:1], step)
        return self._new(node, step)

    # Values -----------------------------------------------------------------------------------------------------------

    def _step(self, node: int) -> int:
        self.steps.append(node)
        return len(self.steps) - 1

    def _new(self, node: int, step: int) -> Leaves:
        shape, first = self._shape(node), len(self.node)
        count = len(shape.arrays)
        if count == 1:  # nearly all
            self.node.append(node)
            self.array.append(0)
            self.size.append(shape.sizes[0])
            self.space.append(shape.spaces[0])
            self.start.append(step)
            self.end.append(step)
            return (first,)
        self.node += [node] * count
        self.array += range(count)
        self.size += shape.sizes
        self.space += shape.spaces
        self.start += [step] * count
        self.end += [step] * count
        return tuple(range(first, first + count))

    def _read(self, args: Sequence[Leaves], step: int) -> None:
        for arg in args:
            for value in arg:
                self.end[value] = step

    def _reuse(self, operands: Sequence[int], output: int) -> None:
        for operand in operands:
            if self.size[operand] == self.size[output] and operand not in self.constants:
                self._reused.append((operand, output, len(self.steps) - 1))

    def _resolve(self, leaves: Leaves) -> Leaves:
        return tuple(self._final(leaf) for leaf in leaves)

    def _final(self, value: int) -> int:
        while value in self._replaced:
            value = self._replaced[value]
        return value

    def _settle(self) -> None:
        """What only the whole walk tells: how long arguments and outputs stay, and who writes over whom."""
        for own in self._replaced:
            value = self._final(own)
            self.end[value] = max(self.end[value], self.end[own])
        last = max(len(self.steps) - 1, 0)
        kept = {value for values in self.arguments.values() for value in values} - self.donated()
        for value in (*kept, *self.constants):
            self.start[value], self.end[value] = 0, last
        for value in self.outputs:
            self.end[value] = last
        self._write_over(kept)

    def _write_over(self, kept: set[int]) -> None:
        """End a step earlier what dies where something is written in its place: one output each, and none of `kept`."""
        written: set[int] = set()
        for operand, output, step in self._reused:
            operand = self._final(operand)
            dies = self.end[operand] == step > self.start[operand]
            if dies and operand not in kept and output not in written and operand not in self.outputs:
                self.end[operand] = step - 1
                written.add(output)

    def donated(self) -> set[int]:
        """The values of arguments whose memory the caller gives away."""
        given_away: set[int] = set()
        for number, element in donations(self.graph.attributes):
            values = self.arguments.get(number, ())
            given_away.update(
                values if element < 0 or not values else values[self._shape(self.node[values[0]]).element(element)]
            )
        return given_away

    def aliased(self) -> set[int]:
        """The outputs that are written to where a donated argument was."""
        places = (max(alias.output, 0) for alias in aliases(self.graph.attributes.get("input_output_alias", "")))
        return {self.outputs[place] for place in places if place < len(self.outputs)}

    # The graph --------------------------------------------------------------------------------------------------------

    def _shape(self, node: int) -> Type:
        code = self._type[node]
        shape = self._shapes.get(code)
        if shape is None:
            shape = self._shapes[code] = parse_type(self.graph.types[code])
        return shape

    def _root(self, nodes: Sequence[int]) -> int:
        for node in reversed(nodes):
            if self._is_root[node]:
                return node
        return nodes[-1] if nodes else -1


def _by_group(graph: Graph) -> list[Ints]:
    order = np.argsort(graph.group, kind="stable").astype(np.int32)
    edges = np.searchsorted(graph.group[order], np.arange(len(graph.groups) + 1))
    return [order[edges[i] : edges[i + 1]] for i in range(len(graph.groups))]


def _calls_by_node(graph: Graph) -> dict[int, list[ComputationCall]]:
    calls: dict[int, list[ComputationCall]] = {}
    for call in graph.calls:
        if call.role in _CALLS:
            calls.setdefault(call.node, []).append(call)
    return calls


def _entry(graph: Graph) -> int:
    """The computation that runs first: the one marked so, else the last; -1 if there is none."""
    return next((i for i, g in enumerate(graph.groups) if g.kind == "entry"), len(graph.groups) - 1)
