"""Fates of jaxpr equations and StableHLO operations according to recorded passes, the lowering and XLA's import."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from explorer.analysis.graphs import is_dead, varies
from explorer.analysis.hlo_operations import HELPERS, NEUTRAL, hlo_name, infix
from explorer.analysis.metadata_fates import Instructions, Row, only_calls, running
from explorer.analysis.origins import Evidence, Origins
from explorer.analysis.provenance import MOVED, TAKEN, Ending
from explorer.model.declared import cached_property
from explorer.model.fates import IMPORT, LOWERING
from explorer.model.graph import Graph, Ints

_CALLS = ("call", "func.call")
# Primitives that change no value, for which JAX may make no operation.
_NOTHING = frozenset(["stop_gradient", "name", "pvary", "optimization_barrier", "copy_p", "copy"])
_CONTROL = frozenset(["while", "conditional", "call"])


class Recorded:
    """Fates of units from recorded passes, and the kernels that run them.

    Args:
        origins: Origins of the recorded rows.
        hlo: Instructions of the optimized program.
        names: Name of each equation.
    """

    def __init__(self, origins: Origins, hlo: Instructions, names: Sequence[str]) -> None:
        self.origins, self.evidence, self.provenance = origins, origins.evidence, origins.provenance
        self.units, self.hlo, self.names = origins.provenance.units, hlo, names
        self._native: dict[int, list[tuple[int, int]]] = {}
        self._other: dict[int, list[tuple[int, int]]] = {}
        self._all: dict[int, list[int]] = {}  # by equation
        self._alive: set[int] = set()
        for row, (native, standing) in self.provenance.counts.items():
            node, how = origins.node_of_row.get(row, -1), dict(self.provenance.origins[row])
            for equation in how if node >= 0 else ():
                self._all.setdefault(equation, []).append(node)
            for places, numbers in ((self._native, native), (self._other, standing)):
                for number in numbers if node >= 0 else ():
                    equation = self.units[number].equation
                    places.setdefault(number, []).append((node, how[equation]))
                    self._alive.add(equation)

    def row(self, number: int) -> Row | None:
        """Return the fate of a unit that some snapshot contains, else None."""
        if number not in self.provenance.met:
            return None
        native, other = self._native.get(number, []), self._other.get(number, [])
        mine = [node for node, how in native if how != MOVED]
        if control := [node for node in mine if self.hlo.graph.ops[self.hlo.op_code[node]] in _CONTROL]:
            return Row("kept", tuple(control), False, "it is the loop, branch or call itself")
        if mine:
            return self._running(number, mine)
        return self._elsewhere(number, (*native, *other), [node for node, _ in other])

    def _elsewhere(self, number: int, places: Sequence[tuple[int, int]], other: Sequence[int]) -> Row:
        walk = self.provenance
        moved = [node for node, how in places if how == MOVED]
        if moved and number in walk.moved:
            return self._row(walk.moved[number], "moved", self._kernels(moved))
        if other:
            end = walk.rewritten.get(number)
            return running(self.hlo, other) if end is None else self._row(end, "rewritten", self._kernels(other))
        end = walk.ended.get(number)
        return self._ended(end) if end is not None else Row("unknown")

    def _running(self, number: int, mine: Sequence[int]) -> Row:
        row = running(self.hlo, mine, along=self._all[self.units[number].equation])
        split = self.provenance.split.get(number)
        if split is not None and len(row.kernels) > 1:
            return self._row(split, "split", row.kernels)
        is_taken = all(how >= TAKEN for _, how in self._native.get(number, ()))
        taken = self.provenance.rewritten.get(number) if is_taken else None
        return self._row(taken, "rewritten", row.kernels) if taken is not None else row

    def _ended(self, end: Ending) -> Row:
        kind, why = end.kind, end.why
        names = [self.names[equation] for equation, _ in end.target]
        if kind == "merged" and names:
            why = f"the same as {' and '.join(names)}, which stands for both"
        if kind == "folded into":
            return self._folded_into(end)
        return self._row(end._replace(why=why), kind, ())

    def _folded_into(self, end: Ending) -> Row:
        there = [equation for equation, _ in end.target if equation in self._alive]
        if not there:  # the target is gone too
            return self._row(end, "eliminated", ())
        nodes = [node for equation in there for node in self._nodes_of(equation)]
        names, verb = [self.names[equation] for equation in there], "does" if len(there) == 1 else "do"
        why = f"{' and '.join(names)} {verb} both: {end.why}"
        return self._row(end._replace(why=why), "folded into", self._kernels(nodes))

    def _nodes_of(self, equation: int) -> list[int]:
        """Return the instructions that run for an equation, as its own or as another operation."""
        units = self.units.of_equation[equation]
        return [node for places in (self._native, self._other) for unit in units for node, _ in places.get(unit, ())]

    def _kernels(self, nodes: Sequence[int]) -> tuple[int, ...]:
        return tuple(sorted({self.hlo.kernel[node] for node in nodes} - {-1}))

    def _row(self, end: Ending, kind: str, kernels: tuple[int, ...]) -> Row:
        lines = self.evidence.versions.lines
        before, after = (lines[row].strip() if row >= 0 else "" for row in (end.before, end.after))
        return Row(kind, kernels, False, end.why, end.position + 1, before, after)

    def rows(self, stage: str, graph: Graph) -> list[Row]:
        varying, dead = varies(graph), is_dead(graph)
        is_first = stage == self.evidence.first
        before = before_passes(self.evidence, stage, graph, varying, graph.literals)
        units = self.origins.unit_of_equation if is_first else self.origins.unit_of_operation
        callers = {*graph.caller.tolist()}

        def row_of(node: int) -> Row | None:
            op, number = graph.ops[int(graph.op[node])], units.get(node, -1)
            if op in _CALLS or (node in callers and only_calls(op)):
                return self._of_call(number)
            row = self.row(number)
            if row is None and (is_first or self._is_gone(number, op)):
                return before.row(node) or self._not_lowered(op, is_dead=bool(dead[node]))
            return row

        flags = enumerate(graph.is_equation.tolist())
        rows = [row_of(node) or Row("unknown") if is_equation else Row() for node, is_equation in flags]
        _take_from_callers(graph, rows)
        return rows

    def _is_gone(self, number: int, op: str) -> bool:
        """Return True if the operation `op` of a unit, which no snapshot has, surely ended before the first pass.

        False if XLA's import may only have changed its form, and if `number` is -1, no unit.
        """
        if number < 0:
            return False
        whole = self.origins.unit_of_equation[self.units[number].equation]
        return whole not in self.provenance.met or hlo_name(op) not in HELPERS

    def _of_call(self, number: int) -> Row:
        row = self.row(number)
        if row is not None and row.kind == "kept":
            return row
        # A removed loop or branch leaves its body.
        if row is not None and row.step > 0 and "call" not in self.units[number].ops:
            return replace(row, kind="inlined", kernels=())
        return Row("inlined", (), False, "replaced by the computation that it calls")

    def _not_lowered(self, op: str, *, is_dead: bool) -> Row:
        if is_dead:
            return Row("eliminated", (), False, "nothing that is returned depends on it", LOWERING)
        if op in _NOTHING:
            return Row("eliminated", (), False, "it changes no value", LOWERING)
        if self.evidence.is_all_lowered:
            return Row("eliminated", (), False, "JAX lowered it to no operation", LOWERING)
        return Row("unknown")


def _take_from_callers(graph: Graph, rows: list[Row]) -> None:
    """Replace, in `rows`, the fates of operations that a reduction or scatter applies by its own fate.

    Only fates that are unknown, or eliminated by the lowering, are replaced.
    """
    callers: list[int] = graph.caller.tolist()
    for node, row in enumerate(rows):
        caller = callers[int(graph.group[node])]
        is_left_out = row.kind == "unknown" or (row.kind == "eliminated" and row.step == LOWERING)
        if caller >= 0 and is_left_out and rows[caller].kernels and not only_calls(graph.ops[int(graph.op[caller])]):
            above = rows[caller]
            rows[node] = Row(above.kind, above.kernels, True, f"part of {graph.names[caller]}")


_CONSTANT = ("constant", "broadcast")  # next to a varying operand, these are usually constants
_MAX_DEPTH = 3  # of nested expressions; deeper ones are names


class _Place(NamedTuple):
    """The replacement of an operation that the import removed.

    Args:
        row: Row of the first snapshot.
        outermost: The operation that the row replaces: the removed one, or a removed one around it.
    """

    row: int
    outermost: int


@dataclass(frozen=True, eq=False)
class BeforePasses:
    """A stage's nodes that no snapshot contains.

    Args:
        graph: Of the stage.
        operations: StableHLO operations that JAX made from each node.
        node_of: A node of the stage for each StableHLO operation.
        varying: For each node, True if its value depends on an argument.
        places: Replacements of removed StableHLO operations that depend on an argument, if found.
        literals: Literal operands of each node by position, without types.
        evidence: The recorded passes and their rows.
        is_first: True if the rows' equations are of this stage.
    """

    graph: Graph
    operations: Mapping[int, Sequence[int]]
    node_of: Mapping[int, int]
    varying: Sequence[bool]
    places: Mapping[int, _Place]
    literals: Mapping[int, Mapping[int, str]]
    evidence: Evidence
    is_first: bool

    def row(self, node: int) -> Row | None:
        """Return the fate of a node that the import or the lowering ended; None if StableHLO lacks it."""
        operations = self.operations.get(node, ())
        if not operations:
            return None
        lowered, versions = self.evidence.lowering, self.evidence.versions
        own = [at for at in operations if hlo_name(lowered.ops[int(lowered.op[at])]) not in HELPERS] or operations
        if not any(lowered.is_equation[at] for at in own):
            return Row("folded", (), False, "its value is a constant of the program", LOWERING)
        last = own[-1]
        before = self.evidence.text[int(lowered.line[last])].partition(" loc(")[0].strip()
        if not self.varying[node]:
            return Row("folded", (), False, self._expression(node, 0), IMPORT, before)
        place = self.places.get(last)
        after = versions.lines[place.row].strip() if place is not None else ""
        return Row("eliminated", (), False, self._formula(node, place), IMPORT, before, after)

    def _formula(self, node: int, place: _Place | None) -> str:
        """Return an equation as an expression with its replacement: `x × 1.0 → x`."""
        if (operand := self._neutral(node)) >= 0:
            return f"{self._expression(node, _MAX_DEPTH)} → {self._label(operand)}"
        if place is None:
            return self._expression(node, 0)
        outermost = self.node_of.get(place.outermost, node)
        return f"{self._expression(outermost, 0)} → {self._name(place.row)}"

    def _neutral(self, node: int) -> int:
        """Return the operand that an equation passes on because the other is a neutral literal, or -1."""
        start, end = self.graph.operand_start[node : node + 2]
        neutral, sides = NEUTRAL.get(hlo_name(self._op(node)), ("", ()))
        literals = self._literals(node)
        # NaN for a missing literal equals nothing.
        if end - start == 1 and any(float(literals.get(side, "nan")) == float(neutral or "inf") for side in sides):
            return int(self.graph.operand[start])
        return -1

    def _expression(self, node: int, depth: int) -> str:
        start, end = self.graph.operand_start[node : node + 2]
        operands = [self._operand(i, depth) for i in self.graph.operand[start:end].tolist()]
        for side, value in self._literals(node).items():
            operands.insert(side, value)
        return infix(self._op(node).removeprefix("stablehlo."), operands)

    def _operand(self, node: int, depth: int) -> str:
        operations = self.operations.get(node, ())
        is_gone = bool(operations) and all(operation in self.places for operation in operations[-1:])
        return self._expression(node, depth + 1) if is_gone and depth < _MAX_DEPTH else self._label(node)

    def _literals(self, node: int) -> Mapping[int, str]:
        return self.literals.get(node, {})

    def _op(self, node: int) -> str:
        return self.graph.ops[int(self.graph.op[node])]

    def _label(self, node: int) -> str:
        scope = self.graph.scopes[int(self.graph.scope[node])] if self._op(node) == "parameter" else ""
        return scope or self.graph.names[node]

    def _name(self, row: int) -> str:
        """Return the stage's name of a row's equation, else the instruction's name."""
        of = self.evidence.equations_of(row) if self.is_first else []
        if len(of) == 1:
            return self._label(of[0])
        versions = self.evidence.versions
        name = versions.names[int(versions.key[row])]
        argument = name.rpartition(".")[0]  # XLA appends a counter to JAX's names
        return argument if argument in self._arguments else name

    @cached_property
    def _arguments(self) -> frozenset[str]:
        graph = self.graph
        parameters = [i for i, op in enumerate(graph.ops) if op == "parameter"]
        return frozenset(map(self._label, np.flatnonzero(np.isin(graph.op, parameters)).tolist()))


def before_passes(
    evidence: Evidence, name: str, graph: Graph, varying: Sequence[bool], literal_codes: Ints
) -> BeforePasses:
    """Return the nodes of a stage that ended before the first pass.

    Args:
        evidence: The recorded passes.
        name, graph: The stage.
        varying: For each node, True if its value depends on an argument.
        literal_codes: Code of each node's literals in the attribute table, or -1, shape `[n]`.
    """
    lowering, values = evidence.lowering, graph.attribute_table.columns.values
    nodes: list[int] = np.flatnonzero(literal_codes >= 0).tolist()
    literals = {node: _literals(values[int(literal_codes[node])]) for node in nodes}
    operations: dict[int, list[int]] = {}
    node_of: dict[int, int] = {}
    own = np.arange(len(lowering.names))
    pairs = (own, own) if name == "stablehlo" else (evidence.lowered.row, evidence.lowered.equation)
    for operation, node in zip(*(column.tolist() for column in pairs), strict=True):
        operations.setdefault(node, []).append(operation)
        node_of[operation] = node
    places = _Import(evidence, varying if name == "stablehlo" else varies(lowering)).places()
    return BeforePasses(
        graph=graph,
        operations=operations,
        node_of=node_of,
        varying=varying,
        places=places,
        literals=literals,
        evidence=evidence,
        is_first=name == evidence.first,
    )


def _literals(written: str) -> dict[int, str]:
    """Return literals by the position of their operand, without types."""
    pairs = (literal.partition("=") for literal in written.split(", ") if literal)
    return {int(side): value.partition(":")[0] for side, _, value in pairs if side.isdigit()}


class _Import:
    def __init__(self, evidence: Evidence, varying: Sequence[bool]) -> None:
        self._evidence, self.versions, self.varying = evidence, evidence.versions, varying
        self.graph = evidence.lowering
        rows = self.versions.ends[0]
        keys = self.versions.key[rows]
        self.row_of_key = dict(zip(keys[keys >= 0].tolist(), rows[keys >= 0].tolist(), strict=True))
        self._row_of = self._rows_of_operations()

    def places(self) -> Mapping[int, _Place]:
        """Return by removed operation its replacement, if found: its reader's new operand, or that of the reader."""
        # Backwards from the results: a reader's replacement is found before those of its operands.
        places: dict[int, _Place] = {}
        does, gone = self._evidence.does.tolist(), self._row_of
        user_start, user = self.graph.user_columns
        for operation in reversed(range(len(self.graph.names))):
            if not does[operation] or gone[operation] >= 0 or not self.varying[operation]:
                continue
            readers: list[int] = user[user_start[operation] : user_start[operation + 1]].tolist()
            candidates = (self._place(operation, reader, places.get) for reader in readers)
            place = next((place for place in candidates if place is not None), None)
            if place is not None:
                places[operation] = place
        return places

    def _place(self, operation: int, reader: int, known: Callable[[int], _Place | None]) -> _Place | None:
        graph, versions, row = self.graph, self.versions, self._row_of[reader]
        if row < 0:
            return known(reader)
        operands: list[int] = graph.operand[graph.operand_start[reader] : graph.operand_start[reader + 1]].tolist()
        keys: list[int] = versions.operand[versions.operand_start[row] : versions.operand_start[row + 1]].tolist()
        if len(keys) != len(operands) or not self.row_of_key.keys() >= set(keys):
            return None
        others = {int(versions.key[at]) for i in operands if i != operation and (at := self._row_of[i]) >= 0}
        # Not by position, because the import moves constants to the right.
        left = list(dict.fromkeys(key for key in keys if key not in others))
        if len(left) > 1:
            left = [key for key in left if self._evidence.op(self.row_of_key[key]) not in _CONSTANT]
        return _Place(self.row_of_key[left[0]], operation) if len(left) == 1 else None

    def _rows_of_operations(self) -> list[int]:
        """Return the only row of the first snapshot for each operation, or -1."""
        evidence, ops, count = self._evidence, self.versions.ops, len(self.graph.names)
        row, of = evidence.lines.among(np.asarray([*self.row_of_key.values()], np.int32))
        keys, at, times = np.unique(
            of.astype(np.int64) * len(ops) + self.versions.op[row], return_index=True, return_counts=True
        )
        operation, equation = evidence.lowered.row, evidence.lowered.equation
        is_only = np.bincount(operation, minlength=count)[operation] == 1
        operation, wanted = evidence.codes_of_operations(operation[is_only], equation[is_only])
        place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        hit = (keys[place] == wanted) & (times[place] == 1) if len(keys) else np.zeros(len(wanted), bool)
        rows = np.full(count, -1, np.int64)
        rows[operation[hit]] = row[at[place[hit]]]
        return rows.tolist()
