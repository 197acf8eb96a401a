"""What ended before the first pass: in XLA's import of StableHLO, and in JAX's lowering."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from explorer.analysis.fates.metadata_fates import Row
from explorer.analysis.fates.operations import HELPERS, NEUTRAL, hlo_name, infix
from explorer.analysis.links.equations import varies
from explorer.analysis.passes.evidence import Evidence
from explorer.model.declared import cached_property
from explorer.model.fates import IMPORT, LOWERING
from explorer.model.graph import Graph, Ints

_CONSTANT = ("constant", "broadcast")  # as an operand beside one that varies, most often a constant
_DEEPEST = 3  # expressions inside expressions; the rest is names


class _Place(NamedTuple):
    """What stands in the place of an operation that the import took away.

    Args:
        row: Of the first snapshot.
        outermost: The operation that it is read for: the same, or one around it that is gone too.
    """

    row: int
    outermost: int


@dataclass(frozen=True, eq=False)
class BeforePasses:
    """What a stage's nodes became where no snapshot has them.

    Args:
        graph: Of the stage.
        operations: By node, the StableHLO operations that JAX made of it.
        node_of: By StableHLO operation, a node of the stage.
        varying: For each node, whether its value depends on an argument.
        places: By StableHLO operation that the import took away and whose value depends on an argument, what is there
            instead, where that is found.
        literals: The literals among the operands of each node that has any, by position, without their types.
        evidence: What the passes say; it has the rows.
        is_first: Whether the stage is the one that the rows' equations are of.
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
        """The fate of a node that the import, or the lowering to a constant, ended; None if StableHLO lacks it."""
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
        """An equation as an expression, and what stands in its place: `x × 1.0 → x`."""
        if (operand := self._neutral(node)) >= 0:
            return f"{self._expression(node, _DEEPEST)} → {self._label(operand)}"
        if place is None:
            return self._expression(node, 0)
        outermost = self.node_of.get(place.outermost, node)
        return f"{self._expression(outermost, 0)} → {self._name(place.row)}"

    def _neutral(self, node: int) -> int:
        """The operand that an equation gives as it is, since its other one is a literal that changes nothing; or -1."""
        start, end = self.graph.operand_start[node : node + 2]
        neutral, sides = NEUTRAL.get(hlo_name(self._op(node)), ("", ()))
        literals = self._literals(node)
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
        return self._expression(node, depth + 1) if is_gone and depth < _DEEPEST else self._label(node)

    def _literals(self, node: int) -> Mapping[int, str]:
        return self.literals.get(node, {})

    def _op(self, node: int) -> str:
        return self.graph.ops[int(self.graph.op[node])]

    def _label(self, node: int) -> str:
        """What the user calls an argument, what the stage calls anything else."""
        scope = self.graph.scopes[int(self.graph.scope[node])] if self._op(node) == "parameter" else ""
        return scope or self.graph.names[node]

    def _name(self, row: int) -> str:
        """What the stage calls what a row has, else the instruction's name."""
        of = self.evidence.equations_of(row) if self.is_first else []
        if len(of) == 1:
            return self._label(of[0])
        versions = self.evidence.versions
        name = versions.names[int(versions.key[row])]
        argument = name.rpartition(".")[0]  # XLA counts the names that JAX gives
        return argument if argument in self._arguments else name

    @cached_property
    def _arguments(self) -> frozenset[str]:
        graph = self.graph
        parameters = [i for i, op in enumerate(graph.ops) if op == "parameter"]
        return frozenset(map(self._label, np.flatnonzero(np.isin(graph.op, parameters)).tolist()))


def before_passes(
    evidence: Evidence, name: str, graph: Graph, varying: Sequence[bool], literal_codes: Ints
) -> BeforePasses:
    """What is needed to say which nodes of a stage ended before the first pass.

    Args:
        evidence: What the passes say.
        name, graph: The stage.
        varying: For each node, whether its value depends on an argument.
        literal_codes: The code of each node's literals among its attributes, -1 for none, shape `[n]`.
    """
    lowering, values = evidence.lowering, graph.attribute_table.columns.values
    nodes: list[int] = np.flatnonzero(literal_codes >= 0).tolist()
    literals = {node: _literals(values[int(literal_codes[node])]) for node in nodes}
    operations: dict[int, list[int]] = {}
    node_of: dict[int, int] = {}
    own = np.arange(len(lowering.names))
    pairs = (own, own) if name == "stablehlo" else evidence.lowered.certain()
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
    """Literals by the position of their operand, without their types."""
    pairs = (literal.partition("=") for literal in written.split(", ") if literal)
    return {int(side): value.partition(":")[0] for side, _, value in pairs if side.isdigit()}


class _Import:
    """StableHLO beside the first snapshot: an operation is the only row of its equation that has its name."""

    def __init__(self, evidence: Evidence, varying: Sequence[bool]) -> None:
        self._evidence, self.versions, self.varying = evidence, evidence.versions, varying
        self.graph = evidence.lowering
        rows = self.versions.rows(0) if self.versions.snapshots else np.zeros(0, np.int32)
        keys = self.versions.key[rows]
        self.row_of_key = dict(zip(keys[keys >= 0].tolist(), rows[keys >= 0].tolist(), strict=True))
        self._row_of = self._rows_of_operations()

    def places(self) -> Mapping[int, _Place]:
        """By operation that is gone, what its reader reads instead, or what stands for its readers, if these are gone.

        From the results backwards: what stands for a reader is found before what it reads.
        """
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
            return None  # what the row reads is not all there
        others = {int(versions.key[at]) for i in operands if i != operation and (at := self._row_of[i]) >= 0}
        # Not by position: the import moves constants to the right.
        left = list(dict.fromkeys(key for key in keys if key not in others))
        if len(left) > 1:
            left = [key for key in left if self._evidence.op(self.row_of_key[key]) not in _CONSTANT]
        return _Place(self.row_of_key[left[0]], operation) if len(left) == 1 else None

    def _rows_of_operations(self) -> list[int]:
        """Of each operation the row of the first snapshot that does it, -1 if there is none, or not one alone."""
        evidence, ops, count = self._evidence, self.versions.ops, len(self.graph.names)
        row, of = evidence.lines.certain(among=np.asarray([*self.row_of_key.values()], np.int32))
        keys, at, times = np.unique(
            of.astype(np.int64) * len(ops) + self.versions.op[row], return_index=True, return_counts=True
        )
        operation, equation = evidence.lowered.certain()
        is_only = np.bincount(operation, minlength=count)[operation] == 1
        operation, wanted = evidence.codes_of_operations(operation[is_only], equation[is_only])
        place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        hit = (keys[place] == wanted) & (times[place] == 1) if len(keys) else np.zeros(len(wanted), bool)
        rows = np.full(count, -1, np.int64)
        rows[operation[hit]] = row[at[place[hit]]]
        return rows.tolist()
